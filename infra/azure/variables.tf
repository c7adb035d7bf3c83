# Variables of this module alone. Those of settings, and others that the modules of all clouds have, are in
# setting_variables.tf.

# What and where

variable "location" {
  description = "Region, one that has the Flex Consumption plan."
  type        = string
}

variable "resource_group_name" {
  description = "An existing resource group. Null makes one, called NAME."
  type        = string
  default     = null
}

variable "storage_account_id" {
  description = "An existing storage account, left as it is: the container must be there. Null makes one for the tables."
  type        = string
  default     = null

  validation {
    condition     = can(regex("^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft.Storage/storageAccounts/[a-z0-9]{3,24}$", coalesce(var.storage_account_id, "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/none")))
    error_message = "storage_account_id must be the resource id of a storage account."
  }
}

variable "container" {
  description = "Container of the store. Made in an account that is made."
  type        = string
  default     = "lake"

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9]|-[a-z0-9]){2,62}$", var.container))
    error_message = "container must be 3 to 63 lower-case letters, digits and single hyphens."
  }
}

# The storage account, if one is made

variable "hierarchical_namespace" {
  description = "Folders that are real (Data Lake Storage Gen2), as engines like them. Such an account keeps no versions: what is overwritten is gone, what is deleted can be restored."
  type        = bool
  default     = true
}

variable "replication" {
  description = "How often and where the account keeps its bytes: LRS, ZRS, GRS, RAGRS, GZRS or RAGZRS."
  type        = string
  default     = "ZRS"

  validation {
    condition     = contains(["LRS", "ZRS", "GRS", "RAGRS", "GZRS", "RAGZRS"], var.replication)
    error_message = "replication must be LRS, ZRS, GRS, RAGRS, GZRS or RAGZRS."
  }
}

variable "retention_days" {
  description = "Days that deleted objects, and replaced versions where there are any, are kept."
  type        = number
  default     = 30

  validation {
    condition     = var.retention_days >= 1 && var.retention_days <= 365
    error_message = "retention_days must be 1 to 365."
  }
}

variable "engine_principal_ids" {
  description = "Object ids of who reads and writes tables: engines' service principals and managed identities. They may read the container, and write and delete in the warehouse's folder of tables."
  type        = set(string)
  default     = []
}

variable "operator_principal_ids" {
  description = "Object ids of people who run `arco` commands that write (reconcile, undrop): they may do what the function app may."
  type        = set(string)
  default     = []
}

# Who may call

variable "authorization" {
  description = "Who may call: entra (bearer tokens of Entra ID, see `entra`) or none."
  type        = string
  default     = "entra"

  validation {
    condition     = contains(["entra", "none"], var.authorization)
    error_message = "authorization must be entra or none."
  }
  validation {
    condition     = !contains(var.auth, "gateway") || var.authorization == "entra"
    error_message = "auth = [\"gateway\"] believes what App Service verified, and authorization = \"none\" verifies nobody: set authorization = \"entra\"."
  }
  validation {
    condition     = length(setintersection(["internal", "oidc"], var.auth)) == 0 || var.authorization == "none"
    error_message = "auth holds internal or oidc, whose tokens the app verifies: App Service would refuse them before that. Set authorization = \"none\"."
  }
  validation {
    condition     = var.authorization != "none" || var.allow_unauthenticated || local.has_realm
    error_message = "authorization = \"none\" opens the catalog to everybody who knows its URL. If that is what you want, set allow_unauthenticated = true."
  }
  validation {
    condition     = var.authorization != "entra" || var.entra != null
    error_message = "authorization = \"entra\" needs entra = { client_id, applications }: the app registration that tokens are for."
  }
  validation {
    condition     = var.authorization != "entra" || var.entra == null || length(concat(try(var.entra.applications, []), try(var.entra.identities, []))) > 0 || var.allow_any_caller || local.has_realm
    error_message = "entra.applications and entra.identities are empty: every application of the tenant could do anything in the catalog. Name those that may call, or say with allow_any_caller = true that this is meant."
  }
  validation {
    condition     = var.authorization == "entra" || var.entra == null
    error_message = "entra is set, and nobody would look at a token: set authorization = \"entra\" too."
  }
}

variable "console" {
  description = "Serve the console, pages for browsers below /ui. They are open to everybody and hold no data: what they show, they request with the token of their user. Needs a package with it (`make console`, then `make package-azure ARGS=--console`)."
  type        = bool
  default     = false

  validation {
    condition     = !var.console || var.authorization == "none"
    error_message = "console = true needs authorization = \"none\" with a realm: App Service refuses a browser that has no token yet."
  }
}

variable "allow_any_caller" {
  description = "Say that entra without applications and identities is meant: every token for the registration may do everything."
  type        = bool
  default     = false
}

variable "entra" {
  description = "The app registration that tokens are for (client_id), and who may call: client ids of applications, object ids of users and service principals. Tenant null: the one that Terraform works in. Audiences: besides the client id and api://CLIENT_ID."
  type = object({
    client_id    = string
    tenant_id    = optional(string)
    audiences    = optional(list(string), [])
    applications = optional(list(string), [])
    identities   = optional(list(string), [])
  })
  default = null

  validation {
    condition     = var.entra == null || can(regex("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", var.entra.client_id))
    error_message = "entra.client_id must be the application (client) id of an app registration, a UUID in lower case."
  }
}

# A realm

variable "token_key_vault_id" {
  description = "Resource id of that Key Vault, which must take roles (RBAC)."
  type        = string
  default     = null
}

# The function app

variable "package" {
  description = "The zip that `make package-azure` builds. Null: dist/arco-catalog-functions.zip of this checkout."
  type        = string
  default     = null
}

variable "memory_mb" {
  description = "MB of an instance: 512, 2048 or 4096."
  type        = number
  default     = 2048

  validation {
    condition     = contains([512, 2048, 4096], var.memory_mb)
    error_message = "memory_mb must be 512, 2048 or 4096."
  }
}

variable "max_instances" {
  description = "How many instances there may be at once."
  type        = number
  default     = 100

  validation {
    condition     = var.max_instances >= 1 && var.max_instances <= 1000
    error_message = "max_instances must be 1 to 1000."
  }
}

variable "always_ready" {
  description = "Instances of the API that are kept warm. Paid by the hour, used or not."
  type        = number
  default     = 0

  validation {
    condition     = var.always_ready >= 0 && var.always_ready <= var.max_instances
    error_message = "always_ready must be 0 to max_instances."
  }
}

# Logs and alerts

variable "log_retention_days" {
  description = "Days that logs are kept: 30 to 730."
  type        = number
  default     = 30

  validation {
    condition     = var.log_retention_days >= 30 && var.log_retention_days <= 730
    error_message = "log_retention_days must be 30 to 730."
  }
}

variable "action_group_ids" {
  description = "Action groups of Azure Monitor that alerts are sent to."
  type        = list(string)
  default     = []
}
