# The gateways whose verified callers the API accepts as principals of its realm.

locals {
  vending = coalesce(var.vending, local.has_realm)

  # A function URL gets its id after the function whose environment needs it. Until then the environment has an id that
  # no API has, and every request is answered 401.
  gateway_id = coalesce(
    one(aws_apigatewayv2_api.api[*].id),
    one(aws_api_gateway_rest_api.api[*].id),
    var.function_url_id,
    "none",
  )

  gateway_settings = merge(
    { ARCO_GATEWAY_APIS = local.gateway_id, ARCO_GATEWAY_PRINCIPAL_CLAIM = var.gateway_principal_claim },
    var.gateway_roles_claim == null ? {} : { ARCO_GATEWAY_ROLES_CLAIM = var.gateway_roles_claim },
  )
}

check "function_url_is_believed" {
  assert {
    condition     = !(local.function_url && contains(var.auth, "gateway")) || var.function_url_id != null
    error_message = "Every request is answered 401 until function_url_id is set to the output of that name, and applied."
  }
}
