# One identity for the app, and what it may do. The roles are Azure's own; conditions (ABAC) narrow where they hold.

resource "azurerm_user_assigned_identity" "app" {
  name                = var.name
  resource_group_name = local.group
  location            = var.location
  tags                = local.tags
}

locals {
  blobs       = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
  creates     = "(ActionMatches{'${local.blobs}/write'} OR ActionMatches{'${local.blobs}/add/action'})"
  deletes     = "ActionMatches{'${local.blobs}/delete'}"
  moves       = "ActionMatches{'${local.blobs}/move/action'}"
  path        = "@Resource[${local.blobs}:path]"
  metadata    = "(${local.path} StringLike '${local.tables_path}' AND ${local.path} StringLike '*.metadata.json')"
  in_state    = "${local.path} StringLike '${local.state_path}'"
  in_probe    = "${local.path} StringLike '${local.probe_path}'"
  among_table = "${local.path} StringLike '${local.tables_path}'"

  # State, metadata files and probes are written; metadata files and probes deleted; nothing is moved. State that was
  # created can't be deleted: its name could be created again, and the protocols rest on its not being so.
  catalog_condition = join(" AND ", [
    "(!${local.creates} OR (${local.in_state} OR ${local.metadata} OR ${local.in_probe}))",
    "(!(${local.deletes}) OR (${local.metadata} OR ${local.in_probe}))",
    "(!(${local.moves}))",
  ])
  # An engine's own files, and nothing of the catalog's.
  engine_condition = "(!(${local.creates} OR ${local.deletes} OR ${local.moves}) OR (${local.among_table}))"

  catalog_principals = merge(
    { app = azurerm_user_assigned_identity.app.principal_id },
    { for id in var.operator_principal_ids : id => id },
  )
}

resource "azurerm_role_assignment" "catalog" {
  for_each = local.catalog_principals

  description          = "The catalog ${var.warehouse}: its state, and metadata files of its tables"
  scope                = local.container_id
  role_definition_name = "Storage Blob Data Contributor"
  principal_id         = each.value
  condition_version    = "2.0"
  condition            = local.catalog_condition
}

resource "azurerm_role_assignment" "engine" {
  for_each = var.engine_principal_ids

  description          = "Files of the tables of catalog ${var.warehouse}"
  scope                = local.container_id
  role_definition_name = "Storage Blob Data Contributor"
  principal_id         = each.value
  condition_version    = "2.0"
  condition            = local.engine_condition
}

# What the platform needs of its own account (Azure Functions, "Connecting to host storage with an identity").
resource "azurerm_role_assignment" "host" {
  for_each = toset(["Storage Blob Data Owner", "Storage Queue Data Contributor", "Storage Table Data Contributor"])

  description          = "The function app's own storage"
  scope                = azurerm_storage_account.host.id
  role_definition_name = each.value
  principal_id         = azurerm_user_assigned_identity.app.principal_id
}

resource "azurerm_role_assignment" "telemetry" {
  description          = "Logs of the function app"
  scope                = azurerm_application_insights.app.id
  role_definition_name = "Monitoring Metrics Publisher"
  principal_id         = azurerm_user_assigned_identity.app.principal_id
}

# Accounts take no keys, so who applies this needs a right on the one container that the package is put into.
resource "azurerm_role_assignment" "deployer" {
  description          = "Who deploys the package"
  scope                = azurerm_storage_container.package.id
  role_definition_name = "Storage Blob Data Contributor"
  principal_id         = data.azurerm_client_config.current.object_id
}
