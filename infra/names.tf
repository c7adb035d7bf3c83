data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.name
  tags      = merge({ Application = var.name }, var.tags)

  # ARNs are made of names, not asked of resources: so a plan shows each policy whole, before anything exists.
  own_bucket = var.bucket == null
  bucket     = local.own_bucket ? "${var.name}-${local.account}-${local.region}" : var.bucket
  bucket_arn = "arn:${local.partition}:s3:::${local.bucket}"
  folder     = var.prefix == "" ? "" : "${var.prefix}/"
  store      = trimsuffix("s3://${local.bucket}/${var.prefix}", "/")

  # The layout of arco_catalog/state/paths.py.
  state_arn     = "${local.bucket_arn}/${local.folder}${var.warehouse}/_catalog/*"
  probe_arn     = "${local.bucket_arn}/${local.folder}_probe/*"
  table_folders = concat(["${local.bucket_arn}/${local.folder}${var.warehouse}/warehouse"], local.elsewhere)
  elsewhere     = [for location in var.allowed_locations : "arn:${local.partition}:s3:::${trimprefix(location, "s3://")}"]

  lambda_arn = "arn:${local.partition}:lambda:${local.region}:${local.account}:function"
  logs_arn   = "arn:${local.partition}:logs:${local.region}:${local.account}:log-group"
  queue_arn  = "arn:${local.partition}:sqs:${local.region}:${local.account}"
  role_arn   = "arn:${local.partition}:iam::${local.account}:role"

  alias = "live"

  # Metrics know their warehouse, whose name two deployments may share: the namespace keeps them apart.
  metrics_namespace = var.metrics_namespace == null ? "ArcoCatalog/${var.name}" : var.metrics_namespace
}
