locals {
  functions = {
    api = {
      handler = "lambda.api.handler"
      timeout = 29 # the gateway gives up after 30 s; the handler's own deadline is 20 s
    }
    reconcile = {
      handler = "lambda.reconcile.handler"
      timeout = 900
    }
    work = {
      handler = "lambda.work.handler"
      timeout = 900
    }
    collect = {
      handler = "lambda.work.handler" # the same jobs, by another role
      timeout = 900
    }
  }

  package = coalesce(var.package, "${path.module}/../dist/arco-catalog-lambda${contains(var.auth, "oidc") ? "-oidc" : ""}${var.console ? "-console" : ""}.zip")

  settings = merge(local.catalog_settings, local.task_settings, {
    ARCO_STORE             = local.store
    ARCO_ENDPOINT          = var.endpoint
    ARCO_SOURCE_PRINCIPALS = join(",", var.source_principals)
    ARCO_METRICS_NAMESPACE = local.metrics_namespace
    ARCO_WORK_QUEUE        = local.work_queue_url
  })
  realms = length(var.realm) == 0 ? {} : { ARCO_REALM = join(",", var.realm) }
  pages  = var.console ? { ARCO_CONSOLE = "true" } : {}
  traces = var.otlp_endpoint == null ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT = var.otlp_endpoint }
}

resource "aws_lambda_function" "function" {
  for_each = local.functions

  function_name = "${var.name}-${each.key}"
  description   = "Iceberg REST catalog ${var.warehouse} in ${local.store}"
  role          = aws_iam_role.function[each.key].arn
  tags          = local.tags

  filename         = local.package
  source_code_hash = filebase64sha256(local.package)
  handler          = each.value.handler
  runtime          = "python3.13"
  architectures    = [var.architecture]
  layers           = var.layers

  memory_size                    = var.memory[each.key]
  timeout                        = each.value.timeout
  reserved_concurrent_executions = coalesce(var.reserved_concurrency[each.key], -1)
  publish                        = true # a version for the alias to name: what SnapStart and a rollback need

  environment {
    variables = merge(var.environment, local.settings, local.realms, each.key == "api" ? merge(local.realm_settings, local.pages) : {}, local.traces)
  }

  tracing_config {
    mode = var.tracing ? "Active" : "PassThrough"
  }

  dynamic "snap_start" {
    for_each = var.snap_start && each.key == "api" ? [1] : []
    content {
      apply_on = "PublishedVersions"
    }
  }

  lifecycle {
    precondition {
      condition     = fileexists(local.package)
      error_message = "There is no package at ${local.package}: `make package` builds it."
    }
    precondition {
      condition = alltrue([
        for pair in setproduct(local.elsewhere, concat(local.state_arns, local.realm_arns)) :
        !startswith(pair[1], "${pair[0]}/") && !startswith("${pair[0]}/", trimsuffix(pair[1], "*"))
      ])
      error_message = "allowed_locations must not hold the catalog's state or lie in it, nor may the folder of new catalogs (catalogs): engines may delete what lies there."
    }
  }

  depends_on = [aws_iam_role_policy.function, aws_cloudwatch_log_group.function]
}

resource "aws_lambda_alias" "live" {
  for_each = local.functions

  name             = local.alias
  description      = "What is called"
  function_name    = aws_lambda_function.function[each.key].function_name
  function_version = aws_lambda_function.function[each.key].version
}

resource "aws_lambda_provisioned_concurrency_config" "api" {
  count = var.provisioned_concurrency > 0 ? 1 : 0

  function_name                     = aws_lambda_function.function["api"].function_name
  qualifier                         = aws_lambda_alias.live["api"].name
  provisioned_concurrent_executions = var.provisioned_concurrency
}

# Under the names that Lambda writes to by itself, so that it makes none without a retention.
resource "aws_cloudwatch_log_group" "function" {
  for_each = local.functions

  name              = "/aws/lambda/${var.name}-${each.key}"
  retention_in_days = var.log_retention_days
  tags              = local.tags
}
