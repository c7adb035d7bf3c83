# Jobs of the pipeline by the clock, on the application of emr.tf, if `emr.schedules` names any (docs/pipeline.md).

locals {
  jobs        = var.emr == null ? {} : var.emr.schedules
  served_jobs = setintersection(keys(local.jobs), ["compact", "maintain"]) # those that go through the catalog's API
  pipeline    = length(local.jobs) > 0
  maintains   = contains(keys(local.jobs), "maintain")
  collects    = contains(keys(local.jobs), "collect")
  checks      = contains(keys(local.jobs), "fsck")
  logs_in_job = contains(var.auth, "internal")

  pipeline_role_name = "${var.name}-pipeline"
  pipeline_role_arn  = "${local.role_arn}/${local.pipeline_role_name}"
  spark_collect_arn  = "${local.role_arn}/${var.name}-pipeline-collect"
  spark_fsck_arn     = "${local.role_arn}/${var.name}-pipeline-fsck"
  job_role_arns      = { for job in keys(local.jobs) : job => lookup({ collect = local.spark_collect_arn, fsck = local.spark_fsck_arn }, job, local.pipeline_role_arn) }
  pipeline_dead      = "${local.queue_arn}:${var.name}-pipeline-dead"

  # Marks on days into which receipts were written later: the only state that the pipeline deletes, but for its hints.
  late_arns    = [for arn in local.state_arns : "${trimsuffix(arn, "*")}events/late/*"]
  missing_arns = flatten([for arn in local.state_arns : [for folder in ["events/*/iceberg/committed", "operational/reconciler"] : "${trimsuffix(arn, "*")}${folder}/*"]])
  realm_asked  = local.has_realm ? local.realm_arns : ["${local.bucket_arn}/${local.folder}_realm/core/commits/*"]
  task_arns    = [for arn in local.state_arns : "${trimsuffix(arn, "*")}tasks/*"]
  manifests    = [for folder in local.table_folders : "${folder}/*.avro"]
  code_arn     = var.emr == null ? "" : "arn:${local.partition}:s3:::${trimprefix(var.emr.code, "s3://")}"
  credential   = try(trimprefix(var.emr.credential, "s3://"), null)

  # How PyIceberg and Iceberg for Spark sign in, and reach files. A secret is in none of it.
  job_properties = merge(
    { "s3.region" = local.region },
    var.authorization == "iam" ? merge(local.signature, { "rest.sigv4-enabled" = "true" }) : {},
  )
  job_spark_properties = merge(
    { "io-impl" = "org.apache.iceberg.aws.s3.S3FileIO", "client.region" = local.region },
    var.authorization == "iam" ? merge(local.signature, { "rest.auth.type" = "sigv4", "rest.auth.sigv4.delegate-auth-type" = "none" }) : {},
    local.vending ? { "header.X-Iceberg-Access-Delegation" = "vended-credentials" } : {},
  )

  # Known before anything is made, but for where the catalog answers.
  job_arguments = {
    for job in keys(local.jobs) : job => concat(
      [job, "--store", trimsuffix("s3://${local.bucket}/${local.roots[0]}", "/"), "--warehouse", var.warehouse],
      [for location in var.allowed_locations : "--allowed-location=${location}"],
      contains(local.served_jobs, job) ? [for name, value in local.job_properties : "--property=${name}=${value}"] : [],
      job == "maintain" ? [for name, value in local.job_spark_properties : "--spark-property=${name}=${value}"] : [],
      local.credential == null || !contains(local.served_jobs, job) ? [] : ["--credential-file", basename(local.credential)],
      job == "collect" ? ["--delete"] : [],
      lookup(var.emr.arguments, job, []),
    )
  }

  # As `spark-submit` takes them (docs/reconciler.md#emr-serverless). An image of one's own has its libraries in it.
  job_settings = var.emr == null ? {} : merge(
    var.emr.image == null ? { "spark.archives" = "${var.emr.code}/environment.tar.gz#environment" } : {},
    {
      for name in ["spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON", "spark.emr-serverless.driverEnv.PYSPARK_PYTHON", "spark.executorEnv.PYSPARK_PYTHON"] :
      name => var.emr.python
    },
    { for name in ["spark.emr-serverless.driverEnv.AWS_REGION", "spark.executorEnv.AWS_REGION"] : name => local.region },
  )
  job_submission = {
    for job in keys(local.jobs) : job => join(" ", concat(
      ["--py-files ${var.emr.code}/arco.zip"],
      job == "maintain" ? ["--jars ${var.emr.jars}"] : [],
      local.credential == null || !contains(local.served_jobs, job) ? [] : ["--files s3://${local.credential}"],
      [for name, value in local.job_settings : "--conf ${name}=${value}"],
      job == "collect" ? ["--conf spark.emr-serverless.driverEnv.ARCO_IDEMPOTENCY_CLEANUP_ENABLED=${var.idempotency_cleanup_enabled}"] : [],
    ))
  }
}

resource "aws_scheduler_schedule" "job" {
  for_each = local.jobs

  name                = "${var.name}-pipeline-${each.key}"
  description         = "Run the pipeline's job ${each.key}"
  schedule_expression = each.value

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = "arn:${local.partition}:scheduler:::aws-sdk:emrserverless:startJobRun"
    role_arn = aws_iam_role.pipeline_schedule[0].arn
    input = jsonencode({
      ApplicationId    = aws_emrserverless_application.spark[0].id
      ExecutionRoleArn = local.job_role_arns[each.key]
      ClientToken      = "<aws.scheduler.execution-id>" # one run a time, however often the call is repeated
      Name             = each.key
      JobDriver = {
        SparkSubmit = {
          EntryPoint            = "${var.emr.code}/job.py"
          EntryPointArguments   = concat(local.job_arguments[each.key], contains(local.served_jobs, each.key) ? ["--uri", local.front_door.url] : [])
          SparkSubmitParameters = local.job_submission[each.key]
        }
      }
    })
    retry_policy {
      maximum_event_age_in_seconds = 900
      maximum_retry_attempts       = 2
    }
    dead_letter_config {
      arn = aws_sqs_queue.pipeline_dead[0].arn
    }
  }

  depends_on = [aws_iam_role_policy.pipeline_schedule, aws_iam_role_policy.pipeline, aws_iam_role_policy.spark_collect, aws_iam_role_policy.spark_fsck]
}

# The role that starts jobs, and no more

resource "aws_iam_role" "pipeline_schedule" {
  count = local.pipeline ? 1 : 0

  name               = "${var.name}-pipeline-schedule"
  assume_role_policy = data.aws_iam_policy_document.assume_schedule.json
  tags               = local.tags
}

resource "aws_iam_role_policy" "pipeline_schedule" {
  count = local.pipeline ? 1 : 0

  name   = "start"
  role   = aws_iam_role.pipeline_schedule[0].id
  policy = data.aws_iam_policy_document.pipeline_schedule[0].json
}

data "aws_iam_policy_document" "pipeline_schedule" {
  count = local.pipeline ? 1 : 0

  statement {
    sid       = "StartJobs"
    actions   = ["emr-serverless:StartJobRun"]
    resources = [aws_emrserverless_application.spark[0].arn]
  }

  statement {
    sid       = "AsTheJobsRolesAlone"
    actions   = ["iam:PassRole"]
    resources = distinct(values(local.job_role_arns))
    condition {
      test     = "StringEquals"
      variable = "iam:PassedToService"
      values   = ["emr-serverless.amazonaws.com"]
    }
  }

  statement {
    sid       = "KeepWhatCouldNotStart"
    actions   = ["sqs:SendMessage"]
    resources = [local.pipeline_dead]
  }
}

# The role of compact and maintain: the pipeline's principal where requests are signed

resource "aws_iam_role" "pipeline" {
  count = local.pipeline ? 1 : 0

  name               = local.pipeline_role_name
  assume_role_policy = data.aws_iam_policy_document.assume_spark[0].json
  tags               = local.tags
}

resource "aws_iam_role_policy" "pipeline" {
  count = local.pipeline ? 1 : 0

  name   = "catalog"
  role   = aws_iam_role.pipeline[0].id
  policy = data.aws_iam_policy_document.pipeline[0].json
}

# To call the catalog, and to reach tables' files where it vends no credentials: as any engine.
resource "aws_iam_role_policy" "pipeline_engine" {
  count = local.pipeline && (var.authorization == "iam" || !local.vending) ? 1 : 0

  name   = "engine"
  role   = aws_iam_role.pipeline[0].id
  policy = data.aws_iam_policy_document.engine.json
}

# What compact, maintain and fsck read alike: their code, the catalog's state, and whether there is a realm.
data "aws_iam_policy_document" "job_reads" {
  count = local.pipeline ? 1 : 0

  statement {
    sid       = "ReadTheJob"
    actions   = ["s3:GetObject"]
    resources = ["${local.code_arn}/*"]
  }

  statement {
    sid       = "ReadState"
    actions   = ["s3:GetObject"]
    resources = local.state_arns
  }

  statement {
    sid       = "TellMissingFromForbidden"
    actions   = ["s3:ListBucket"]
    resources = local.buckets
    condition {
      test     = "StringLikeIfExists"
      variable = "s3:prefix"
      values   = [for arn in concat(local.state_arns, local.realm_asked, local.table_files) : regex("^[^/]+/(.*)$", arn)[0]]
    }
  }

  dynamic "statement" {
    for_each = local.has_realm ? [1] : []
    content {
      sid       = "ReadRealm"
      actions   = ["s3:GetObject"]
      resources = local.realm_arns
    }
  }

  dynamic "statement" {
    for_each = local.has_realm ? [] : [1]
    content {
      sid       = "TellWhetherThereIsARealm"
      actions   = ["s3:GetObject"]
      resources = ["${local.bucket_arn}/${local.folder}_realm/core/manifest.json"]
    }
  }
}

data "aws_iam_policy_document" "pipeline" {
  count = local.pipeline ? 1 : 0

  source_policy_documents = [data.aws_iam_policy_document.job_reads[0].json]

  dynamic "statement" {
    for_each = local.credential == null ? [] : [local.credential]
    content {
      sid       = "ReadTheCredential"
      actions   = ["s3:GetObject"]
      resources = ["arn:${local.partition}:s3:::${statement.value}"]
    }
  }

  statement {
    sid       = "ReadMetadataFiles"
    actions   = ["s3:GetObject"]
    resources = concat(local.metadata_files, local.old_metadata_files)
  }

  statement {
    sid       = "ReadManifests"
    actions   = ["s3:GetObject"]
    resources = local.manifests
  }

  statement {
    sid       = "RemoveLateMarks"
    actions   = ["s3:DeleteObject"]
    resources = local.late_arns
  }

  # Of the state it writes tasks, and before it removes orphan files the receipts that are missing, with what the
  # reconciler records of them. What becomes of tables the API decides.
  dynamic "statement" {
    for_each = local.maintains ? [1] : []
    content {
      sid       = "WriteTasks"
      actions   = ["s3:PutObject"]
      resources = local.task_arns
    }
  }

  dynamic "statement" {
    for_each = local.maintains ? [1] : []
    content {
      sid       = "WriteMissingReceipts"
      actions   = ["s3:PutObject"]
      resources = concat(local.missing_arns, local.late_arns)
    }
  }

  dynamic "statement" {
    for_each = local.maintains ? [1] : []
    content {
      sid       = "RemoveHints"
      actions   = ["s3:DeleteObject"]
      resources = [for arn in local.state_arns : "${trimsuffix(arn, "*")}tasks/open/*"]
    }
  }

  dynamic "statement" {
    for_each = var.kms_key_arn == null ? [] : [var.kms_key_arn]
    content {
      sid       = "Encryption"
      actions   = local.maintains ? ["kms:Decrypt", "kms:GenerateDataKey"] : ["kms:Decrypt"]
      resources = [statement.value]
    }
  }
}

# What failed: jobs that could not be started, and jobs that ended with an error. The alarm on dead letters tells of both.

resource "aws_sqs_queue" "pipeline_dead" {
  count = local.pipeline ? 1 : 0

  name                      = "${var.name}-pipeline-dead"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
  tags                      = local.tags
}

resource "aws_sqs_queue_policy" "pipeline_dead" {
  count = local.pipeline ? 1 : 0

  queue_url = aws_sqs_queue.pipeline_dead[0].url
  policy    = data.aws_iam_policy_document.pipeline_dead[0].json
}

data "aws_iam_policy_document" "pipeline_dead" {
  count = local.pipeline ? 1 : 0

  statement {
    sid       = "KeepWhatFailed"
    actions   = ["sqs:SendMessage"]
    resources = [local.pipeline_dead]
    principals {
      type        = "Service"
      identifiers = ["events.amazonaws.com"]
    }
    condition {
      test     = "ArnEquals"
      variable = "aws:SourceArn"
      values   = ["arn:${local.partition}:events:${local.region}:${local.account}:rule/${var.name}-pipeline-failed"]
    }
  }
}

resource "aws_cloudwatch_event_rule" "pipeline_failed" {
  count = local.pipeline ? 1 : 0

  name        = "${var.name}-pipeline-failed"
  description = "A job of the pipeline has failed"
  tags        = local.tags

  event_pattern = jsonencode({
    source      = ["aws.emr-serverless"]
    detail-type = ["EMR Serverless Job Run State Change"]
    detail = {
      applicationId = [aws_emrserverless_application.spark[0].id]
      state         = ["FAILED"]
    }
  })
}

resource "aws_cloudwatch_event_target" "pipeline_failed" {
  count = local.pipeline ? 1 : 0

  rule = aws_cloudwatch_event_rule.pipeline_failed[0].name
  arn  = aws_sqs_queue.pipeline_dead[0].arn
}
