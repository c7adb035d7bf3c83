# Keeps paths as clients encode them, at three and a half times the price of an HTTP API.

locals {
  rest_stage = "catalog"
}

resource "aws_api_gateway_rest_api" "api" {
  count = local.rest_api ? 1 : 0

  name               = var.name
  description        = "Iceberg REST catalog ${var.warehouse}"
  binary_media_types = ["*/*"] # else compressed answers would reach clients in base64
  tags               = local.tags

  endpoint_configuration {
    types = ["REGIONAL"]
  }
}

resource "aws_api_gateway_resource" "path" {
  for_each = toset(local.rest_api ? local.paths : [])

  rest_api_id = aws_api_gateway_rest_api.api[0].id
  parent_id   = aws_api_gateway_rest_api.api[0].root_resource_id
  path_part   = each.key
}

resource "aws_api_gateway_resource" "proxy" {
  for_each = aws_api_gateway_resource.path

  rest_api_id = aws_api_gateway_rest_api.api[0].id
  parent_id   = each.value.id
  path_part   = "{proxy+}"
}

resource "aws_api_gateway_resource" "document" {
  count = local.rest_api ? 1 : 0

  rest_api_id = aws_api_gateway_rest_api.api[0].id
  parent_id   = aws_api_gateway_rest_api.api[0].root_resource_id
  path_part   = local.document
}

locals {
  rest_resources = merge(aws_api_gateway_resource.proxy, { for resource in aws_api_gateway_resource.document : local.document => resource })
}

resource "aws_api_gateway_method" "api" {
  for_each = local.rest_resources

  rest_api_id   = aws_api_gateway_rest_api.api[0].id
  resource_id   = each.value.id
  http_method   = local.routes[each.key]
  authorization = var.authorization == "none" ? "NONE" : "AWS_IAM"
}

resource "aws_api_gateway_integration" "api" {
  for_each = local.rest_resources

  rest_api_id             = aws_api_gateway_rest_api.api[0].id
  resource_id             = each.value.id
  http_method             = aws_api_gateway_method.api[each.key].http_method
  type                    = "AWS_PROXY"
  integration_http_method = "POST"
  uri                     = aws_lambda_alias.live["api"].invoke_arn
  timeout_milliseconds    = 29000
}

resource "aws_api_gateway_deployment" "api" {
  count = local.rest_api ? 1 : 0

  rest_api_id = aws_api_gateway_rest_api.api[0].id
  triggers = {
    redeployment = sha1(jsonencode([
      aws_api_gateway_rest_api.api[0].binary_media_types,
      aws_api_gateway_method.api,
      aws_api_gateway_integration.api,
    ]))
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_api_gateway_stage" "api" {
  count = local.rest_api ? 1 : 0

  rest_api_id          = aws_api_gateway_rest_api.api[0].id
  deployment_id        = aws_api_gateway_deployment.api[0].id
  stage_name           = local.rest_stage
  xray_tracing_enabled = var.tracing
  tags                 = local.tags

  dynamic "access_log_settings" {
    for_each = aws_cloudwatch_log_group.access
    content {
      destination_arn = access_log_settings.value.arn
      format = jsonencode({
        time       = "$context.requestTime"
        request    = "$context.requestId"
        method     = "$context.httpMethod"
        path       = "$context.path"
        status     = "$context.status"
        bytes      = "$context.responseLength"
        ms         = "$context.responseLatency"
        functionMs = "$context.integrationLatency"
        sourceIp   = "$context.identity.sourceIp"
        caller     = "$context.identity.userArn" # with the session of an assumed role
        error      = "$context.error.message"
      })
    }
  }
}

resource "aws_api_gateway_method_settings" "api" {
  count = local.rest_api ? 1 : 0

  rest_api_id = aws_api_gateway_rest_api.api[0].id
  stage_name  = aws_api_gateway_stage.api[0].stage_name
  method_path = "*/*"

  settings {
    throttling_rate_limit  = var.throttling.rate
    throttling_burst_limit = var.throttling.burst
    metrics_enabled        = false # by method, and charged for: those of the stage come anyway
    logging_level          = "OFF"
    data_trace_enabled     = false # bodies are nobody's business
  }
}

resource "aws_lambda_permission" "rest_api" {
  for_each = local.rest_api ? local.routes : {}

  statement_id  = each.key == "v1" ? "rest-api" : "rest-api-${replace(each.key, ".", "-")}"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.function["api"].function_name
  qualifier     = aws_lambda_alias.live["api"].name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_api_gateway_rest_api.api[0].execution_arn}/*/*/${each.key}${each.key == local.document ? "" : "/*"}"
}
