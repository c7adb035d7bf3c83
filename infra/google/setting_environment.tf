# Made by `python -m tools.terraform` from arco_catalog/config/variables.py: do not edit.

locals {
  catalog_settings = {
    ARCO_WAREHOUSE                   = var.warehouse
    ARCO_ALLOWED_LOCATIONS           = join(",", var.allowed_locations)
    ARCO_ALLOW_LOCATION_OVERLAP      = tostring(var.allow_location_overlap)
    ARCO_IDEMPOTENCY_DIALECT         = var.idempotency_dialect
    ARCO_IDEMPOTENCY_ENABLED         = tostring(var.idempotency_enabled)
    ARCO_IDEMPOTENCY_LIFETIME        = var.idempotency_lifetime
    ARCO_IDEMPOTENCY_CLEANUP_ENABLED = tostring(var.idempotency_cleanup_enabled)
    ARCO_LOG_LEVEL                   = var.log_level
  }

  task_settings = {
    ARCO_PURGE_MODE            = var.purge.mode
    ARCO_PURGE_UNDROP_WINDOW   = var.purge.undrop_window
    ARCO_PURGE_TRUST_LOCATIONS = tostring(var.purge.trust_locations)
    ARCO_EVENTS                = tostring(var.events)
    ARCO_TASK_PROPERTIES       = join(",", [for name, value in var.task_properties : "${name}=${value}"])
  }

  realm_settings = local.has_realm ? merge(
    { ARCO_AUTH = join(",", var.auth) },
    contains(var.auth, "internal") ? {
      ARCO_TOKEN_KEY_SECRET = var.token_key_secret
      ARCO_TOKEN_AUDIENCE   = var.token_audience
      ARCO_TOKEN_LIFETIME   = tostring(var.token_lifetime)
    } : {},
    contains(var.auth, "oidc") ? merge(
      {
        ARCO_OIDC_ISSUERS         = join(",", var.oidc_issuers)
        ARCO_OIDC_AUDIENCES       = join(",", var.oidc_audiences)
        ARCO_OIDC_ALGORITHMS      = join(",", var.oidc_algorithms)
        ARCO_OIDC_PRINCIPAL_CLAIM = var.oidc_principal_claim
      },
      var.oidc_roles_claim == null ? {} : { ARCO_OIDC_ROLES_CLAIM = var.oidc_roles_claim },
    ) : {},
  ) : {}
}
