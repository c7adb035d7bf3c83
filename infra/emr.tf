# Spark for catalogs that one function cannot walk in time. It costs nothing while no job runs.

resource "aws_emrserverless_application" "spark" {
  count = var.emr == null ? 0 : 1

  name          = "${var.name}-spark"
  type          = "spark"
  release_label = var.emr.release_label
  architecture  = var.emr.architecture
  tags          = local.tags

  maximum_capacity {
    cpu    = "${var.emr.max_vcpu} vCPU"
    memory = "${var.emr.max_memory_gb} GB"
  }

  auto_start_configuration {
    enabled = true
  }

  auto_stop_configuration {
    enabled              = true
    idle_timeout_minutes = var.emr.idle_minutes
  }

  dynamic "image_configuration" {
    for_each = var.emr.image == null ? [] : [var.emr.image]
    content {
      image_uri = image_configuration.value
    }
  }
}

resource "aws_iam_role" "spark" {
  count = var.emr == null ? 0 : 1

  name               = "${var.name}-spark"
  assume_role_policy = data.aws_iam_policy_document.assume_spark[0].json
  tags               = local.tags
}

data "aws_iam_policy_document" "assume_spark" {
  count = var.emr == null ? 0 : 1

  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["emr-serverless.amazonaws.com"]
    }
    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

resource "aws_iam_role_policy" "spark" {
  count = var.emr == null ? 0 : 1

  name   = "catalog"
  role   = aws_iam_role.spark[0].id
  policy = data.aws_iam_policy_document.spark[0].json
}

data "aws_iam_policy_document" "spark" {
  count = var.emr == null ? 0 : 1

  source_policy_documents = concat(
    [data.aws_iam_policy_document.state.json],
    local.has_realm ? [data.aws_iam_policy_document.realm.json] : [],
  )

  statement {
    sid       = "ReadTheJob"
    actions   = ["s3:GetObject"]
    resources = ["arn:${local.partition}:s3:::${trimprefix(var.emr.code, "s3://")}/*"]
  }
}
