locals {
  package = coalesce(var.package, "${path.module}/../../dist/arco-catalog-functions${var.console ? "-console" : ""}.zip")

  settings = merge(local.catalog_settings, {
    ARCO_STORE      = local.store
    ARCO_ENDPOINT   = var.authorization == "entra" ? "easy-auth" : "unauthenticated"
    ARCO_SKIP_PROBE = "true" # Azure honours conditions; each run of the reconciler still probes it
  })

  gateway_settings  = { ARCO_GATEWAY_APIS = "easyauth", ARCO_GATEWAY_PRINCIPAL_CLAIM = "oid" }
  pages             = var.console ? { ARCO_CONSOLE = "true" } : {}
  source_principals = length(var.source_principals) == 0 ? {} : { ARCO_SOURCE_PRINCIPALS = join(",", var.source_principals) }

  platform_settings = {
    AZURE_CLIENT_ID                           = azurerm_user_assigned_identity.app.client_id
    AZURE_TOKEN_CREDENTIALS                   = "ManagedIdentityCredential"
    AzureWebJobsStorage__accountName          = azurerm_storage_account.host.name
    AzureWebJobsStorage__credential           = "managedidentity"
    AzureWebJobsStorage__clientId             = azurerm_user_assigned_identity.app.client_id
    APPLICATIONINSIGHTS_AUTHENTICATION_STRING = "ClientId=${azurerm_user_assigned_identity.app.client_id};Authorization=AAD"
    PACKAGE_SHA256                            = filesha256(local.package) # another package: another setting, and so a restart
  }
}

resource "azurerm_service_plan" "app" {
  name                = var.name
  resource_group_name = local.group
  location            = var.location
  tags                = local.tags
  os_type             = "Linux"
  sku_name            = "FC1"
}

# Flex Consumption runs the package of this very name. The provider's own `zip_deploy_file` goes to an address that this
# plan has not (hashicorp/terraform-provider-azurerm#29630).
resource "azurerm_storage_blob" "package" {
  name                 = "released-package.zip"
  storage_container_id = azurerm_storage_container.package.id
  type                 = "Block"
  source               = local.package
  content_md5          = filemd5(local.package)

  lifecycle {
    precondition {
      condition     = fileexists(local.package)
      error_message = "There is no package at ${local.package}: `make package-azure` builds it."
    }
  }

  depends_on = [azurerm_role_assignment.deployer]
}

resource "azurerm_function_app_flex_consumption" "app" {
  name                = local.app
  resource_group_name = local.group
  location            = var.location
  service_plan_id     = azurerm_service_plan.app.id
  tags                = local.tags

  runtime_name           = "python"
  runtime_version        = "3.12" # what the package holds libraries for
  instance_memory_in_mb  = var.memory_mb
  maximum_instance_count = var.max_instances

  storage_container_type            = "blobContainer"
  storage_container_endpoint        = "${azurerm_storage_account.host.primary_blob_endpoint}${azurerm_storage_container.package.name}"
  storage_authentication_type       = "UserAssignedIdentity"
  storage_user_assigned_identity_id = azurerm_user_assigned_identity.app.id

  https_only                                     = true
  webdeploy_publish_basic_authentication_enabled = false

  app_settings = merge(var.app_settings, local.settings, local.task_settings, local.realm_settings, local.pages, local.source_principals, local.platform_settings, {
    "AzureWebJobs.tasks.Disabled"   = "true" # another app's, whose identity may delete data
    "AzureWebJobs.collect.Disabled" = "true" # another's, whose identity may delete state
  })

  identity {
    type         = "UserAssigned"
    identity_ids = [azurerm_user_assigned_identity.app.id]
  }

  site_config {
    application_insights_connection_string = azurerm_application_insights.app.connection_string
    minimum_tls_version                    = "1.2"
    scm_minimum_tls_version                = "1.2"
    http2_enabled                          = true
  }

  dynamic "always_ready" {
    for_each = var.always_ready > 0 ? [var.always_ready] : []
    content {
      name           = "http"
      instance_count = always_ready.value
    }
  }

  dynamic "auth_settings_v2" {
    for_each = var.authorization == "entra" ? [var.entra] : []
    content {
      auth_enabled           = true
      require_authentication = true
      require_https          = true
      unauthenticated_action = "Return401"
      default_provider       = "azureactivedirectory"

      active_directory_v2 {
        client_id            = auth_settings_v2.value.client_id
        tenant_auth_endpoint = "https://login.microsoftonline.com/${local.tenant}/v2.0"
        allowed_audiences    = concat([auth_settings_v2.value.client_id, "api://${auth_settings_v2.value.client_id}"], auth_settings_v2.value.audiences)
        allowed_applications = auth_settings_v2.value.applications
        allowed_identities   = auth_settings_v2.value.identities
      }

      login {}
    }
  }

  depends_on = [
    azurerm_role_assignment.catalog,
    azurerm_role_assignment.host,
    azurerm_role_assignment.telemetry,
    azurerm_storage_blob.package,
  ]
}
