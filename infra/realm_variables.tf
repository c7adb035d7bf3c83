# A realm: who is let in, and what they may read. Named after the ARCO_... variables of docs/configuration.md. What goes
# with which `authorization` is said there.

variable "auth" {
  description = "How callers of a realm are known: gateway (whom the endpoint verified), internal (clients with an id and a secret), oidc (tokens of other issuers). Empty: no realm, and whoever the endpoint lets in may do everything. `arco bootstrap` makes the realm."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for kind in var.auth : contains(["gateway", "internal", "oidc"], kind)]) && length(distinct(var.auth)) == length(var.auth)
    error_message = "auth must list gateway, internal or oidc, each once. A function lets in nobody unasked, so none is no choice."
  }
}

variable "realm" {
  description = "Folders of the store with the realms, where it has several; the first is that of requests that name none. Empty: the store has one realm, at its root."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for name in var.realm : can(regex("^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$", name))]) && length(distinct(var.realm)) == length(var.realm)
    error_message = "realm must list names of 1 to 128 letters, digits, dots, hyphens and underscores that begin with a letter or a digit, each once."
  }
  validation {
    condition     = length(var.realm) == 0 || local.has_realm
    error_message = "realm is set, and nobody would be let in: set auth too."
  }
}

# Tokens of one's own

variable "token_key_secret" {
  description = "ARN, whole as AWS shows it, of a secret of Secrets Manager or a parameter of the Parameter Store with the keys that sign tokens, for auth with internal. Null: see generate_token_key."
  type        = string
  default     = null

  validation {
    condition     = can(regex("^arn:aws[a-z-]*:(secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}|ssm:[a-z0-9-]+:[0-9]{12}:parameter/[A-Za-z0-9/_.-]+)$", coalesce(var.token_key_secret, "arn:aws:ssm:r:000000000000:parameter/none")))
    error_message = "token_key_secret must be the whole ARN of a secret (with the six characters that Secrets Manager adds) or of a parameter."
  }
}

variable "token_key_kms_key_arn" {
  description = "Key of KMS that token_key_secret is encrypted with, if it is one of your own."
  type        = string
  default     = null
}

variable "generate_token_key" {
  description = "Let Secrets Manager make the key, and keep it. It is in no plan and in no state of Terraform's."
  type        = bool
  default     = false

  validation {
    condition     = !contains(var.auth, "internal") || (var.token_key_secret != null) != var.generate_token_key
    error_message = "auth with internal needs a key to sign tokens with: set just one of token_key_secret and generate_token_key = true."
  }
  validation {
    condition     = contains(var.auth, "internal") || (var.token_key_secret == null && !var.generate_token_key)
    error_message = "There is a key to sign tokens with, and auth without internal signs none."
  }
}

variable "token_key_version" {
  description = "A higher number replaces the key that was generated: tokens signed with the old one end within 15 minutes."
  type        = number
  default     = 1
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

# Tokens of other issuers

variable "oidc_issuers" {
  description = "Issuers whose tokens the function takes, as https URLs, or REALM=URL for another realm than the first."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for issuer in var.oidc_issuers : can(regex("^([A-Za-z0-9][A-Za-z0-9._-]*=)?https://[^\\s,=?#]+$", issuer))])
    error_message = "oidc_issuers must be URLs that begin with https://, without commas, = ? and #, or such with REALM= in front."
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

# Whom the endpoint verified

variable "gateway_principal_claim" {
  description = "Claim of tokens that the endpoint verified (authorization = \"jwt\") that says who it is."
  type        = string
  default     = "sub"
}

variable "gateway_roles_claim" {
  description = "Claim of these that names the principal roles to activate. Null: all are activated."
  type        = string
  default     = null
}

variable "function_url_id" {
  description = "The output function_url_id, for auth = [\"gateway\"] behind a function URL. AWS makes the id after the function, so the first apply can't know it: until it is set everybody is answered 401."
  type        = string
  default     = null

  validation {
    condition     = can(regex("^[a-z0-9]+$", coalesce(var.function_url_id, "id")))
    error_message = "function_url_id must be the id alone: what is before .lambda-url in the URL."
  }
}

# What engines may read and write

variable "vending" {
  description = "Give engines credentials for the tables that they were granted, and nothing else: then nobody else has a right on tables' files. Null: where there is a realm."
  type        = bool
  default     = null

  validation {
    condition     = var.vending != true || local.has_realm
    error_message = "vending = true needs a realm: without grants there is nothing to give credentials by. Set auth too."
  }
}

variable "reader_role_arns" {
  description = "Roles of this account that read all tables' files with rights of their own, whatever was granted in the realm."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.reader_role_arns : can(regex("^arn:aws[a-z-]*:iam::${local.account}:role/[^*?]+$", arn))])
    error_message = "reader_role_arns must be ARNs of roles of this account, without * and ?."
  }
}

variable "writer_role_arns" {
  description = "Roles of this account that read and write all tables' files with rights of their own, whatever was granted in the realm."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.writer_role_arns : can(regex("^arn:aws[a-z-]*:iam::${local.account}:role/[^*?]+$", arn))])
    error_message = "writer_role_arns must be ARNs of roles of this account, without * and ?."
  }
}
