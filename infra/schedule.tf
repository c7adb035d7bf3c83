# What runs by the clock. A run that fails is not repeated: the next one takes up what it left.

locals {
  scheduled = {
    reconcile = { every = "15 minutes", says = "See that every commit has its receipt", message = null }
    collect   = { every = "1 day", says = "Delete what nothing leads to any more", message = { version = 1, work = "collect" } }
  }
}

resource "aws_scheduler_schedule" "run" {
  for_each = local.scheduled

  name                = "${var.name}-${each.key}"
  description         = each.value.says
  schedule_expression = "rate(${each.value.every})"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_lambda_alias.live[each.key].arn
    role_arn = aws_iam_role.schedule.arn
    input    = each.value.message == null ? null : jsonencode(each.value.message)
    retry_policy {
      maximum_event_age_in_seconds = 900
      maximum_retry_attempts       = 2
    }
    dead_letter_config {
      arn = aws_sqs_queue.run_dead[each.key].arn
    }
  }

  depends_on = [aws_iam_role_policy.schedule]
}

resource "aws_lambda_function_event_invoke_config" "run" {
  for_each = local.scheduled

  function_name                = aws_lambda_function.function[each.key].function_name
  qualifier                    = aws_lambda_alias.live[each.key].name
  maximum_event_age_in_seconds = 900
  maximum_retry_attempts       = 0

  destination_config {
    on_failure {
      destination = aws_sqs_queue.run_dead[each.key].arn
    }
  }
}

resource "aws_sqs_queue" "run_dead" {
  for_each = local.scheduled

  name                      = "${var.name}-${each.key}-dead"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
  tags                      = local.tags
}

# Tasks that are due, or whose worker died. A drop sends such a message itself if its task is due within 15 minutes.
resource "aws_scheduler_schedule" "tasks" {
  name                = "${var.name}-tasks"
  description         = "Work on the tasks that are due"
  schedule_expression = "rate(5 minutes)"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_sqs_queue.work.arn
    role_arn = aws_iam_role.schedule.arn
    input    = jsonencode({ version = 1, work = "tasks" })
    retry_policy {
      maximum_event_age_in_seconds = 300
      maximum_retry_attempts       = 2
    }
  }

  depends_on = [aws_iam_role_policy.schedule]
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
    resources = [for function in keys(local.scheduled) : "${local.lambda_arn}:${var.name}-${function}:${local.alias}"]
  }
  statement {
    sid       = "QueueWork"
    actions   = ["sqs:SendMessage"]
    resources = [local.work_queue]
  }
  statement {
    sid       = "KeepWhatCouldNotStart"
    actions   = ["sqs:SendMessage"]
    resources = [for function in keys(local.scheduled) : "${local.queue_arn}:${var.name}-${function}-dead"]
  }
}
