data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.name
  tags      = merge({ Application = var.name }, var.tags)

  label  = "${var.name}-delegation"
  port   = 8182
  domain = "${var.name}.internal"

  path       = trimprefix(var.store, "s3://")
  bucket     = split("/", local.path)[0]
  bucket_arn = "arn:${local.partition}:s3:::${local.bucket}"
  prefix     = trimprefix(trimprefix(local.path, local.bucket), "/")
  folder     = local.prefix == "" ? "" : "${local.prefix}/"

  # The layout of arco_catalog/state/paths.py: the service's own state is at the root of the store.
  roots         = length(var.realm) == 0 ? [local.folder] : [for realm in var.realm : "${local.folder}${realm}/"]
  own           = "${local.folder}_catalog"
  probe         = "${local.folder}_probe"
  catalogs      = [for root in local.roots : "${root}${var.warehouse}/_catalog"]
  realms        = [for root in distinct(concat([local.folder], local.roots)) : "${root}_realm"]
  readable      = concat(local.catalogs, local.realms)
  image_in_ecr  = regexall("^([0-9]{12})[.]dkr[.]ecr[.]([a-z0-9-]+)[.][^/]+/([^:@]+)", var.image)
  repository    = [for found in local.image_in_ecr : "arn:${local.partition}:ecr:${found[1]}:${found[0]}:repository/${found[2]}"]
  secrets       = compact([var.tls_secret_arn, var.token_key_secret_arn])
  needs_a_token = var.token_key_secret_arn != null
}
