# One role a function. Wildcards, and why each is there, are listed in tests/infra/wildcards.py, which a test holds the
# plan to.

locals {
  state_writers = concat(
    [for function in keys(local.functions) : "${local.role_arn}/${var.name}-${function}"],
    var.emr == null ? [] : ["${local.role_arn}/${var.name}-spark"],
    local.pipeline ? distinct(concat([local.pipeline_role_arn], values(local.job_role_arns))) : [],
  )
  table_files        = [for folder in local.table_folders : "${folder}/*"]
  metadata_files     = [for folder in local.table_folders : "${folder}/*.metadata.json"]
  old_metadata_files = [for folder in local.table_folders : "${folder}/*.metadata.json.gz"]
  event_services     = [for arn in var.event_receivers : split(":", arn)[2]]
  buckets            = distinct([for folder in local.table_folders : split("/", folder)[0]])
}

data "aws_iam_policy_document" "assume_function" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "function" {
  for_each = local.functions

  name               = "${var.name}-${each.key}"
  assume_role_policy = data.aws_iam_policy_document.assume_function.json
  tags               = local.tags
}

resource "aws_iam_role_policy" "function" {
  for_each = local.functions

  name   = "catalog"
  role   = aws_iam_role.function[each.key].id
  policy = data.aws_iam_policy_document.function[each.key].json
}

data "aws_iam_policy_document" "function" {
  for_each = local.functions

  source_policy_documents = concat(
    [data.aws_iam_policy_document.state.json],
    each.key == "api" ? [data.aws_iam_policy_document.tables.json] : [],
    local.has_realm ? [data.aws_iam_policy_document.realm.json] : [],
    each.key == "api" && local.has_realm ? [data.aws_iam_policy_document.principals.json] : [],
    each.key == "api" && local.vending ? [data.aws_iam_policy_document.vend.json] : [],
    each.key == "api" ? [] : [data.aws_iam_policy_document.probe.json],
    contains(["api", "work"], each.key) ? [data.aws_iam_policy_document.queue_work.json] : [],
    each.key == "work" ? [data.aws_iam_policy_document.take_work.json, data.aws_iam_policy_document.delete.json] : [],
    each.key == "work" && length(var.event_receivers) > 0 ? [data.aws_iam_policy_document.send_events.json] : [],
    each.key == "collect" ? [data.aws_iam_policy_document.collect.json] : [],
    var.tracing ? [data.aws_iam_policy_document.tracing.json] : [],
  )

  dynamic "statement" {
    for_each = contains(keys(local.scheduled), each.key) ? [1] : []
    content {
      sid       = "ReportFailedRuns"
      actions   = ["sqs:SendMessage"]
      resources = ["${local.queue_arn}:${var.name}-${each.key}-dead"]
    }
  }

  statement {
    sid       = "Logs"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${local.logs_arn}:/aws/lambda/${var.name}-${each.key}:*"]
  }
}

# What everything that runs the catalog's protocols needs. Data files are in none of it.
data "aws_iam_policy_document" "state" {
  statement {
    sid       = "State"
    actions   = ["s3:GetObject", "s3:PutObject"] # a conditional write needs both
    resources = local.state_arns
  }

  statement {
    sid       = "ReadMetadataFiles"
    actions   = ["s3:GetObject"]
    resources = concat(local.metadata_files, local.old_metadata_files)
  }

  # Without this right S3 answers 403 for an object that is missing, and the protocols live on knowing the difference.
  # A GET carries no prefix, so `IfExists` must let that pass: a LIST with a prefix is kept to these folders, one without
  # any sees the names of all objects in the bucket. Their contents it does not.
  statement {
    sid       = "TellMissingFromForbidden"
    actions   = ["s3:ListBucket"]
    resources = local.buckets
    condition {
      test     = "StringLikeIfExists"
      variable = "s3:prefix"
      values   = [for arn in concat(local.state_arns, [local.probe_arn], local.table_files) : regex("^[^/]+/(.*)$", arn)[0]]
    }
  }

  # A function without authentication refuses every request if the store has a realm, so it must read whether it has one.
  statement {
    sid       = "TellWhetherThereIsARealm"
    actions   = ["s3:GetObject"]
    resources = ["${local.bucket_arn}/${local.folder}_realm/core/manifest.json"]
  }

  statement {
    sid       = "TellWhetherThereWasARealm"
    actions   = ["s3:ListBucket"]
    resources = [local.bucket_arn]
    condition {
      test     = "StringLike"
      variable = "s3:prefix"
      values   = ["${local.folder}_realm/core/commits/*"]
    }
  }

  dynamic "statement" {
    for_each = var.kms_key_arn == null ? [] : [var.kms_key_arn]
    content {
      sid       = "Encryption"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
      resources = [statement.value]
    }
  }
}

# The API writes metadata files, and deletes old ones of tables that set write.metadata.delete-after-commit.enabled. Of
# the state it deletes the proposals of requests that have ended.
data "aws_iam_policy_document" "tables" {
  statement {
    sid       = "WriteMetadataFiles"
    actions   = ["s3:PutObject", "s3:DeleteObject"]
    resources = local.metadata_files
  }

  statement {
    sid       = "DeleteProposals"
    actions   = ["s3:DeleteObject"]
    resources = local.proposal_arns
  }
}

# Events go to the queues and topics that were named, and to no others.
data "aws_iam_policy_document" "send_events" {
  dynamic "statement" {
    for_each = { for service, action in { sqs = "sqs:SendMessage", sns = "sns:Publish" } : service => action if contains(local.event_services, service) }
    content {
      sid       = "SendEventsBy${title(statement.key)}"
      actions   = [statement.value]
      resources = [for arn in var.event_receivers : arn if split(":", arn)[2] == statement.key]
    }
  }
}

# Which catalogs a realm has, and the state of those that were made in it.
data "aws_iam_policy_document" "realm" {
  statement {
    sid       = "ReadRealm"
    actions   = ["s3:GetObject"]
    resources = local.realm_arns
  }

  statement {
    sid       = "StateInRealm"
    actions   = ["s3:PutObject"]
    resources = [for arn in local.realm_arns : "${trimsuffix(arn, "*")}catalogs/*"]
  }

  statement {
    sid       = "TellMissingFromForbiddenInRealm"
    actions   = ["s3:ListBucket"]
    resources = [local.bucket_arn]
    condition {
      test     = "StringLikeIfExists"
      variable = "s3:prefix"
      values   = [for arn in local.realm_arns : regex("^[^/]+/(.*)$", arn)[0]]
    }
  }
}

# Principals, roles and grants are written by the API alone, and tokens signed by it.
data "aws_iam_policy_document" "principals" {
  statement {
    sid       = "WriteRealm"
    actions   = ["s3:PutObject"]
    resources = local.realm_arns
  }

  dynamic "statement" {
    for_each = contains(var.auth, "internal") ? compact([local.token_key_arn]) : []
    content {
      sid       = "TokenKey"
      actions   = [local.token_key_action]
      resources = [statement.value]
    }
  }

  dynamic "statement" {
    for_each = contains(var.auth, "internal") && var.token_key_kms_key_arn != null ? [var.token_key_kms_key_arn] : []
    content {
      sid       = "TokenKeyEncryption"
      actions   = ["kms:Decrypt"]
      resources = [statement.value]
    }
  }
}

# Who works beside requests asks at its start whether the store keeps conditions; requests can't wait for that.
data "aws_iam_policy_document" "probe" {
  statement {
    sid       = "ProbeForConditionalWrites"
    actions   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
    resources = [local.probe_arn]
  }
}

data "aws_iam_policy_document" "take_work" {
  statement {
    sid       = "TakeWork"
    actions   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    resources = [local.work_queue]
  }
}

# A drop tells of a task that is due soon; work that time ends is gone on with by another message.
data "aws_iam_policy_document" "queue_work" {
  statement {
    sid       = "QueueWork"
    actions   = ["sqs:SendMessage"]
    resources = [local.work_queue]
  }
}

# Purges and expiries: no other function deletes data, and this one none but where tables may be. The commit that removes
# snapshots writes a metadata file. Of the state it deletes the hints of tasks that have ended.
data "aws_iam_policy_document" "delete" {
  statement {
    sid       = "DeleteTableFiles"
    actions   = ["s3:GetObject", "s3:DeleteObject"]
    resources = local.table_files
  }

  statement {
    sid       = "WriteMetadataFiles"
    actions   = ["s3:PutObject"]
    resources = local.metadata_files
  }

  statement {
    sid       = "RemoveHints"
    actions   = ["s3:DeleteObject"]
    resources = local.hint_arns
  }
}

# Collection: state that nothing leads to, and metadata files of lost tries. Never data, and never a manifest. Before
# commits of a registry go, it makes one that changes nothing, and says up to where they have gone.
data "aws_iam_policy_document" "collect" {
  dynamic "statement" {
    for_each = local.has_realm ? [1] : []
    content {
      sid       = "FenceRealm"
      actions   = ["s3:PutObject"]
      resources = flatten([for arn in local.realm_arns : [for folder in ["core", "iceberg_idempotency", "operational"] : "${trimsuffix(arn, "*")}${folder}/*"]])
    }
  }

  statement {
    sid       = "ReadDelegatedTasks"
    actions   = ["s3:GetObject"]
    resources = [local.service_arn]
  }

  statement {
    sid       = "CloseMarkersOfDelegatedTasks"
    actions   = ["s3:PutObject"]
    resources = ["${trimsuffix(local.service_arn, "*")}iceberg_idempotency/*"]
  }

  statement {
    sid       = "TellMissingFromForbiddenAmongDelegatedTasks"
    actions   = ["s3:ListBucket"]
    resources = [local.bucket_arn]
    condition {
      test     = "StringLikeIfExists"
      variable = "s3:prefix"
      values   = [regex("^[^/]+/(.*)$", local.service_arn)[0]]
    }
  }

  statement {
    sid       = "CollectState"
    actions   = ["s3:DeleteObject"]
    resources = local.collected_arns
  }

  statement {
    sid       = "CollectMetadataFiles"
    actions   = ["s3:DeleteObject"]
    resources = local.metadata_files
  }

  statement {
    sid       = "NeverDeleteManifests"
    effect    = "Deny"
    actions   = ["s3:DeleteObject", "s3:DeleteObjectVersion"]
    resources = local.manifest_arns
  }
}

data "aws_iam_policy_document" "tracing" {
  statement {
    sid       = "Traces"
    actions   = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
    resources = ["*"] # X-Ray knows no resources for them
  }
}

# What an engine's role needs, to be attached to it (output `engine_policy_json`): to call, and to read and write tables
# where the catalog does not give it credentials for them. Empty where it signs nothing and gets those.
data "aws_iam_policy_document" "engine" {
  dynamic "statement" {
    for_each = var.authorization == "iam" ? [1] : []
    content {
      sid       = "CallTheCatalog"
      actions   = local.function_url ? ["lambda:InvokeFunctionUrl"] : ["execute-api:Invoke"]
      resources = local.front_door.callable_arns

      dynamic "condition" {
        for_each = local.function_url ? [1] : []
        content {
          test     = "StringEquals"
          variable = "lambda:FunctionUrlAuthType"
          values   = ["AWS_IAM"]
        }
      }
    }
  }

  # A function URL asks for this right too. Without the condition it would be that to invoke the function directly, with
  # an event that names as its caller whom the invoker likes. `Bool` does not hold where the key is missing.
  dynamic "statement" {
    for_each = var.authorization == "iam" && local.function_url ? [1] : []
    content {
      sid       = "CallTheCatalogThroughItsUrl"
      actions   = ["lambda:InvokeFunction"]
      resources = local.front_door.callable_arns

      condition {
        test     = "Bool"
        variable = "lambda:InvokedViaFunctionUrl"
        values   = ["true"]
      }
    }
  }

  dynamic "statement" {
    for_each = local.vending ? [] : [1]
    content {
      sid       = "Tables"
      actions   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
      resources = local.table_files
    }
  }

  dynamic "statement" {
    for_each = local.vending ? [] : [1]
    content {
      sid       = "ListTables"
      actions   = ["s3:ListBucket"]
      resources = local.buckets
      condition {
        test     = "StringLikeIfExists"
        variable = "s3:prefix"
        values   = local.in_tables
      }
    }
  }

  dynamic "statement" {
    for_each = var.kms_key_arn == null || local.vending ? [] : [var.kms_key_arn]
    content {
      sid       = "Encryption"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
      resources = [statement.value]
    }
  }
}
