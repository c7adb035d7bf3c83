# Which gateway there is, and what the rest of the module asks of it. Each kind has a file of its own.

locals {
  http_api     = var.endpoint == "http-api"
  rest_api     = var.endpoint == "rest-api"
  function_url = var.endpoint == "function-url"

  # All that there is, /v1/config included: whatever else is asked for a gateway answers with 404. Below /polaris lie
  # generic tables, policies and semantic models, below /api what OpenLineage sends, the management of a realm, and its
  # catalogs once more, where Polaris has them. Without a realm the catalog itself answers that there is none.
  paths = ["v1", "polaris", "api"]
  # And what describes all of that.
  document = "openapi.json"
  routes   = merge({ for path in local.paths : path => "ANY" }, { (local.document) = "GET" })

  front_door = {
    http-api = {
      url           = one(aws_apigatewayv2_api.api[*].api_endpoint)
      callable_arns = [for path in local.paths : "${one(aws_apigatewayv2_api.api[*].execution_arn) == null ? "" : one(aws_apigatewayv2_api.api[*].execution_arn)}/*/*/${path}/*"]
      signing_name  = "execute-api"
      namespace     = "AWS/ApiGateway"
      errors        = "5xx"
      requests      = "Count"
      latency       = "Latency"
      dimensions    = { ApiId = one(aws_apigatewayv2_api.api[*].id) }
    }
    rest-api = {
      url           = one(aws_api_gateway_stage.api[*].invoke_url)
      callable_arns = [for path in local.paths : "${one(aws_api_gateway_rest_api.api[*].execution_arn) == null ? "" : one(aws_api_gateway_rest_api.api[*].execution_arn)}/*/*/${path}/*"]
      signing_name  = "execute-api"
      namespace     = "AWS/ApiGateway"
      errors        = "5XXError"
      requests      = "Count"
      latency       = "Latency"
      dimensions    = { ApiName = one(aws_api_gateway_rest_api.api[*].name), Stage = local.rest_stage }
    }
    function-url = {
      url           = trimsuffix(one(aws_lambda_function_url.api[*].function_url) == null ? "" : one(aws_lambda_function_url.api[*].function_url), "/")
      callable_arns = ["${local.lambda_arn}:${var.name}-api:${local.alias}"]
      signing_name  = "lambda"
      namespace     = "AWS/Lambda"
      errors        = "Url5xxCount"
      requests      = "UrlRequestCount"
      latency       = "UrlRequestLatency"
      dimensions    = { FunctionName = "${var.name}-api" }
    }
  }[var.endpoint]
}

resource "aws_cloudwatch_log_group" "access" {
  count = var.access_logs && !local.function_url ? 1 : 0

  name              = "/aws/vendedlogs/${var.name}-access"
  retention_in_days = var.log_retention_days
  tags              = local.tags
}
