# Made by `python -m tools.terraform` from arco_catalog/config/variables.py: do not edit.

variable "name" {
  description = "Prefix of the names of everything that is made. One deployment in an account or project has it."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,17}[a-z0-9]$", var.name))
    error_message = "name must be 3 to 19 lower-case letters, digits and hyphens: it becomes part of a service account's name."
  }
}

variable "prefix" {
  description = "Folder of the store in its bucket or container, without slashes at its ends. Empty: the whole of it."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^([A-Za-z0-9_=.-]+(/[A-Za-z0-9_=.-]+)*)?$", var.prefix))
    error_message = "prefix must be folder names joined by slashes, of letters, digits and _ = . -"
  }
  validation {
    condition     = alltrue([for folder in split("/", var.prefix) : !contains([".", ".."], folder)])
    error_message = "prefix must not hold . or .. as a folder: the catalog does not start with one."
  }
}

variable "environment" {
  description = "More environment variables. They do not replace the module's own."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.environment) : !can(regex("^ARCO_(AUTH|AUTHORIZATION|REALM|TOKEN_.*|OIDC_.*)$", name))])
    error_message = "environment must not hold ARCO_AUTH, ARCO_REALM, ARCO_TOKEN_... or ARCO_OIDC_...: the variables of those names grant the service the rights that go with them, and a key in the environment would lie in Terraform's state."
  }
  validation {
    condition     = alltrue([for variable in keys(var.environment) : !contains(["PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION"], variable)])
    error_message = "environment must not hold PORT or K_...: Cloud Run sets them."
  }
}

variable "max_state_objects" {
  description = "Objects of the catalog's state above which an alarm reports that collection does not keep up: a commit adds about four, for 90 days."
  type        = number
  default     = 5000000
}

variable "allow_unauthenticated" {
  description = "Confirms that authorization = \"none\" is intended."
  type        = bool
  default     = false
}

variable "noncurrent_days" {
  description = "Days for which replaced and deleted versions of objects remain: how far back the store can be restored."
  type        = number
  default     = 30

  validation {
    condition     = var.noncurrent_days >= 1
    error_message = "noncurrent_days must be at least 1."
  }
}

variable "force_destroy" {
  description = "Let `terraform destroy` delete a bucket that was made although there is data in it."
  type        = bool
  default     = false
}

variable "labels" {
  description = "Labels of everything that takes them."
  type        = map(string)
  default     = {}
}

variable "warehouse" {
  description = "Name of the catalog, which engines give as `warehouse`: a folder below the prefix."
  type        = string
  default     = "main"

  validation {
    condition     = can(regex("^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$", var.warehouse))
    error_message = "warehouse must be 1 to 64 letters, digits, hyphens and underscores, and not begin with a hyphen."
  }
  validation {
    condition     = var.warehouse != "catalogs"
    error_message = "warehouse must not be catalogs: tables of a realm's other catalogs lie in that folder."
  }
  validation {
    condition     = var.warehouse != "_probe"
    error_message = "warehouse must not be _probe: that folder expires after a day."
  }
}

variable "allowed_locations" {
  description = "Folders outside the warehouse where tables may live, as gs://bucket/folder. Sixteen at most: a bucket takes twenty conditions for one account and role."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for location in var.allowed_locations : can(regex("^gs://[a-z0-9._-]+(/[^*?#\\[\\]\"\\\\%,/\\s]+)+$", location))])
    error_message = "allowed_locations must be of the form gs://bucket/folder, without * ? # [ ] % , quotes, backslashes and spaces, and without a slash at the end."
  }
  validation {
    condition     = length(var.allowed_locations) <= 16
    error_message = "allowed_locations must be sixteen at most."
  }
  validation {
    condition     = alltrue([for location in var.allowed_locations : !startswith("${local.state}/", "${location}/") && !startswith("${location}/", "${local.state}/")])
    error_message = "allowed_locations must not hold the catalog's state or lie in it: engines may delete objects there."
  }
  validation {
    condition     = alltrue([for location in var.allowed_locations : length(setintersection(split("/", location), local.reserved_folders)) == 0 && !startswith("${local.realm}/", "${location}/")])
    error_message = "allowed_locations must not hold the realm's state, nor lie in a folder named _catalog, _probe, _realm or .arco-store: no table may be there."
  }
}

variable "allow_location_overlap" {
  description = "Allow locations of tables, and of catalogs of a realm, to be inside each other."
  type        = bool
  default     = false
}

variable "idempotency_dialect" {
  description = "Rules for Idempotency-Key: iceberg (a UUIDv7) or polaris (any text); fixed when a catalog is made."
  type        = string
  default     = "iceberg"

  validation {
    condition     = contains(["iceberg", "polaris"], var.idempotency_dialect)
    error_message = "idempotency_dialect must be iceberg or polaris."
  }
}

variable "idempotency_enabled" {
  description = "Accept Idempotency-Key; with false the header is ignored, and the configuration that clients read does not announce it; fixed when a catalog is made."
  type        = bool
  default     = true
}

variable "idempotency_lifetime" {
  description = "How long clients may retry with one Idempotency-Key; a duration such as PT30M, a day at most."
  type        = string
  default     = "PT30M"

  validation {
    condition     = can(regex("^P(1D|T(\\d+H)?(\\d+M)?(\\d+S)?)$", var.idempotency_lifetime)) && can(regex("[1-9]", var.idempotency_lifetime))
    error_message = "idempotency_lifetime must be a duration such as PT30M, P1D at most."
  }
}

variable "idempotency_cleanup_enabled" {
  description = "Let `arco gc` delete markers of old idempotency keys, and the decisions of transactions that these refer to."
  type        = bool
  default     = true
}

variable "purge" {
  description = "What a drop with purge does: mode async, sync or off; how long it can be undone; whether files of other tables are taken to lie in their own locations."
  type = object({
    mode            = optional(string, "async")
    undrop_window   = optional(string, "PT24H")
    trust_locations = optional(bool, false)
  })
  default = {}

  validation {
    condition     = contains(["async", "sync", "off"], var.purge.mode)
    error_message = "purge.mode must be async, sync or off."
  }
  validation {
    condition     = can(regex("^P(\\d+D)?(T(\\d+H)?(\\d+M)?(\\d+S)?)?$", var.purge.undrop_window)) && can(regex("\\d", var.purge.undrop_window))
    error_message = "purge.undrop_window must be a duration such as PT24H, P7D or PT0S."
  }
}

variable "task_properties" {
  description = "How tasks are leased and retried, such as { \"delegation.retry.TABLE_PURGE.max-attempts\" = \"20\" } (docs/configuration.md)."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name, value in var.task_properties : startswith(name, "delegation.") && !strcontains("${name}${value}", ",")])
    error_message = "task_properties must be properties delegation.task... or delegation.retry..., without commas."
  }
}

variable "events" {
  description = "Fill the event feed of each catalog, and send its events to subscriptions, which `arco events subscribe` makes (docs/events.md)."
  type        = bool
  default     = false
}

variable "event_receivers" {
  description = "What the worker may send events to: topics of Pub/Sub, as projects/P/topics/T. Webhooks need no right."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for receiver in var.event_receivers : can(regex("^projects/[a-z][a-z0-9.:-]{4,62}/topics/[A-Za-z][A-Za-z0-9._~+%-]{2,254}$", receiver))])
    error_message = "event_receivers must be topics of Pub/Sub, as projects/P/topics/T."
  }
  validation {
    condition     = length(var.event_receivers) == 0 || var.events
    error_message = "event_receivers needs events = true."
  }
}

variable "log_level" {
  description = "Debug (with a line for each request), info, warning or error."
  type        = string
  default     = "warning"

  validation {
    condition     = contains(["debug", "info", "warning", "error"], lower(var.log_level))
    error_message = "log_level must be debug, info, warning or error."
  }
}

variable "auth" {
  description = "How callers of a realm are authenticated: internal (clients with an id and a secret), oidc (tokens of other issuers). Empty: no realm, and all callers that Cloud Run lets in may do everything. `arco bootstrap` makes the realm."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for kind in var.auth : contains(["internal", "oidc"], kind)]) && length(distinct(var.auth)) == length(var.auth)
    error_message = "auth must list internal or oidc, each once. Cloud Run does not name its callers: gateway is no choice."
  }
  validation {
    condition     = contains(var.auth, "internal") == (var.token_key_secret != null)
    error_message = "auth with internal needs token_key_secret, the key to sign tokens with, and it needs auth with internal."
  }
}

variable "token_key_secret" {
  description = "Secret of Secret Manager, as projects/P/secrets/S, with the keys that sign tokens, for auth with internal. It is made by you: no key is in Terraform's state."
  type        = string
  default     = null

  validation {
    condition     = can(regex("^projects/[a-z0-9:.-]+/secrets/[A-Za-z0-9_-]+$", coalesce(var.token_key_secret, "projects/p/secrets/s")))
    error_message = "token_key_secret must be of the form projects/P/secrets/S."
  }
}

variable "token_audience" {
  description = "Audience of own tokens: deployments that share a key take only their own."
  type        = string
  default     = "arco-catalog"
}

variable "token_lifetime" {
  description = "Seconds until own tokens expire, from 10 to 86400."
  type        = number
  default     = 3600

  validation {
    condition     = var.token_lifetime >= 10 && var.token_lifetime <= 86400
    error_message = "token_lifetime must be 10 to 86400 seconds."
  }
}

variable "oidc_issuers" {
  description = "Issuers whose tokens are accepted, as https URLs."
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
  description = "Audiences of which a token of other issuers must have one."
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
  description = "Algorithms by which other issuers may sign."
  type        = list(string)
  default     = ["RS256", "ES256", "EdDSA"]

  validation {
    condition     = length(var.oidc_algorithms) > 0 && alltrue([for name in var.oidc_algorithms : contains(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"], name)])
    error_message = "oidc_algorithms must be RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 or EdDSA."
  }
}

variable "oidc_principal_claim" {
  description = "Claim of other issuers' tokens that holds the principal's name."
  type        = string
  default     = "sub"
}

variable "oidc_roles_claim" {
  description = "Claim that names the principal roles to activate, such as roles. Null: all are activated."
  type        = string
  default     = null
}

variable "vending" {
  description = "Give engines credentials for the tables that they were granted, and for nothing else: then no other principal has a right on tables' files. Null: where there is a realm."
  type        = bool
  default     = null

  validation {
    condition     = var.vending != true || local.has_realm
    error_message = "vending = true needs a realm: without grants there is nothing to give credentials by. Set auth too."
  }
}
