# The catalog with a storage account of its own, called by applications of Entra ID that are named.

variable "location" {
  description = "Where it runs."
  type        = string
  default     = "westeurope"
}

variable "client_id" {
  description = "Client id of the app registration that tokens are for."
  type        = string
}

variable "engines" {
  description = "Client ids of the applications that may call, and object ids of their service principals, which read and write tables."
  type        = map(string)
}

provider "azurerm" {
  features {}
  storage_use_azuread = true # the accounts take no keys
}

module "catalog" {
  source = "../.."

  name     = "lake"
  location = var.location
  entra = {
    client_id    = var.client_id
    applications = keys(var.engines)
  }
  engine_principal_ids = values(var.engines)
}

output "catalog" {
  value = module.catalog
}
