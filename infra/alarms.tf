locals {
  function_alarms = merge([
    for function in keys(local.functions) : {
      "${function}-errors"    = { function = function, metric = "Errors", what = "ended with an error or ran out of time" }
      "${function}-throttles" = { function = function, metric = "Throttles", what = "was refused for want of concurrency" }
    }
  ]...)
  dead_letters = {
    reconcile = aws_sqs_queue.reconcile_dead.name
    work      = aws_sqs_queue.work_dead.name
  }
}

resource "aws_cloudwatch_metric_alarm" "server_errors" {
  alarm_name          = "${var.name}-5xx"
  alarm_description   = "The catalog answers with 5xx"
  namespace           = local.front_door.namespace
  metric_name         = local.front_door.errors
  dimensions          = local.front_door.dimensions
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 1
  threshold           = 5
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = local.tags
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

# Four runs an hour: one that reached the end is enough, none at all is not, whatever kept them from saying so.
resource "aws_cloudwatch_metric_alarm" "reconcile_age" {
  count = local.metrics_namespace == "" ? 0 : 1

  alarm_name          = "${var.name}-reconcile-age"
  alarm_description   = "No walk of the reconciler has reached its end for an hour"
  namespace           = local.metrics_namespace
  metric_name         = "ReconcileCompleted"
  dimensions          = { Warehouse = var.warehouse }
  statistic           = "Sum"
  period              = 3600
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
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
