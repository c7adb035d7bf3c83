# The jobs of container.tf, and Cloud Scheduler that starts them.

resource "google_cloud_run_v2_job" "job" {
  for_each = local.jobs

  project             = var.project
  location            = var.region
  name                = local.job[each.key]
  deletion_protection = false # it holds no state
  labels              = local.labels

  template {
    task_count  = 1
    parallelism = 1
    labels      = local.labels

    template {
      service_account = google_service_account.account[each.key].email
      timeout         = "${local.job_timeout_seconds}s"
      max_retries     = 3 # Cloud Run counts some tasks as retried that were not, and tells to allow three

      containers {
        image = var.image
        args  = each.value.args

        resources {
          limits = { cpu = "1", memory = "1Gi" }
        }

        dynamic "env" {
          for_each = local.container_environment
          content {
            name  = env.key
            value = env.value
          }
        }
      }
    }
  }

  depends_on = [google_project_service.api, google_storage_bucket_iam_member.objects]
}

resource "google_cloud_scheduler_job" "job" {
  for_each = local.jobs

  project          = var.project
  region           = var.region
  name             = local.job[each.key]
  description      = each.value.says
  schedule         = each.value.schedule
  time_zone        = "Etc/UTC"
  attempt_deadline = "60s"

  retry_config {
    retry_count = 2
  }

  http_target {
    http_method = "POST"
    uri         = "https://run.googleapis.com/v2/projects/${var.project}/locations/${var.region}/jobs/${local.job[each.key]}:run"

    oauth_token {
      service_account_email = google_service_account.account["schedule"].email
    }
  }

  depends_on = [google_cloud_run_v2_job_iam_member.schedule]
}

# Under other addresses before there were several.
moved {
  from = google_cloud_run_v2_job.reconcile
  to   = google_cloud_run_v2_job.job["reconcile"]
}

moved {
  from = google_cloud_scheduler_job.reconcile
  to   = google_cloud_scheduler_job.job["reconcile"]
}

moved {
  from = google_cloud_run_v2_job_iam_member.schedule
  to   = google_cloud_run_v2_job_iam_member.schedule["reconcile"]
}
