# One identity for the app, and what it may do. The roles are Azure's own; conditions (ABAC) narrow where they hold.

resource "azurerm_user_assigned_identity" "app" {
  name                = var.name
  resource_group_name = local.group
  location            = var.location
  tags                = local.tags
}

locals {
  blobs        = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
  creates      = "(ActionMatches{'${local.blobs}/write'} OR ActionMatches{'${local.blobs}/add/action'})"
  deletes      = "ActionMatches{'${local.blobs}/delete'}"
  moves        = "ActionMatches{'${local.blobs}/move/action'}"
  path         = "@Resource[${local.blobs}:path]"
  metadata     = "(${local.among_table} AND ${local.path} StringLike '*.metadata.json')"
  in_state     = "(${join(" OR ", [for path in local.state_paths : "${local.path} StringLike '${path}'"])})"
  in_probe     = "${local.path} StringLike '${local.probe_path}'"
  in_hints     = "(${join(" OR ", [for path in local.hint_paths : "${local.path} StringLike '${path}'"])})"
  in_proposals = "(${join(" OR ", [for path in local.proposal_paths : "${local.path} StringLike '${path}'"])})"
  in_delegated = "${local.path} StringLike '${local.delegated_path}'"
  replaceable  = "(${local.path} StringNotLike '*/core/manifest.json' AND ${local.path} StringNotLike '*/core/page_key.json')"
  among_table  = "(${join(" OR ", [for path in local.tables_paths : "${local.path} StringLike '${path}'"])})"

  # A signature that is vended holds for no more than the identity that signs it: where the app vends, its own roles reach
  # all files of tables. It still deletes no state but proposals, and moves nothing.
  app_condition = local.vending ? join(" AND ", [
    "(!${local.creates} OR (${local.in_state} OR ${local.among_table} OR ${local.in_probe}))",
    "(!(${local.deletes}) OR (${local.among_table} OR ${local.in_proposals} OR ${local.in_probe}))",
    "(!(${local.moves}))",
  ]) : local.catalog_condition

  # State, metadata files and probes are written; metadata files, probes and proposals deleted; nothing is moved. Other
  # state that was created can't be deleted: its name could be created again, and the protocols rest on its not being so.
  catalog_condition = join(" AND ", [
    "(!${local.creates} OR (${local.in_state} OR ${local.metadata} OR ${local.in_probe}))",
    "(!(${local.deletes}) OR (${local.metadata} OR ${local.in_proposals} OR ${local.in_probe}))",
    "(!(${local.moves}))",
  ])
  # Purges and expiries: files of tables are deleted, and of these only metadata files are created, which remove snapshots;
  # of the state, hints of tasks are deleted.
  worker_condition = join(" AND ", [
    "(!${local.creates} OR (${local.in_state} OR ${local.metadata} OR ${local.in_probe}))",
    "(!(${local.deletes}) OR (${local.among_table} OR ${local.in_hints} OR ${local.in_probe}))",
    "(!(${local.moves}))",
  ])
  # Collection: state that nothing leads to, a delegation service's too, and metadata files of lost tries; but neither what
  # says which state is current, nor what seals page tokens. Data never.
  collector_condition = join(" AND ", [
    "(!${local.creates} OR (${local.in_state} OR ${local.in_delegated} OR ${local.in_probe}))",
    "(!(${local.deletes}) OR (((${local.in_state} OR ${local.in_delegated}) AND ${local.replaceable}) OR ${local.metadata} OR ${local.in_probe}))",
    "(!(${local.moves}))",
  ])
  # An engine's own files, and nothing of the catalog's.
  engine_condition = "(!(${local.creates} OR ${local.deletes} OR ${local.moves}) OR (${local.among_table}))"

  host_roles = ["Storage Blob Data Owner", "Storage Queue Data Contributor", "Storage Table Data Contributor"]

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
  condition            = each.key == "app" ? local.app_condition : local.catalog_condition
}

resource "azurerm_role_assignment" "engine" {
  for_each = local.vending ? [] : var.engine_principal_ids

  description          = "Files of the tables of catalog ${var.warehouse}"
  scope                = local.container_id
  role_definition_name = "Storage Blob Data Contributor"
  principal_id         = each.value
  condition_version    = "2.0"
  condition            = local.engine_condition
}

# What the platform needs of its own account (Azure Functions, "Connecting to host storage with an identity").
resource "azurerm_role_assignment" "host" {
  for_each = toset(local.host_roles)

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

# To ask for the key that signs what is vended; what it signs for is for the roles above to say.
resource "azurerm_role_assignment" "delegator" {
  count = local.vending ? 1 : 0

  description          = "Signatures for the tables of catalog ${var.warehouse}"
  scope                = local.account_id
  role_definition_name = "Storage Blob Delegator"
  principal_id         = azurerm_user_assigned_identity.app.principal_id
}

resource "azurerm_role_assignment" "token_key" {
  count = var.token_key_secret == null ? 0 : 1

  description          = "The key that signs tokens of catalog ${var.warehouse}"
  scope                = "${var.token_key_vault_id}/secrets/${element(split("/", var.token_key_secret), 4)}"
  role_definition_name = "Key Vault Secrets User"
  principal_id         = azurerm_user_assigned_identity.app.principal_id
}

# Events go to the queues and topics that were named, and to no others.
resource "azurerm_role_assignment" "events" {
  for_each = toset(var.event_receivers)

  description          = "Events of catalog ${var.warehouse}"
  scope                = each.value
  role_definition_name = strcontains(each.value, "/queues/") ? "Storage Queue Data Message Sender" : "EventGrid Data Sender"
  principal_id         = azurerm_user_assigned_identity.worker["work"].principal_id
}
