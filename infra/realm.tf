# What the API is told of its realm, and whom it believes.

locals {
  vending = coalesce(var.vending, local.has_realm)

  # A function URL gets its id after the function that would have to be told of it. Until then it is told of one that no
  # API has, and lets nobody in.
  gateway_id = coalesce(
    one(aws_apigatewayv2_api.api[*].id),
    one(aws_api_gateway_rest_api.api[*].id),
    var.function_url_id,
    "none",
  )

  realm_settings = local.has_realm ? merge(
    { ARCO_AUTH = join(",", var.auth) },
    contains(var.auth, "gateway") ? merge(
      { ARCO_GATEWAY_APIS = local.gateway_id, ARCO_GATEWAY_PRINCIPAL_CLAIM = var.gateway_principal_claim },
      var.gateway_roles_claim == null ? {} : { ARCO_GATEWAY_ROLES_CLAIM = var.gateway_roles_claim },
    ) : {},
    contains(var.auth, "internal") ? {
      ARCO_TOKEN_KEY_SECRET = local.token_key_secret
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

check "function_url_is_believed" {
  assert {
    condition     = !(local.function_url && contains(var.auth, "gateway")) || var.function_url_id != null
    error_message = "Everybody is answered 401 until function_url_id is set to the output of that name, and applied."
  }
}
