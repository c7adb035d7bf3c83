# The reconciler, every 15 minutes. A run that fails is not repeated: the next one takes up what it left.

resource "aws_scheduler_schedule" "reconcile" {
  name                = "${var.name}-reconcile"
  description         = "See that every commit has its receipt"
  schedule_expression = "rate(15 minutes)"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_lambda_alias.live["reconcile"].arn
    role_arn = aws_iam_role.schedule.arn
    retry_policy {
      maximum_event_age_in_seconds = 900
      maximum_retry_attempts       = 2
    }
    dead_letter_config {
      arn = aws_sqs_queue.reconcile_dead.arn
    }
  }

  depends_on = [aws_iam_role_policy.schedule]
}

resource "aws_lambda_function_event_invoke_config" "reconcile" {
  function_name                = aws_lambda_function.function["reconcile"].function_name
  qualifier                    = aws_lambda_alias.live["reconcile"].name
  maximum_event_age_in_seconds = 900
  maximum_retry_attempts       = 0

  destination_config {
    on_failure {
      destination = aws_sqs_queue.reconcile_dead.arn
    }
  }
}

resource "aws_sqs_queue" "reconcile_dead" {
  name                      = "${var.name}-reconcile-dead"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
  tags                      = local.tags
}

resource "aws_iam_role" "schedule" {
  name               = "${var.name}-schedule"
  assume_role_policy = data.aws_iam_policy_document.assume_schedule.json
  tags               = local.tags
}

data "aws_iam_policy_document" "assume_schedule" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["scheduler.amazonaws.com"]
    }
    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

resource "aws_iam_role_policy" "schedule" {
  name   = "reconcile"
  role   = aws_iam_role.schedule.id
  policy = data.aws_iam_policy_document.schedule.json
}

data "aws_iam_policy_document" "schedule" {
  statement {
    sid       = "StartRuns"
    actions   = ["lambda:InvokeFunction"]
    resources = ["${local.lambda_arn}:${var.name}-reconcile:${local.alias}"]
  }
  statement {
    sid       = "KeepWhatCouldNotStart"
    actions   = ["sqs:SendMessage"]
    resources = ["${local.queue_arn}:${var.name}-reconcile-dead"]
  }
}
