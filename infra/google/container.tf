# What runs in the container: a test starts exactly this over a store.

locals {
  port = 8181

  serve     = ["serve"]
  reconcile = ["reconcile", "--json", "--seconds", tostring(local.reconcile_seconds)]

  reconcile_seconds         = 720 # then it stops by itself; the next run goes on there
  reconcile_timeout_seconds = 840 # it ends before the next begins

  settings = {
    ARCO_STORE                  = local.store
    ARCO_WAREHOUSE              = var.warehouse
    ARCO_ALLOWED_LOCATIONS      = join(",", var.allowed_locations)
    ARCO_ALLOW_LOCATION_OVERLAP = tostring(var.allow_location_overlap)
    ARCO_IDEMPOTENCY_DIALECT    = var.idempotency_dialect
    ARCO_HOST                   = "0.0.0.0"
    ARCO_PORT                   = tostring(local.port) # Cloud Run says it as PORT, which the server does not read
    ARCO_WORKERS                = tostring(var.cpu)
    ARCO_GZIP                   = "true"
    ARCO_LOG_FORMAT             = "json"
    ARCO_LOG_LEVEL              = var.log_level
    ARCO_QUIET                  = "true"
  }
  container_environment = merge(var.environment, local.settings)

  # The line that says that a walk reached its end, as `arco reconcile --json` prints it. Cloud Logging takes each line
  # for an entry of its own.
  walk_completed = "^ *\"stopped\": false,?$"
}
