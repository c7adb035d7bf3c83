locals {
  url = google_cloud_run_v2_service.api.uri
}

resource "google_cloud_run_v2_service" "api" {
  project             = var.project
  location            = var.region
  name                = local.service
  description         = "Iceberg REST catalog ${var.warehouse} in ${local.store}"
  ingress             = { all = "INGRESS_TRAFFIC_ALL", internal = "INGRESS_TRAFFIC_INTERNAL_ONLY" }[var.ingress]
  deletion_protection = false # it holds no state
  labels              = local.labels

  template {
    service_account                  = google_service_account.account["api"].email
    execution_environment            = "EXECUTION_ENVIRONMENT_GEN2" # whole Linux: workers share a port
    timeout                          = "60s"                        # the server's own deadline is 20 s; the rest is for slow readers
    max_instance_request_concurrency = var.concurrency
    labels                           = local.labels

    scaling {
      min_instance_count = var.min_instances
      max_instance_count = var.max_instances
    }

    containers {
      image = var.image
      args  = local.serve

      ports {
        container_port = local.port
      }

      resources {
        limits            = { cpu = tostring(var.cpu), memory = "${var.memory}Mi" }
        cpu_idle          = !var.instance_billing
        startup_cpu_boost = true
      }

      dynamic "env" {
        for_each = local.service_environment
        content {
          name  = env.key
          value = env.value
        }
      }

      # A process that ends is replaced without one, and a probe in between is paid: so none asks whether it lives.
      startup_probe {
        period_seconds    = 1
        timeout_seconds   = 1
        failure_threshold = 60
        http_get {
          path = "/health"
          port = local.port
        }
      }
    }
  }

  # Said, so that an apply takes back what was directed by hand to an older revision.
  traffic {
    type    = "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"
    percent = 100
  }

  depends_on = [google_project_service.api, google_storage_bucket_iam_member.objects]
}
