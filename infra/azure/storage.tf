resource "azurerm_storage_account" "store" {
  count = local.own_account ? 1 : 0

  name                = local.account
  resource_group_name = local.group
  location            = var.location
  tags                = local.tags

  account_kind             = "StorageV2"
  account_tier             = "Standard"
  account_replication_type = var.replication
  is_hns_enabled           = var.hierarchical_namespace

  min_tls_version                  = "TLS1_2"
  https_traffic_only_enabled       = true
  allow_nested_items_to_be_public  = false
  shared_access_key_enabled        = false
  default_to_oauth_authentication  = true
  cross_tenant_replication_enabled = false
  local_user_enabled               = false

  blob_properties {
    versioning_enabled = !var.hierarchical_namespace # Azure has none for real folders

    delete_retention_policy {
      days = var.retention_days
    }
    container_delete_retention_policy {
      days = var.retention_days
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "azurerm_storage_container" "store" {
  count = local.own_account ? 1 : 0

  name                  = var.container
  storage_account_id    = azurerm_storage_account.store[0].id
  container_access_type = "private"

  lifecycle {
    prevent_destroy = true
  }
}

# Nothing that is current expires but what a probe may have left: state is create-only, and a name that expired could be
# created again.
resource "azurerm_storage_management_policy" "store" {
  count = local.own_account ? 1 : 0

  storage_account_id = azurerm_storage_account.store[0].id

  rule {
    name    = "probes"
    enabled = true
    filters {
      blob_types   = ["blockBlob"]
      prefix_match = ["${var.container}/${local.folder}_probe/"]
    }
    actions {
      base_blob {
        delete_after_days_since_modification_greater_than = 1
      }
    }
  }

  dynamic "rule" {
    for_each = var.hierarchical_namespace ? [] : [1]
    content {
      name    = "old-versions"
      enabled = true
      filters {
        blob_types   = ["blockBlob"]
        prefix_match = ["${var.container}/${local.folder}"]
      }
      actions {
        version {
          delete_after_days_since_creation = var.retention_days
        }
      }
    }
  }
}

# What the platform itself keeps: the package, leases of the schedule, keys. Nobody but the app and who deploys it.
resource "azurerm_storage_account" "host" {
  name                = "${local.short}host${local.digest}"
  resource_group_name = local.group
  location            = var.location
  tags                = local.tags

  account_kind             = "StorageV2"
  account_tier             = "Standard"
  account_replication_type = "LRS"

  min_tls_version                  = "TLS1_2"
  https_traffic_only_enabled       = true
  allow_nested_items_to_be_public  = false
  shared_access_key_enabled        = false
  default_to_oauth_authentication  = true
  cross_tenant_replication_enabled = false
  local_user_enabled               = false
}

resource "azurerm_storage_container" "package" {
  name                  = "package"
  storage_account_id    = azurerm_storage_account.host.id
  container_access_type = "private"
}
