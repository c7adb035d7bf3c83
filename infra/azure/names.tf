data "azurerm_client_config" "current" {}

locals {
  tags  = merge({ Application = var.name }, var.tags)
  group = var.resource_group_name == null ? azurerm_resource_group.group[0].name : var.resource_group_name

  # Names of accounts and apps are the world's: a digest of the subscription and the group tells deployments apart.
  digest = substr(sha256("${data.azurerm_client_config.current.subscription_id}/${coalesce(var.resource_group_name, var.name)}/${var.name}"), 0, 8)
  app    = "${var.name}-${local.digest}"
  short  = substr(replace(var.name, "-", ""), 0, 12)

  own_account  = var.storage_account_id == null
  account_id   = local.own_account ? azurerm_storage_account.store[0].id : var.storage_account_id
  account      = local.own_account ? "${local.short}data${local.digest}" : regex("[^/]+$", var.storage_account_id)
  container_id = "${local.account_id}/blobServices/default/containers/${local.own_account ? azurerm_storage_container.store[0].name : var.container}"
  folder       = var.prefix == "" ? "" : "${var.prefix}/"
  store        = trimsuffix("abfss://${var.container}@${local.account}.dfs.core.windows.net/${var.prefix}", "/")

  has_realm = length(var.auth) > 0
  vending   = coalesce(var.vending, local.has_realm && var.hierarchical_namespace)

  # The layout of arco_catalog/state/paths.py. Catalogs that are made in a realm have their state in the realm's folder;
  # where their tables lie is said when they are made: `catalogs` needs no more roles.
  state_paths    = concat(["${local.folder}${var.warehouse}/_catalog/*"], local.has_realm ? ["${local.folder}_realm/*"] : [])
  hint_paths     = concat(["${local.folder}${var.warehouse}/_catalog/tasks/open/*"], local.has_realm ? ["${local.folder}_realm/catalogs/*/_catalog/tasks/open/*"] : [])
  proposal_paths = concat(["${local.folder}${var.warehouse}/_catalog/core/proposals/*"], local.has_realm ? ["${local.folder}_realm/core/proposals/*", "${local.folder}_realm/catalogs/*/_catalog/core/proposals/*"] : [])
  delegated_path = "${local.folder}_catalog/*" # what a delegation service keeps, if one is run over this store
  probe_path     = "${local.folder}_probe/*"
  tables_paths   = concat(["${local.folder}${var.warehouse}/warehouse/*"], local.has_realm ? ["${local.folder}catalogs/*"] : [])

  url    = "https://${local.app}.azurewebsites.net"
  tenant = try(coalesce(var.entra.tenant_id, data.azurerm_client_config.current.tenant_id), data.azurerm_client_config.current.tenant_id)
}

resource "azurerm_resource_group" "group" {
  count = var.resource_group_name == null ? 1 : 0

  name     = var.name
  location = var.location
  tags     = local.tags
}
