resource "google_logging_metric" "walks_completed" {
  project     = var.project
  name        = "${local.id}_walks_completed"
  description = "Walks of the reconciler that reached their end"
  filter      = "resource.type=\"cloud_run_job\" AND resource.labels.job_name=\"${local.job["reconcile"]}\" AND textPayload=~${jsonencode(local.walk_completed)}"

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
  }

  depends_on = [google_project_service.api]
}

resource "google_logging_metric" "collections_completed" {
  project     = var.project
  name        = "${local.id}_collections_completed"
  description = "Collections that reached their end"
  filter      = "resource.type=\"cloud_run_job\" AND resource.labels.job_name=\"${local.job["collect"]}\" AND textPayload=~${jsonencode(local.collection_completed)}"

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
  }

  depends_on = [google_project_service.api]
}

resource "google_logging_metric" "state_objects" {
  project         = var.project
  name            = "${local.id}_state_objects"
  description     = "Objects of the state that a collection has listed"
  filter          = "resource.type=\"cloud_run_job\" AND resource.labels.job_name=\"${local.job["collect"]}\" AND textPayload=~${jsonencode(local.collection_listed)}"
  value_extractor = "REGEXP_EXTRACT(textPayload, ${jsonencode(local.collection_listed)})"

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "DISTRIBUTION"
  }

  depends_on = [google_project_service.api]
}

resource "google_logging_metric" "tasks" {
  for_each = local.task_metric

  project     = var.project
  name        = "${local.id}_tasks_${each.key}"
  description = "Looks for tasks of a catalog: ${each.key}"
  filter      = "resource.type=\"cloud_run_job\" AND resource.labels.job_name=\"${local.job["tasks"]}\" AND jsonPayload.Operation=\"tasks\" AND ${each.value}"

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
  }

  depends_on = [google_project_service.api]
}

resource "google_logging_metric" "stale_keys" {
  project     = var.project
  name        = "${local.id}_stale_keys"
  description = "Answers of 500 because an idempotency key was older than a day"
  filter      = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=\"${local.service}\" AND jsonPayload.StaleKeys=1"

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
  }

  depends_on = [google_project_service.api]
}

resource "google_logging_metric" "request" {
  for_each = var.request_metrics ? local.request_metric : {}

  project         = var.project
  name            = "${local.id}_${each.key}"
  description     = "${each.value} of the catalog's requests (docs/observability.md)"
  filter          = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=\"${local.service}\" AND jsonPayload.Requests=1"
  value_extractor = "EXTRACT(jsonPayload.${each.value})"

  label_extractors = {
    operation = "EXTRACT(jsonPayload.Operation)"
  }

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "DISTRIBUTION"
    labels {
      key        = "operation"
      value_type = "STRING"
    }
  }

  bucket_options {
    exponential_buckets {
      num_finite_buckets = 40
      growth_factor      = 1.4
      scale              = 1
    }
  }

  depends_on = [google_project_service.api]
}

# Metrics are not looked for when an alert is made: before the first request there are none.
resource "google_monitoring_alert_policy" "alert" {
  for_each = local.alerts

  project               = var.project
  display_name          = "${var.name}-${each.key}"
  combiner              = "OR"
  notification_channels = var.notification_channels
  user_labels           = local.labels

  documentation {
    content = "${each.value.says}: ${local.service} in ${var.region}."
  }

  conditions {
    display_name = each.value.says
    condition_prometheus_query_language {
      query                     = each.value.query
      duration                  = "0s"
      evaluation_interval       = "60s"
      disable_metric_validation = true
    }
  }

  depends_on = [google_project_service.api, google_logging_metric.walks_completed, google_logging_metric.collections_completed, google_logging_metric.state_objects, google_logging_metric.stale_keys, google_logging_metric.tasks]
}

resource "google_monitoring_dashboard" "catalog" {
  project = var.project
  dashboard_json = jsonencode({
    displayName = var.name
    mosaicLayout = {
      columns = 48
      tiles = [
        for place, graph in local.graphs : {
          xPos   = 16 * (place % 3)
          yPos   = 16 * floor(place / 3)
          width  = 16
          height = 16
          widget = {
            title = graph.title
            xyChart = {
              dataSets = [{ plotType = "LINE", timeSeriesQuery = { prometheusQuery = graph.query } }]
            }
          }
        }
      ]
    }
  })

  depends_on = [google_project_service.api]
}
