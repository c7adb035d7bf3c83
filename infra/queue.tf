# Queued work: what failed five times is kept for two weeks, and an alarm tells of it. Each message has a function's whole
# time; a purge that needs more is gone on with by a message of its own.

resource "aws_sqs_queue" "work" {
  name                       = "${var.name}-work"
  visibility_timeout_seconds = 6 * local.functions.work.timeout # as AWS advises: a throttled function's retries fit in
  sqs_managed_sse_enabled    = true
  tags                       = local.tags

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.work_dead.arn
    maxReceiveCount     = 5
  })
}

resource "aws_sqs_queue" "work_dead" {
  name                      = "${var.name}-work-dead"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
  tags                      = local.tags
}

resource "aws_lambda_event_source_mapping" "work" {
  event_source_arn        = aws_sqs_queue.work.arn
  function_name           = aws_lambda_alias.live["work"].arn
  batch_size              = 1
  function_response_types = ["ReportBatchItemFailures"]
  tags                    = local.tags

  scaling_config {
    maximum_concurrency = 5
  }
}
