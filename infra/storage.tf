# The bucket, unless an existing one is named: then nothing on it is touched, and `bucket_policy_json` says what to add.

resource "aws_s3_bucket" "store" {
  count = local.own_bucket ? 1 : 0

  bucket        = local.bucket
  force_destroy = var.force_destroy
  tags          = local.tags
}

resource "aws_s3_bucket_versioning" "store" {
  count = local.own_bucket ? 1 : 0

  bucket = aws_s3_bucket.store[0].id
  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "store" {
  count = local.own_bucket ? 1 : 0

  bucket = aws_s3_bucket.store[0].id
  rule {
    bucket_key_enabled = var.kms_key_arn != null
    apply_server_side_encryption_by_default {
      sse_algorithm     = var.kms_key_arn == null ? "AES256" : "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_public_access_block" "store" {
  count = local.own_bucket ? 1 : 0

  bucket                  = aws_s3_bucket.store[0].id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

# Nothing that is current ever expires, but for what a start's probe may leave behind: what the catalog no longer needs
# its collector deletes, which knows what is still reachable. A replaced version is reachable from nowhere.
resource "aws_s3_bucket_lifecycle_configuration" "store" {
  count      = local.own_bucket ? 1 : 0
  depends_on = [aws_s3_bucket_versioning.store]

  bucket = aws_s3_bucket.store[0].id

  rule {
    id     = "replaced-versions"
    status = "Enabled"
    filter {
      prefix = local.folder
    }
    noncurrent_version_expiration {
      noncurrent_days = var.noncurrent_days
    }
    expiration {
      expired_object_delete_marker = true
    }
    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }

  rule {
    id     = "probes"
    status = "Enabled"
    filter {
      prefix = "${local.folder}_probe/"
    }
    expiration {
      days = 1
    }
    noncurrent_version_expiration {
      noncurrent_days = 1
    }
  }
}

resource "aws_s3_bucket_policy" "store" {
  count      = local.own_bucket ? 1 : 0
  depends_on = [aws_s3_bucket_public_access_block.store] # two changes of a bucket's access at once are refused

  bucket = aws_s3_bucket.store[0].id
  policy = data.aws_iam_policy_document.bucket.json
}

locals {
  work_role_arn    = "${local.role_arn}/${var.name}-work"
  collect_role_arn = "${local.role_arn}/${var.name}-collect"
  collectors       = concat([local.collect_role_arn], local.collects ? [local.spark_collect_arn] : [])
  delete_state     = concat(local.collectors, [local.api_role_arn, local.work_role_arn], local.pipeline ? [local.pipeline_role_arn] : [], var.collector_role_arns)
  keep_state       = concat(local.state_writers, var.operator_role_arns, var.collector_role_arns)
  reach_files      = concat(local.keep_state, [local.vending_role_arn], var.reader_role_arns, var.writer_role_arns)
}

data "aws_iam_policy_document" "bucket" {
  statement {
    sid       = "OnlyOverTLS"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [local.bucket_arn, "${local.bucket_arn}/*"]
    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }

  # A create-only object that is deleted can be created again, also on a versioned bucket: an attempt that lost would
  # then find its place free. Engines with rights on the whole bucket are kept out of the state here.
  statement {
    sid       = "StateIsDeletedByTheCollectorOnly"
    effect    = "Deny"
    actions   = ["s3:DeleteObject", "s3:DeleteObjectVersion"]
    resources = concat(local.state_arns, local.realm_arns)
    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "ArnNotEquals"
      variable = "aws:PrincipalArn"
      values   = local.delete_state
    }
  }

  # Those that may, are held to what they do, whatever else is attached to their roles.
  dynamic "statement" {
    for_each = local.pipeline ? [1] : []
    content {
      sid           = "ThePipelineDeletesTableFilesMarksAndHintsOnly"
      effect        = "Deny"
      actions       = ["s3:DeleteObject", "s3:DeleteObjectVersion"]
      not_resources = concat(local.late_arns, local.hint_arns, local.table_files)
      principals {
        type        = "*"
        identifiers = ["*"]
      }
      condition {
        test     = "ArnEquals"
        variable = "aws:PrincipalArn"
        values   = [local.pipeline_role_arn]
      }
    }
  }

  statement {
    sid           = "PurgesDeleteTablesAndHintsOnly"
    effect        = "Deny"
    actions       = ["s3:DeleteObject", "s3:DeleteObjectVersion"]
    not_resources = concat(local.hint_arns, local.table_files, [local.probe_arn])
    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "ArnEquals"
      variable = "aws:PrincipalArn"
      values   = [local.work_role_arn]
    }
  }

  statement {
    sid           = "TheApiDeletesMetadataFilesAndProposalsOnly"
    effect        = "Deny"
    actions       = ["s3:DeleteObject", "s3:DeleteObjectVersion"]
    not_resources = concat(local.metadata_files, local.proposal_arns)
    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "ArnEquals"
      variable = "aws:PrincipalArn"
      values   = [local.api_role_arn]
    }
  }

  statement {
    sid       = "CollectionDeletesNoManifest"
    effect    = "Deny"
    actions   = ["s3:DeleteObject", "s3:DeleteObjectVersion"]
    resources = concat(local.manifest_arns, [for arn in local.realm_arns : "${trimsuffix(arn, "*")}core/page_key.json"])
    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "ArnEquals"
      variable = "aws:PrincipalArn"
      values   = local.collectors
    }
  }

  statement {
    sid       = "StateIsWrittenByTheCatalogOnly"
    effect    = "Deny"
    actions   = ["s3:PutObject"]
    resources = local.state_arns
    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "ArnNotEquals"
      variable = "aws:PrincipalArn"
      values   = local.keep_state
    }
  }

  # Principals, grants and digests of secrets. Whoever could write there could do anything.
  dynamic "statement" {
    for_each = local.has_realm ? [1] : []
    content {
      sid       = "RealmIsTheCatalogsOnly"
      effect    = "Deny"
      actions   = ["s3:*"]
      resources = local.realm_arns
      principals {
        type        = "*"
        identifiers = ["*"]
      }
      condition {
        test     = "ArnNotEquals"
        variable = "aws:PrincipalArn"
        values   = local.keep_state
      }
    }
  }

  dynamic "statement" {
    for_each = local.has_realm ? [1] : []
    content {
      # Collection moves HEAD to a commit that changes nothing.
      sid       = "PrincipalsAreWrittenByTheApiOnly"
      effect    = "Deny"
      actions   = ["s3:PutObject"]
      resources = [for arn in local.realm_arns : "${trimsuffix(arn, "*")}core/*"]
      principals {
        type        = "*"
        identifiers = ["*"]
      }
      condition {
        test     = "ArnNotEquals"
        variable = "aws:PrincipalArn"
        values   = concat([local.api_role_arn], local.collectors, var.operator_role_arns)
      }
    }
  }

  # Grants decide who reads tables only if nobody can get at the files past the catalog, whatever its own policies allow.
  dynamic "statement" {
    for_each = local.vending ? [1] : []
    content {
      sid       = "StateIsTheCatalogsOnly"
      effect    = "Deny"
      actions   = ["s3:*"]
      resources = local.state_arns
      principals {
        type        = "*"
        identifiers = ["*"]
      }
      condition {
        test     = "ArnNotEquals"
        variable = "aws:PrincipalArn"
        values   = local.keep_state
      }
    }
  }

  dynamic "statement" {
    for_each = local.vending ? [1] : []
    content {
      sid       = "TablesAreReachedByCredentialsOfTheCatalogOnly"
      effect    = "Deny"
      actions   = ["s3:*"]
      resources = ["${local.bucket_arn}/${local.folder}*"]
      principals {
        type        = "*"
        identifiers = ["*"]
      }
      condition {
        test     = "ArnNotEquals"
        variable = "aws:PrincipalArn"
        values   = local.reach_files
      }
    }
  }

  # A LIST without a prefix can't be told from the question whether the bucket is there, which Terraform asks.
  dynamic "statement" {
    for_each = local.vending ? [1] : []
    content {
      sid       = "NamesOfFilesAreListedByThemOnly"
      effect    = "Deny"
      actions   = ["s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads"]
      resources = [local.bucket_arn]
      principals {
        type        = "*"
        identifiers = ["*"]
      }
      condition {
        test     = "ArnNotEquals"
        variable = "aws:PrincipalArn"
        values   = local.reach_files
      }
      condition {
        test     = "StringLike"
        variable = "s3:prefix"
        values   = ["${local.folder}*"]
      }
    }
  }
}
