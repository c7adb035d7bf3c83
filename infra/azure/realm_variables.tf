# A realm: who is let in, and what they may read. Named after the ARCO_... variables of docs/configuration.md.

variable "auth" {
  description = "How callers of a realm are known: gateway (whom App Service verified), internal (clients with an id and a secret), oidc (tokens of other issuers). Empty: no realm, and whoever App Service lets in may do everything. `arco bootstrap` makes the realm."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for kind in var.auth : contains(["gateway", "internal", "oidc"], kind)]) && length(distinct(var.auth)) == length(var.auth)
    error_message = "auth must list gateway, internal or oidc, each once."
  }
  validation {
    condition     = contains(var.auth, "internal") == (var.token_key_secret != null && var.token_key_vault_id != null)
    error_message = "auth with internal needs token_key_secret and token_key_vault_id, the key to sign tokens with, and they need auth with internal."
  }
}

variable "token_key_secret" {
  description = "Secret of a Key Vault, as https://V.vault.azure.net/secrets/S, with the keys that sign tokens, for auth with internal. It is made by you, so that no key is in Terraform's state."
  type        = string
  default     = null

  validation {
    condition     = can(regex("^https://[a-zA-Z0-9-]+[.]vault[.]azure[.]net/secrets/[A-Za-z0-9-]+$", coalesce(var.token_key_secret, "https://v.vault.azure.net/secrets/s")))
    error_message = "token_key_secret must be of the form https://V.vault.azure.net/secrets/S."
  }
}

variable "token_key_vault_id" {
  description = "Resource id of that Key Vault, which must take roles (RBAC)."
  type        = string
  default     = null
}

variable "token_audience" {
  description = "Audience of own tokens: deployments that share a key take only their own."
  type        = string
  default     = "arco-catalog"
}

variable "token_lifetime" {
  description = "Seconds until own tokens expire."
  type        = number
  default     = 3600

  validation {
    condition     = var.token_lifetime >= 10 && var.token_lifetime <= 86400
    error_message = "token_lifetime must be 10 to 86400 seconds."
  }
}

variable "oidc_issuers" {
  description = "Issuers whose tokens the app takes, as https URLs."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for issuer in var.oidc_issuers : can(regex("^https://[^\\s,=?#]+$", issuer))])
    error_message = "oidc_issuers must be URLs that begin with https://, without commas, = ? and #."
  }
  validation {
    condition     = contains(var.auth, "oidc") == (length(var.oidc_issuers) > 0)
    error_message = "auth with oidc needs oidc_issuers, and they need auth with oidc."
  }
}

variable "oidc_audiences" {
  description = "Audiences of which a token of theirs must have one."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for audience in var.oidc_audiences : can(regex("^[^\\s,]+$", audience))])
    error_message = "oidc_audiences must be without commas and spaces."
  }
  validation {
    condition     = contains(var.auth, "oidc") == (length(var.oidc_audiences) > 0)
    error_message = "auth with oidc needs oidc_audiences: a token for another service must not open this one."
  }
}

variable "oidc_algorithms" {
  description = "Algorithms by which they may sign."
  type        = list(string)
  default     = ["RS256", "ES256", "EdDSA"]

  validation {
    condition     = length(var.oidc_algorithms) > 0 && alltrue([for name in var.oidc_algorithms : contains(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"], name)])
    error_message = "oidc_algorithms must be RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 or EdDSA."
  }
}

variable "oidc_principal_claim" {
  description = "Claim of their tokens that says who it is."
  type        = string
  default     = "sub"
}

variable "oidc_roles_claim" {
  description = "Claim that names the principal roles to activate, such as roles. Null: all are activated."
  type        = string
  default     = null
}

variable "vending" {
  description = "Give engines credentials for the tables that they were granted, and nothing else: then nobody else has a right on tables' files. Null: where there is a realm, and a hierarchical namespace."
  type        = bool
  default     = null

  validation {
    condition     = var.vending != true || local.has_realm
    error_message = "vending = true needs a realm: without grants there is nothing to give credentials by. Set auth too."
  }
  validation {
    condition     = var.vending != true || var.hierarchical_namespace
    error_message = "vending = true needs hierarchical_namespace: Azure signs for no folder in a flat account."
  }
}
