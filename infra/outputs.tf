output "url" {
  description = "What engines take as `uri`."
  value       = local.front_door.url
}

output "bucket" {
  description = "The bucket that holds everything."
  value       = local.own_bucket ? aws_s3_bucket.store[0].id : var.bucket
}

output "store" {
  description = "The store as `arco` commands take it (--store)."
  value       = local.store
}

output "functions" {
  description = "Names of the functions."
  value       = { for key, function in aws_lambda_function.function : key => function.function_name }
}

output "versions" {
  description = "The version that each function's alias names: what to go back to."
  value       = { for key, function in aws_lambda_function.function : key => function.version }
}

output "work_queue_url" {
  description = "Where work is queued."
  value       = aws_sqs_queue.work.url
}

output "settings" {
  description = "What to paste into spark, pyiceberg and trino."
  value       = local.to_paste
}

output "engine_policy_json" {
  description = "IAM policy for an engine's role: to call the catalog, and to read and write its tables."
  value       = data.aws_iam_policy_document.engine.json
}

output "bucket_policy_json" {
  description = "The bucket's policy. Merge it into that of an existing bucket, which this module does not touch."
  value       = data.aws_iam_policy_document.bucket.json
}

output "emr" {
  description = "The EMR Serverless application and the role of its jobs, if there is one."
  value = var.emr == null ? null : {
    application_id = aws_emrserverless_application.spark[0].id
    role_arn       = aws_iam_role.spark[0].arn
  }
}
