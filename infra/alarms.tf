locals {
  function_alarms = merge([
    for function in keys(local.functions) : {
      "${function}-errors"    = { function = function, metric = "Errors", what = "ended with an error or ran out of time" }
      "${function}-throttles" = { function = function, metric = "Throttles", what = "was refused for want of concurrency" }
    }
  ]...)
  dead_letters = merge(
    { for function, queue in aws_sqs_queue.run_dead : function => queue.name },
    { work = aws_sqs_queue.work_dead.name },
    { for queue in aws_sqs_queue.pipeline_dead : "pipeline" => queue.name },
  )

  # Four runs of the reconciler an hour, twelve of tasks: one that reached the end is enough, none at all is not, whatever
  # kept them from saying so. These wait for a line of the module's own catalog, since those of others would hide that it
  # is silent. Whatever is told of any catalog of a realm is told without a dimension as well.
  catalog_alarms = local.metrics_namespace == "" ? {} : {
    "reconcile-age" = {
      says      = "No walk of the reconciler has reached its end for an hour", metric = "ReconcileCompleted", of_any = false
      statistic = "Sum", comparison = "LessThanThreshold", threshold = 1, seconds = 3600, periods = 1, silence = "breaching"
    }
    "collect-age" = {
      says      = "No collection has reached its end for two days", metric = "CollectionCompleted", of_any = false
      statistic = "Sum", comparison = "LessThanThreshold", threshold = 1, seconds = 86400, periods = 2, silence = "breaching"
    }
    "tasks-age" = {
      says      = "A task has been due for an hour and nobody is at it, or nobody looks", metric = "TasksDueAge", of_any = false
      statistic = "Maximum", comparison = "GreaterThanThreshold", threshold = 3600, seconds = 900, periods = 1, silence = "breaching"
    }
    "tasks-due" = {
      says      = "A task of some catalog has been due for an hour and nobody is at it", metric = "TasksDueAge", of_any = true
      statistic = "Maximum", comparison = "GreaterThanThreshold", threshold = 3600, seconds = 900, periods = 1, silence = "notBreaching"
    }
    "tasks-failed" = {
      says      = "A task has failed for good: arco tasks says why", metric = "TasksFailed", of_any = true
      statistic = "Sum", comparison = "GreaterThanOrEqualToThreshold", threshold = 1, seconds = 300, periods = 1, silence = "notBreaching"
    }
    "leases-lost" = {
      says      = "Workers died, or stood still, over their tasks", metric = "LeasesLost", of_any = true
      statistic = "Sum", comparison = "GreaterThanOrEqualToThreshold", threshold = 1, seconds = 3600, periods = 1, silence = "notBreaching"
    }
    "state-size" = {
      says      = "The catalog's state has more objects than it should: collection does not keep up", metric = "StateObjects", of_any = true
      statistic = "Maximum", comparison = "GreaterThanThreshold", threshold = var.max_state_objects, seconds = 86400, periods = 1, silence = "notBreaching"
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "server_errors" {
  alarm_name          = "${var.name}-5xx"
  alarm_description   = "The catalog answers with 5xx"
  evaluation_periods  = 1
  threshold           = 5
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = local.tags

  # A client that retries a commit under a key older than a day is answered with 500, as the specification wants it for
  # an unknown outcome. That is no failure of the catalog, and the gateway can't distinguish it.
  dynamic "metric_query" {
    for_each = local.metrics_namespace == "" ? [] : ["failures"]

    content {
      id          = "failures"
      expression  = "errors - FILL(stale, 0)"
      label       = "5xx but those for stale keys"
      return_data = true
    }
  }

  metric_query {
    id          = "errors"
    return_data = local.metrics_namespace == ""

    metric {
      namespace   = local.front_door.namespace
      metric_name = local.front_door.errors
      dimensions  = local.front_door.dimensions
      stat        = "Sum"
      period      = 300
    }
  }

  dynamic "metric_query" {
    for_each = local.metrics_namespace == "" ? [] : ["stale"]

    content {
      id          = "stale"
      return_data = false

      metric {
        namespace   = local.metrics_namespace
        metric_name = "StaleKeys"
        stat        = "Sum"
        period      = 300
      }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "function" {
  for_each = local.function_alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = "Function ${var.name}-${each.value.function} ${each.value.what}"
  namespace           = "AWS/Lambda"
  metric_name         = each.value.metric
  dimensions          = { FunctionName = "${var.name}-${each.value.function}" }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "catalog" {
  for_each = local.catalog_alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.says
  namespace           = local.metrics_namespace
  metric_name         = each.value.metric
  dimensions          = each.value.of_any ? {} : { Warehouse = var.warehouse }
  statistic           = each.value.statistic
  period              = each.value.seconds
  evaluation_periods  = each.value.periods
  threshold           = each.value.threshold
  comparison_operator = each.value.comparison
  treat_missing_data  = each.value.silence
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "dead_letters" {
  for_each = local.dead_letters

  alarm_name          = "${var.name}-${each.key}-dead-letters"
  alarm_description   = "Something was given up: look into queue ${each.value}"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = each.value }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 1
  threshold           = 0
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = local.tags
}
