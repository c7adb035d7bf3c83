# Two roles: what the service may do, and what Fargate needs to start it. Neither has a right on tables' files, which the
# service deletes with the credentials that callers send.

data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["ecs-tasks.amazonaws.com"]
    }
    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

resource "aws_iam_role" "service" {
  name               = local.label
  assume_role_policy = data.aws_iam_policy_document.assume.json
  tags               = local.tags
}

resource "aws_iam_role_policy" "service" {
  name   = "tasks"
  role   = aws_iam_role.service.id
  policy = data.aws_iam_policy_document.service.json
}

data "aws_iam_policy_document" "service" {
  statement {
    sid       = "Tasks"
    actions   = ["s3:GetObject", "s3:PutObject"] # a conditional write needs both
    resources = ["${local.bucket_arn}/${local.own}/*"]
  }

  statement {
    sid       = "RemoveHints"
    actions   = ["s3:DeleteObject"]
    resources = ["${local.bucket_arn}/${local.own}/tasks/open/*"]
  }

  statement {
    sid       = "ProbeForConditionalWrites"
    actions   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
    resources = ["${local.bucket_arn}/${local.probe}/*"]
  }

  # Which locations the store's catalogs hold: there the service deletes nothing.
  statement {
    sid       = "ReadCatalogs"
    actions   = ["s3:GetObject"]
    resources = [for folder in local.readable : "${local.bucket_arn}/${folder}/*"]
  }

  # Without this right S3 answers 403 for an object that is missing. A GET carries no prefix.
  statement {
    sid       = "TellMissingFromForbidden"
    actions   = ["s3:ListBucket"]
    resources = [local.bucket_arn]
    condition {
      test     = "StringLikeIfExists"
      variable = "s3:prefix"
      values   = [for folder in concat([local.own, local.probe], local.readable) : "${folder}/*"]
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

resource "aws_iam_role" "start" {
  name               = "${local.label}-start"
  assume_role_policy = data.aws_iam_policy_document.assume.json
  tags               = local.tags
}

resource "aws_iam_role_policy" "start" {
  name   = "start"
  role   = aws_iam_role.start.id
  policy = data.aws_iam_policy_document.start.json
}

data "aws_iam_policy_document" "start" {
  statement {
    sid       = "Secrets"
    actions   = ["secretsmanager:GetSecretValue"]
    resources = local.secrets
  }

  statement {
    sid       = "Logs"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["arn:${local.partition}:logs:${local.region}:${local.account}:log-group:/ecs/${local.label}:*"]
  }

  dynamic "statement" {
    for_each = length(local.repository) == 0 ? [] : [1]
    content {
      sid       = "LogInAtTheRegistry"
      actions   = ["ecr:GetAuthorizationToken"]
      resources = ["*"] # the action knows no resources
    }
  }

  dynamic "statement" {
    for_each = local.repository
    content {
      sid       = "PullTheImage"
      actions   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
      resources = [statement.value]
    }
  }
}
