resource "aws_apigatewayv2_api" "api" {
  count = local.http_api ? 1 : 0

  name          = var.name
  description   = "Iceberg REST catalog ${var.warehouse}"
  protocol_type = "HTTP"
  tags          = local.tags
}

resource "aws_apigatewayv2_integration" "api" {
  count = local.http_api ? 1 : 0

  api_id                 = aws_apigatewayv2_api.api[0].id
  integration_type       = "AWS_PROXY"
  integration_uri        = aws_lambda_alias.live["api"].invoke_arn
  integration_method     = "POST"
  payload_format_version = "2.0"
  timeout_milliseconds   = 30000
}

# Tokens: the keys of an issuer are kept for up to two hours, so a key that it withdraws is believed that long.
resource "aws_apigatewayv2_authorizer" "jwt" {
  count = local.http_api && var.authorization == "jwt" ? 1 : 0

  name             = "jwt"
  api_id           = aws_apigatewayv2_api.api[0].id
  authorizer_type  = "JWT"
  identity_sources = ["$request.header.Authorization"]
  jwt_configuration {
    issuer   = var.jwt.issuer
    audience = var.jwt.audience
  }
}

resource "aws_apigatewayv2_route" "api" {
  for_each = local.http_api ? local.routes : {}

  api_id               = aws_apigatewayv2_api.api[0].id
  route_key            = "${each.value} /${each.key}${each.key == local.document ? "" : "/{proxy+}"}"
  target               = "integrations/${aws_apigatewayv2_integration.api[0].id}"
  authorization_type   = { iam = "AWS_IAM", jwt = "JWT", none = "NONE" }[var.authorization]
  authorizer_id        = one(aws_apigatewayv2_authorizer.jwt[*].id)
  authorization_scopes = var.authorization == "jwt" ? var.jwt.scopes : null
}

# Where clients log in, as a route of its own: it has a limit of its own.
resource "aws_apigatewayv2_route" "tokens" {
  for_each = toset(local.http_api && contains(var.auth, "internal") ? ["v1", "api/catalog/v1"] : [])

  api_id             = aws_apigatewayv2_api.api[0].id
  route_key          = "POST /${each.key}/oauth/tokens"
  target             = "integrations/${aws_apigatewayv2_integration.api[0].id}"
  authorization_type = "NONE"
}

# The files of the console, which hold no data: a browser loads them before anybody has signed in.
resource "aws_apigatewayv2_route" "console" {
  for_each = toset(local.http_api && var.console ? ["ui", "ui/{proxy+}"] : [])

  api_id             = aws_apigatewayv2_api.api[0].id
  route_key          = "GET /${each.key}"
  target             = "integrations/${aws_apigatewayv2_integration.api[0].id}"
  authorization_type = "NONE"
}

resource "aws_lambda_permission" "http_api_console" {
  count = local.http_api && var.console ? 1 : 0

  statement_id  = "http-api-ui"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.function["api"].function_name
  qualifier     = aws_lambda_alias.live["api"].name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.api[0].execution_arn}/*/*/ui*"
}

resource "aws_apigatewayv2_stage" "api" {
  count = local.http_api ? 1 : 0

  api_id      = aws_apigatewayv2_api.api[0].id
  name        = "$default" # a named one would be in front of each path
  auto_deploy = true
  tags        = local.tags

  default_route_settings {
    throttling_rate_limit    = var.throttling.rate
    throttling_burst_limit   = var.throttling.burst
    detailed_metrics_enabled = false # by route, and CloudWatch charges for each
  }

  # Guesses of secrets are kept slow, whatever else is let through.
  dynamic "route_settings" {
    for_each = aws_apigatewayv2_route.tokens
    content {
      route_key                = route_settings.value.route_key
      throttling_rate_limit    = var.token_throttling.rate
      throttling_burst_limit   = var.token_throttling.burst
      detailed_metrics_enabled = false
    }
  }

  dynamic "access_log_settings" {
    for_each = aws_cloudwatch_log_group.access
    content {
      destination_arn = access_log_settings.value.arn
      # No query, no header: what a client sends there may be a secret. The caller is who signed, with the session of a
      # role, or whom the token is for.
      format = jsonencode({
        time        = "$context.requestTime"
        request     = "$context.requestId"
        method      = "$context.httpMethod"
        path        = "$context.path"
        status      = "$context.status"
        bytes       = "$context.responseLength"
        ms          = "$context.responseLatency"
        functionMs  = "$context.integrationLatency"
        sourceIp    = "$context.identity.sourceIp"
        caller      = var.authorization == "jwt" ? "$context.authorizer.claims.sub" : "$context.identity.userArn"
        error       = "$context.error.message"
        integration = "$context.integrationErrorMessage"
        authorizer  = "$context.authorizer.error"
      })
    }
  }
}

resource "aws_lambda_permission" "http_api" {
  for_each = local.http_api ? local.routes : {}

  statement_id  = each.key == "v1" ? "http-api" : "http-api-${replace(each.key, ".", "-")}"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.function["api"].function_name
  qualifier     = aws_lambda_alias.live["api"].name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.api[0].execution_arn}/*/*/${each.key}${each.key == local.document ? "" : "/{proxy+}"}"
}
