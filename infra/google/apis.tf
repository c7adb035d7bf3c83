resource "google_project_service" "api" {
  for_each = toset(var.enable_apis ? ["cloudscheduler", "iam", "logging", "monitoring", "run", "storage"] : [])

  project            = var.project
  service            = "${each.value}.googleapis.com"
  disable_on_destroy = false # something else may use it by then
}
