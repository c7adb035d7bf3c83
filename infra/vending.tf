# Access to tables' files: for the role that the API assumes, narrowed to a table, when it vends credentials; and for roles
# that read or write all tables with rights of their own.

locals {
  api_role_arn     = "${local.role_arn}/${var.name}-api"
  vending_role_arn = "${local.role_arn}/${var.name}-vending"

  in_tables = [for arn in local.table_files : regex("^[^/]+/(.*)$", arn)[0]]
  in_state  = flatten([for folder in local.reserved_folders : [folder, "${folder}/*", "*/${folder}", "*/${folder}/*"]])
}

resource "aws_iam_role" "vending" {
  count = local.vending ? 1 : 0

  name                 = "${var.name}-vending"
  description          = "What engines get of the tables of catalog ${var.warehouse}, each narrowed to one table"
  assume_role_policy   = data.aws_iam_policy_document.assume_vending.json
  max_session_duration = 3600 # AWS gives no more to who assumes it as a role itself
  tags                 = local.tags

  depends_on = [aws_iam_role.function] # a policy can't name a role that is not there
}

resource "aws_iam_role_policy" "vending" {
  count = local.vending ? 1 : 0

  name   = "tables"
  role   = aws_iam_role.vending[0].id
  policy = data.aws_iam_policy_document.files["writer"].json
}

data "aws_iam_policy_document" "assume_vending" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "AWS"
      identifiers = [local.api_role_arn]
    }
  }
}

data "aws_iam_policy_document" "vend" {
  statement {
    sid       = "VendCredentials"
    actions   = ["sts:AssumeRole"]
    resources = [local.vending_role_arn]
  }
}

data "aws_iam_policy_document" "files" {
  for_each = {
    reader = { files = ["s3:GetObject"], key = ["kms:Decrypt"] }
    writer = {
      files = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
      key   = ["kms:Decrypt", "kms:GenerateDataKey"]
    }
  }

  statement {
    sid       = "TableFiles"
    actions   = each.value.files
    resources = local.table_files
  }

  statement {
    sid       = "ListTableFiles"
    actions   = ["s3:ListBucket"]
    resources = local.buckets
    condition {
      test     = "StringLike"
      variable = "s3:prefix"
      values   = local.in_tables
    }
  }

  dynamic "statement" {
    for_each = var.kms_key_arn == null ? [] : [var.kms_key_arn]
    content {
      sid       = "Encryption"
      actions   = each.value.key
      resources = [statement.value]
      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = ["s3.${local.region}.${data.aws_partition.current.dns_suffix}"]
      }
    }
  }

  # Whatever else is allowed, here or by another policy of the role.
  statement {
    sid       = "NeverState"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [for folder in local.reserved_folders : "arn:${local.partition}:s3:::*/${folder}/*"] # at whatever depth
  }

  statement {
    sid       = "NeverNamesInState"
    effect    = "Deny"
    actions   = ["s3:ListBucket", "s3:ListBucketVersions", "s3:ListBucketMultipartUploads"]
    resources = ["arn:${local.partition}:s3:::*"]
    condition {
      test     = "StringLike"
      variable = "s3:prefix"
      values   = local.in_state
    }
  }
}

# Roles with rights of their own

resource "aws_iam_policy" "files" {
  for_each = {
    for kind, roles in { reader = var.reader_role_arns, writer = var.writer_role_arns } : kind => roles if length(roles) > 0
  }

  name        = "${var.name}-tables-${each.key}"
  description = "All tables' files of catalog ${var.warehouse}, past the grants of the catalog"
  policy      = data.aws_iam_policy_document.files[each.key].json
  tags        = local.tags
}

resource "aws_iam_role_policy_attachment" "files" {
  for_each = merge(
    { for arn in var.reader_role_arns : "reader ${arn}" => { kind = "reader", arn = arn } },
    { for arn in var.writer_role_arns : "writer ${arn}" => { kind = "writer", arn = arn } },
  )

  policy_arn = aws_iam_policy.files[each.value.kind].arn
  role       = regex("[^/]+$", each.value.arn) # names of roles have no path
}
