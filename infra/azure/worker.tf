# The apps that work beside requests: the same package, other identities. The worker on tasks, such as purges, alone may
# delete data, of tables that were dropped with purge; the collector alone may delete state that nothing leads to any more.
# They answer no request.

locals {
  workers = {
    work    = { runs = "tasks", says = "Purges of tables of catalog ${var.warehouse}", condition = local.worker_condition }
    collect = { runs = "collect", says = "Collection of the state of catalog ${var.warehouse}", condition = local.collector_condition }
  }
  functions = ["api", "reconcile", "tasks", "collect"] # of the package
  disabled = {
    for runs in local.functions : runs => { for name in local.functions : "AzureWebJobs.${name}.Disabled" => "true" if name != runs }
  }
  hosts = {
    for pair in setproduct(keys(local.workers), local.host_roles) : join(" ", pair) => { worker = pair[0], role = pair[1] }
  }
}

resource "azurerm_user_assigned_identity" "worker" {
  for_each = local.workers

  name                = "${var.name}-${each.key}"
  resource_group_name = local.group
  location            = var.location
  tags                = local.tags
}

resource "azurerm_service_plan" "worker" {
  for_each = local.workers

  name                = "${var.name}-${each.key}"
  resource_group_name = local.group
  location            = var.location
  tags                = local.tags
  os_type             = "Linux"
  sku_name            = "FC1" # one app a plan
}

resource "azurerm_function_app_flex_consumption" "worker" {
  for_each = local.workers

  name                = "${var.name}-${each.key}-${local.digest}"
  resource_group_name = local.group
  location            = var.location
  service_plan_id     = azurerm_service_plan.worker[each.key].id
  tags                = local.tags

  runtime_name           = azurerm_function_app_flex_consumption.app.runtime_name
  runtime_version        = azurerm_function_app_flex_consumption.app.runtime_version
  instance_memory_in_mb  = var.memory_mb
  maximum_instance_count = 40 # the least that may be said; a timer has one

  storage_container_type            = "blobContainer"
  storage_container_endpoint        = azurerm_function_app_flex_consumption.app.storage_container_endpoint
  storage_authentication_type       = "UserAssignedIdentity"
  storage_user_assigned_identity_id = azurerm_user_assigned_identity.worker[each.key].id

  https_only                                     = true
  public_network_access_enabled                  = false
  webdeploy_publish_basic_authentication_enabled = false

  app_settings = merge(var.app_settings, local.settings, local.task_settings, local.platform_settings, local.disabled[each.value.runs], {
    AZURE_CLIENT_ID                           = azurerm_user_assigned_identity.worker[each.key].client_id
    AzureWebJobsStorage__clientId             = azurerm_user_assigned_identity.worker[each.key].client_id
    APPLICATIONINSIGHTS_AUTHENTICATION_STRING = "ClientId=${azurerm_user_assigned_identity.worker[each.key].client_id};Authorization=AAD"
  })

  identity {
    type         = "UserAssigned"
    identity_ids = [azurerm_user_assigned_identity.worker[each.key].id]
  }

  site_config {
    application_insights_connection_string = azurerm_application_insights.app.connection_string
    minimum_tls_version                    = "1.2"
    scm_minimum_tls_version                = "1.2"
  }

  depends_on = [azurerm_role_assignment.worker, azurerm_role_assignment.worker_host, azurerm_storage_blob.package]
}

resource "azurerm_role_assignment" "worker" {
  for_each = local.workers

  description          = each.value.says
  scope                = local.container_id
  role_definition_name = "Storage Blob Data Contributor"
  principal_id         = azurerm_user_assigned_identity.worker[each.key].principal_id
  condition_version    = "2.0"
  condition            = each.value.condition
}

resource "azurerm_role_assignment" "worker_host" {
  for_each = local.hosts

  description          = "The own storage of ${each.value.worker}"
  scope                = azurerm_storage_account.host.id
  role_definition_name = each.value.role
  principal_id         = azurerm_user_assigned_identity.worker[each.value.worker].principal_id
}

resource "azurerm_role_assignment" "worker_telemetry" {
  for_each = local.workers

  description          = "Logs of ${each.key}"
  scope                = azurerm_application_insights.app.id
  role_definition_name = "Monitoring Metrics Publisher"
  principal_id         = azurerm_user_assigned_identity.worker[each.key].principal_id
}

# Under other addresses before there were two.
moved {
  from = azurerm_user_assigned_identity.worker
  to   = azurerm_user_assigned_identity.worker["work"]
}

moved {
  from = azurerm_service_plan.worker
  to   = azurerm_service_plan.worker["work"]
}

moved {
  from = azurerm_function_app_flex_consumption.worker
  to   = azurerm_function_app_flex_consumption.worker["work"]
}

moved {
  from = azurerm_role_assignment.worker
  to   = azurerm_role_assignment.worker["work"]
}

moved {
  from = azurerm_role_assignment.worker_telemetry
  to   = azurerm_role_assignment.worker_telemetry["work"]
}

moved {
  from = azurerm_role_assignment.worker_host["Storage Blob Data Owner"]
  to   = azurerm_role_assignment.worker_host["work Storage Blob Data Owner"]
}

moved {
  from = azurerm_role_assignment.worker_host["Storage Queue Data Contributor"]
  to   = azurerm_role_assignment.worker_host["work Storage Queue Data Contributor"]
}

moved {
  from = azurerm_role_assignment.worker_host["Storage Table Data Contributor"]
  to   = azurerm_role_assignment.worker_host["work Storage Table Data Contributor"]
}
