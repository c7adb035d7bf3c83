# What is asked of Cloud Monitoring, in PromQL, by alerts and dashboard.

locals {
  by_service = "monitored_resource=\"cloud_run_revision\",service_name=\"${local.service}\""
  by_job     = { for job, name in local.job : job => "monitored_resource=\"cloud_run_job\",job_name=\"${name}\"" }

  requests  = "run_googleapis_com:request_count"
  latencies = "run_googleapis_com:request_latencies_bucket"
  instances = "run_googleapis_com:container_instance_count"
  runs      = "run_googleapis_com:job_completed_execution_count"
  walks     = "logging_googleapis_com:user_${local.id}_walks_completed"
  collected = "logging_googleapis_com:user_${local.id}_collections_completed"
  listed    = "logging_googleapis_com:user_${local.id}_state_objects"
  stale     = "logging_googleapis_com:user_${local.id}_stale_keys"
  of_tasks  = "logging_googleapis_com:user_${local.id}_tasks"
  # Lines of whoever works on tasks (docs/observability.md), and what they are counted for.
  task_metric = {
    looked = "jsonPayload.TasksDueAge>=0"
    late   = "jsonPayload.TasksDueAge>=3600"
    failed = "jsonPayload.TasksFailed>0"
    lost   = "jsonPayload.LeasesLost>0"
  }
  request_metric = { latency = "Latency", store_calls = "StoreCalls", conflicts = "Conflicts" } # fields of a request's line

  alerts = {
    # A client that retries a commit under a key older than a day is answered with 500, as the specification requires for
    # an unknown outcome. That is no failure of the catalog, and Cloud Run can't distinguish it.
    "5xx" = {
      says  = "The catalog answers with 5xx"
      query = "sum(increase(${local.requests}{${local.by_service},response_code_class=\"5xx\"}[5m])) - (sum(increase(${local.stale}{${local.by_service}}[5m])) or vector(0)) >= 5"
    }
    "no-instance" = {
      says  = "Requests were answered 429: all max_instances are busy"
      query = "sum(increase(${local.requests}{${local.by_service},response_code=\"429\"}[5m])) >= 5"
    }
    "reconcile-failed" = {
      says  = "A run of the reconciler failed, or found something that it could not read"
      query = "sum(increase(${local.runs}{${local.by_job["reconcile"]},result=\"failed\"}[15m])) > 0"
    }
    # Four runs an hour: one that reached the end is enough, none at all is not, whatever kept them from saying so.
    "reconcile-age" = {
      says  = "No walk of the reconciler has reached its end for an hour"
      query = "(sum(increase(${local.walks}{${local.by_job["reconcile"]}}[1h])) or vector(0)) < 0.5"
    }
    # Two runs a day, of which one that reached the end is enough.
    "collect-age" = {
      says  = "No collection has reached its end for a day"
      query = "(sum(increase(${local.collected}{${local.by_job["collect"]}}[1d])) or vector(0)) < 0.5"
    }
    "state-size" = {
      says  = "The catalog's state has more objects than it should: collection does not keep up"
      query = "sum(increase(${local.listed}_sum{${local.by_job["collect"]}}[1d])) / sum(increase(${local.listed}_count{${local.by_job["collect"]}}[1d])) > ${var.max_state_objects}"
    }
    "tasks-age" = {
      says  = "Nobody has looked for tasks for an hour, or found that one has been due for as long"
      query = "(sum(increase(${local.of_tasks}_looked{${local.by_job["tasks"]}}[1h])) or vector(0)) < 0.5 or sum(increase(${local.of_tasks}_late{${local.by_job["tasks"]}}[1h])) > 0.5"
    }
    "tasks-failed" = {
      says  = "A task has failed for good: arco tasks says why"
      query = "sum(increase(${local.of_tasks}_failed{${local.by_job["tasks"]}}[15m])) > 0"
    }
    "leases-lost" = {
      says  = "Workers died, or stood still, over their tasks"
      query = "sum(increase(${local.of_tasks}_lost{${local.by_job["tasks"]}}[1h])) > 0"
    }
  }

  graphs = concat(
    [
      { title = "Requests a second, by code", query = "sum by (response_code_class) (rate(${local.requests}{${local.by_service}}[5m]))" },
      { title = "Latency at Cloud Run, ms (p99)", query = "histogram_quantile(0.99, sum by (le) (rate(${local.latencies}{${local.by_service}}[5m])))" },
      { title = "Instances", query = "sum by (state) (${local.instances}{${local.by_service}})" },
      { title = "Runs of the reconciler, by result", query = "sum by (result) (increase(${local.runs}{${local.by_job["reconcile"]}}[15m]))" },
      { title = "Tasks that failed, in an hour", query = "sum(increase(${local.of_tasks}_failed{${local.by_job["tasks"]}}[1h]))" },
      { title = "Leases that were lost, in an hour", query = "sum(increase(${local.of_tasks}_lost{${local.by_job["tasks"]}}[1h]))" },
      { title = "Walks that reached their end, in an hour", query = "sum(increase(${local.walks}{${local.by_job["reconcile"]}}[1h]))" },
    ],
    [
      for metric, field in var.request_metrics ? local.request_metric : {} : {
        title = "${field} by operation (p99)"
        query = "histogram_quantile(0.99, sum by (le, operation) (rate(logging_googleapis_com:user_${local.id}_${metric}_bucket{${local.by_service}}[5m])))"
      }
    ],
  )
}
