# The roles of the jobs that work on the store alone: collect, which deletes state as the function of that name does, and
# fsck, which reads everything and writes nothing. Neither calls the catalog.

resource "aws_iam_role" "spark_collect" {
  count = local.collects ? 1 : 0

  name               = "${var.name}-pipeline-collect"
  assume_role_policy = data.aws_iam_policy_document.assume_spark[0].json
  tags               = local.tags
}

resource "aws_iam_role_policy" "spark_collect" {
  count = local.collects ? 1 : 0

  name   = "catalog"
  role   = aws_iam_role.spark_collect[0].id
  policy = data.aws_iam_policy_document.spark_collect[0].json
}

data "aws_iam_policy_document" "spark_collect" {
  count = local.collects ? 1 : 0

  source_policy_documents = concat(
    [data.aws_iam_policy_document.state.json, data.aws_iam_policy_document.probe.json, data.aws_iam_policy_document.collect.json],
    local.has_realm ? [data.aws_iam_policy_document.realm.json] : [],
  )

  statement {
    sid       = "ReadTheJob"
    actions   = ["s3:GetObject"]
    resources = ["${local.code_arn}/*"]
  }
}

resource "aws_iam_role" "spark_fsck" {
  count = local.checks ? 1 : 0

  name               = "${var.name}-pipeline-fsck"
  assume_role_policy = data.aws_iam_policy_document.assume_spark[0].json
  tags               = local.tags
}

resource "aws_iam_role_policy" "spark_fsck" {
  count = local.checks ? 1 : 0

  name   = "catalog"
  role   = aws_iam_role.spark_fsck[0].id
  policy = data.aws_iam_policy_document.spark_fsck[0].json
}

data "aws_iam_policy_document" "spark_fsck" {
  count = local.checks ? 1 : 0

  source_policy_documents = [data.aws_iam_policy_document.job_reads[0].json]

  # Of a data file two bytes at most; S3 knows no right on less than the whole.
  statement {
    sid       = "ReadTables"
    actions   = ["s3:GetObject"]
    resources = local.table_files
  }

  dynamic "statement" {
    for_each = var.kms_key_arn == null ? [] : [var.kms_key_arn]
    content {
      sid       = "Encryption"
      actions   = ["kms:Decrypt"]
      resources = [statement.value]
    }
  }
}
