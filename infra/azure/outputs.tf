output "url" {
  description = "What engines take as `uri`."
  value       = local.url
}

output "store" {
  description = "The store as `arco` commands take it (--store)."
  value       = local.store
}

output "storage_account_id" {
  description = "The storage account that holds the tables and the catalog's state."
  value       = local.account_id
}

output "function_app" {
  description = "Name of the function app."
  value       = azurerm_function_app_flex_consumption.app.name
}

output "resource_group" {
  description = "The resource group of everything that was made."
  value       = local.group
}

output "principal_id" {
  description = "Object id of the identity that the function app runs as."
  value       = azurerm_user_assigned_identity.app.principal_id
}

output "settings" {
  description = "What to paste into spark, pyiceberg and trino."
  value       = local.to_paste
}

output "engine_condition" {
  description = "Condition of a role assignment for an engine: Storage Blob Data Contributor on the container, for files of tables alone."
  value       = local.engine_condition
}

output "storage" {
  description = "What catalogs of a realm are made with: where their tables go (a folder in new_catalogs each), and their storageConfigInfo."
  value = {
    new_catalogs      = local.has_realm ? ["${local.store}/catalogs"] : []
    storageConfigInfo = { storageType = "AZURE", tenantId = local.tenant, hierarchical = var.hierarchical_namespace }
  }
}
