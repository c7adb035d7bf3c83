data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.name
  tags      = merge({ Application = var.name }, var.tags)
  has_realm = length(var.auth) > 0

  # ARNs are made of names, not asked of resources: so a plan shows each policy whole, before anything exists.
  own_bucket = var.bucket == null
  bucket     = local.own_bucket ? "${var.name}-${local.account}-${local.region}" : var.bucket
  bucket_arn = "arn:${local.partition}:s3:::${local.bucket}"
  folder     = var.prefix == "" ? "" : "${var.prefix}/"
  store      = trimsuffix("s3://${local.bucket}/${var.prefix}", "/")

  # The layout of arco_catalog/state/paths.py. Catalogs that are made in a realm have their state in the realm's folder;
  # where their tables lie is said when they are made: `new_catalogs` needs no more variables.
  roots         = length(var.realm) == 0 ? [local.folder] : [for realm in var.realm : "${local.folder}${realm}/"]
  state_arns    = [for root in local.roots : "${local.bucket_arn}/${root}${var.warehouse}/_catalog/*"]
  realm_arns    = local.has_realm ? [for root in local.roots : "${local.bucket_arn}/${root}_realm/*"] : []
  probe_arn     = "${local.bucket_arn}/${local.folder}_probe/*"
  new_catalogs  = local.has_realm ? [for root in local.roots : "s3://${local.bucket}/${root}catalogs"] : []
  table_folders = concat([for root in local.roots : "${local.bucket_arn}/${root}${var.warehouse}/warehouse"], local.elsewhere)
  elsewhere     = [for location in concat(local.new_catalogs, var.allowed_locations) : "arn:${local.partition}:s3:::${trimprefix(location, "s3://")}"]

  # What tables may never lie in (arco_catalog/state/locations.py).
  reserved_folders = ["_catalog", "_probe", "_realm", ".arco-store"]

  lambda_arn = "arn:${local.partition}:lambda:${local.region}:${local.account}:function"
  logs_arn   = "arn:${local.partition}:logs:${local.region}:${local.account}:log-group"
  queue_arn  = "arn:${local.partition}:sqs:${local.region}:${local.account}"
  role_arn   = "arn:${local.partition}:iam::${local.account}:role"
  work_queue = "${local.queue_arn}:${var.name}-work"
  secret_arn = "arn:${local.partition}:secretsmanager:${local.region}:${local.account}:secret"

  # As Amazon spells it, so that the functions' variables are known before the queue is made.
  work_queue_url = "https://sqs.${local.region}.${data.aws_partition.current.dns_suffix}/${local.account}/${var.name}-work"

  # The hints by which workers find tasks: the only state that is deleted by who purges.
  hint_arns = concat(
    [for arn in local.state_arns : "${trimsuffix(arn, "*")}tasks/open/*"],
    [for arn in local.realm_arns : "${trimsuffix(arn, "*")}catalogs/*/_catalog/tasks/open/*"],
  )
  # Planned changes of a registry, which a request deletes when it has ended. Whoever creates one anew does no harm.
  proposal_arns = concat(
    [for arn in local.state_arns : "${trimsuffix(arn, "*")}core/proposals/*"],
    flatten([for arn in local.realm_arns : [for folder in ["core", "catalogs/*/_catalog/core"] : "${trimsuffix(arn, "*")}${folder}/proposals/*"]]),
  )
  # What a delegation service keeps, if one is run over this store (docs/delegation.md).
  service_arn = "${local.bucket_arn}/${local.folder}_catalog/*"
  # What collection deletes is state, but never what says which state is current, nor what seals page tokens.
  collected_arns = concat(
    local.state_arns,
    flatten([for arn in local.realm_arns : [for folder in ["catalogs", "core/commits", "core/index", "core/proposals", "iceberg_idempotency"] : "${trimsuffix(arn, "*")}${folder}/*"]]),
    [for folder in ["tasks", "iceberg_idempotency"] : "${trimsuffix(local.service_arn, "*")}${folder}/*"],
  )
  manifest_arns = [for arn in concat(local.state_arns, local.realm_arns) : "${trimsuffix(arn, "*")}*core/manifest.json"]

  alias = "live"

  # Metrics know their warehouse, whose name two deployments may share: the namespace keeps them apart.
  metrics_namespace = var.metrics_namespace == null ? "ArcoCatalog/${var.name}" : var.metrics_namespace
}
