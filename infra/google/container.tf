# What runs in the container: a test starts exactly this over a store.

locals {
  port = 8181

  serve = ["serve"]

  # What runs by the clock, each as an account of its own. A run goes on where the one before it stopped or failed.
  job_seconds         = 720 # then it stops by itself; the next run goes on there
  job_timeout_seconds = 840 # it ends before the next begins
  jobs = {
    reconcile = {
      says = "See that every commit has its receipt", schedule = "*/15 * * * *"
      args = ["reconcile", "--json", "--seconds", tostring(local.job_seconds)]
    }
    tasks = {
      says = "Work on the tasks that are due, such as purges", schedule = "5-59/15 * * * *"
      args = ["tasks", "run", "--all", "--json", "--seconds", tostring(local.job_seconds)]
    }
    collect = {
      says = "Delete what nothing leads to any more", schedule = "40 3,15 * * *"
      args = ["gc", "--delete", "--json", "--seconds", tostring(local.job_seconds)]
    }
  }

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
    ARCO_TASKS                  = "false" # the job does them: its account alone may delete data
    ARCO_PURGE_MODE             = var.purge.mode
    ARCO_PURGE_UNDROP_WINDOW    = var.purge.undrop_window
    ARCO_PURGE_TRUST_LOCATIONS  = tostring(var.purge.trust_locations)
    ARCO_TASK_PROPERTIES        = join(",", [for name, value in var.task_properties : "${name}=${value}"])

    ARCO_IDEMPOTENCY_ENABLED         = tostring(var.idempotency_enabled)
    ARCO_IDEMPOTENCY_LIFETIME        = var.idempotency_lifetime
    ARCO_IDEMPOTENCY_CLEANUP_ENABLED = tostring(var.idempotency_cleanup_enabled)
  }
  container_environment = merge(var.environment, local.settings)

  # What the service is told of a realm; the jobs find it by themselves.
  realm_settings = local.has_realm ? merge(
    { ARCO_AUTH = join(",", var.auth) },
    contains(var.auth, "internal") ? {
      ARCO_TOKEN_KEY_SECRET = var.token_key_secret
      ARCO_TOKEN_AUDIENCE   = var.token_audience
      ARCO_TOKEN_LIFETIME   = tostring(var.token_lifetime)
    } : {},
    contains(var.auth, "oidc") ? merge(
      {
        ARCO_OIDC_ISSUERS         = join(",", var.oidc_issuers)
        ARCO_OIDC_AUDIENCES       = join(",", var.oidc_audiences)
        ARCO_OIDC_ALGORITHMS      = join(",", var.oidc_algorithms)
        ARCO_OIDC_PRINCIPAL_CLAIM = var.oidc_principal_claim
      },
      var.oidc_roles_claim == null ? {} : { ARCO_OIDC_ROLES_CLAIM = var.oidc_roles_claim },
    ) : {},
  ) : {}
  service_environment = merge(local.container_environment, local.realm_settings)

  storage = {
    new_catalogs = local.has_realm ? [local.new_catalogs] : []
    storageConfigInfo = merge(
      { storageType = "GCS" },
      local.vending ? { gcsServiceAccount = trimprefix(local.members.vending, "serviceAccount:") } : {},
    )
  }

  # The line that says that a walk reached its end, as `arco reconcile --json` prints it. Cloud Logging takes each line
  # for an entry of its own.
  walk_completed = "^ *\"stopped\": false,?$"
  # That of `arco gc --json`: of all catalogs together, which stands less far in than that of one.
  collection_completed = "^  \"stopped\": false,?$"
  collection_listed    = "^  \"listed\": ([0-9]+),?$"
}
