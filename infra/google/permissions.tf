# Roles of just what is needed: Google's own for objects hold more, and are for whole buckets.

resource "google_project_iam_custom_role" "objects" {
  for_each = local.roles

  project     = var.project
  role_id     = "${local.id}_objects_${each.key}"
  title       = "${var.name}: ${each.key} objects"
  permissions = each.value

  depends_on = [google_project_service.api]
}

resource "google_storage_bucket_iam_member" "objects" {
  for_each = local.bindings

  bucket = each.value.bucket
  role   = google_project_iam_custom_role.objects[each.value.role].name
  member = each.value.member

  dynamic "condition" {
    for_each = each.value.condition == null ? [] : [each.value.condition]
    content {
      title      = "${var.name}-${substr(sha256(each.key), 0, 8)}"
      expression = condition.value
    }
  }

  depends_on = [google_service_account.account, google_storage_bucket.store]
}

resource "google_service_account" "account" {
  for_each = local.accounts

  project      = var.project
  account_id   = each.value
  display_name = "Iceberg REST catalog ${var.name}: ${each.key}"

  depends_on = [google_project_service.api]
}

# Who may call, besides through the bucket's rights. All users are one member too, which takes two variables to say.
resource "google_cloud_run_v2_service_iam_member" "caller" {
  for_each = toset(var.authorization == "none" ? ["allUsers"] : var.engine_members)

  project  = var.project
  location = var.region
  name     = google_cloud_run_v2_service.api.name
  role     = "roles/run.invoker"
  member   = each.value
}

resource "google_cloud_run_v2_job_iam_member" "schedule" {
  for_each = local.jobs

  project  = var.project
  location = var.region
  name     = google_cloud_run_v2_job.job[each.key].name
  role     = "roles/run.invoker"
  member   = local.members.schedule

  depends_on = [google_service_account.account]
}

# The API makes tokens of the account whose they are that engines get, and of no other.
resource "google_project_iam_custom_role" "vend" {
  count = local.vending ? 1 : 0

  project     = var.project
  role_id     = "${local.id}_vend"
  title       = "${var.name}: make tokens of the account for tables"
  permissions = local.vend_permissions

  depends_on = [google_project_service.api]
}

resource "google_service_account_iam_member" "vend" {
  count = local.vending ? 1 : 0

  service_account_id = google_service_account.account["vending"].name
  role               = google_project_iam_custom_role.vend[0].name
  member             = local.members.api
}

resource "google_project_iam_custom_role" "token_key" {
  count = var.token_key_secret == null ? 0 : 1

  project     = var.project
  role_id     = "${local.id}_token_key"
  title       = "${var.name}: read the key that signs tokens"
  permissions = local.token_key_permissions

  depends_on = [google_project_service.api]
}

resource "google_secret_manager_secret_iam_member" "token_key" {
  count = var.token_key_secret == null ? 0 : 1

  project   = split("/", var.token_key_secret)[1]
  secret_id = split("/", var.token_key_secret)[3]
  role      = google_project_iam_custom_role.token_key[0].name
  member    = local.members.api

  depends_on = [google_service_account.account]
}

# Events go to the topics that were named, and to no others. The role has the right to publish alone.
resource "google_pubsub_topic_iam_member" "events" {
  for_each = local.event_topics

  project = each.value.project
  topic   = each.value.topic
  role    = "roles/pubsub.publisher"
  member  = each.value.member

  depends_on = [google_service_account.account, google_project_service.api]
}
