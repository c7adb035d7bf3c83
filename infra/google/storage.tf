# The bucket, unless an existing one is named.

resource "google_storage_bucket" "store" {
  count = local.own_bucket ? 1 : 0

  project                     = var.project
  name                        = local.bucket
  location                    = coalesce(var.bucket_location, var.region)
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = var.force_destroy
  labels                      = local.labels

  versioning {
    enabled = true
  }

  soft_delete_policy {
    retention_duration_seconds = var.soft_delete_days * 86400
  }

  dynamic "encryption" {
    for_each = var.kms_key == null ? [] : [var.kms_key]
    content {
      default_kms_key_name = encryption.value
    }
  }

  # Nothing that is current ever expires, but for what a start's probe may leave behind: what the catalog no longer needs
  # its collector deletes, which knows what is still reachable. A replaced version is reachable from nowhere.
  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      days_since_noncurrent_time = var.noncurrent_days
      with_state                 = "ARCHIVED"
      matches_prefix             = local.folder == "" ? [] : [local.folder]
    }
  }

  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      age            = 1
      with_state     = "ANY"
      matches_prefix = ["${local.folder}_probe/"]
    }
  }

  lifecycle_rule {
    action {
      type = "AbortIncompleteMultipartUpload"
    }
    condition {
      age            = 7
      matches_prefix = local.folder == "" ? [] : [local.folder]
    }
  }

  depends_on = [google_project_service.api]
}
