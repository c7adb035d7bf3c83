resource "google_project_service" "api" {
  for_each = toset(var.enable_apis ? concat(
    ["cloudscheduler", "iam", "logging", "monitoring", "run", "storage"],
    local.vending ? ["iamcredentials", "sts"] : [],
    length(var.event_receivers) == 0 ? [] : ["pubsub"],
    var.token_key_secret == null ? [] : ["secretmanager"],
  ) : [])

  project            = var.project
  service            = "${each.value}.googleapis.com"
  disable_on_destroy = false # something else may use it by then
}
