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

  settings = merge(local.catalog_settings, local.task_settings, {
    ARCO_STORE      = local.store
    ARCO_HOST       = "0.0.0.0"
    ARCO_PORT       = tostring(local.port) # Cloud Run sets PORT to it, which the server does not read
    ARCO_WORKERS    = tostring(var.cpu)
    ARCO_GZIP       = "true"
    ARCO_LOG_FORMAT = "json"
    ARCO_QUIET      = "true"
    ARCO_TASKS      = "false" # the job does them: its account alone may delete data
  })
  container_environment = merge(var.environment, local.settings)

  # The service reads the settings of a realm; the jobs find realms in the store.
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
