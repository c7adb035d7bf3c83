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
  description = "IAM policy for an engine's role: to call the catalog, if requests are signed, and to read and write its tables, if the catalog vends no credentials. Null where an engine needs neither."
  value       = var.authorization == "iam" || !local.vending ? data.aws_iam_policy_document.engine.json : null
}

output "bucket_policy_json" {
  description = "The bucket's policy. Merge it into that of an existing bucket, which this module does not touch."
  value       = data.aws_iam_policy_document.bucket.json
}

output "reader_policy_json" {
  description = "IAM policy to read all tables' files with rights of one's own."
  value       = data.aws_iam_policy_document.files["reader"].json
}

output "writer_policy_json" {
  description = "IAM policy to read and write all tables' files with rights of one's own."
  value       = data.aws_iam_policy_document.files["writer"].json
}

output "function_url_id" {
  description = "What to set function_url_id to, if auth holds gateway behind a function URL."
  value       = one(aws_lambda_function_url.api[*].url_id)
}

output "token_key_secret" {
  description = "The secret with the keys that sign tokens, if there is one."
  value       = local.token_key_secret
}

output "storage" {
  description = "What catalogs are made with: where their tables go (a folder in new_catalogs each), and their storageConfigInfo."
  value = {
    new_catalogs = local.new_catalogs
    storageConfigInfo = merge(
      { storageType = "S3", region = local.region },
      local.vending ? { roleArn = local.vending_role_arn } : {},
      var.kms_key_arn == null ? {} : { currentKmsKey = var.kms_key_arn },
    )
  }
}

output "emr" {
  description = "The EMR Serverless application and the role of its jobs, if there is one."
  value = var.emr == null ? null : {
    application_id = aws_emrserverless_application.spark[0].id
    role_arn       = aws_iam_role.spark[0].arn
    pipeline_role  = one(aws_iam_role.pipeline[*].arn)
    collect_role   = one(aws_iam_role.spark_collect[*].arn)
    fsck_role      = one(aws_iam_role.spark_fsck[*].arn)
  }
}
