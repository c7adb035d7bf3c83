# Names are made here, not asked of resources: so a plan shows who may do what before anything exists.

locals {
  labels = merge({ application = var.name }, var.labels)
  id     = replace(var.name, "-", "_") # for what takes no hyphen

  own_bucket = var.bucket == null
  bucket     = local.own_bucket ? "${var.project}-${var.name}" : var.bucket
  folder     = var.prefix == "" ? "" : "${var.prefix}/"
  store      = trimsuffix("gs://${local.bucket}/${var.prefix}", "/")

  # The layout of arco_catalog/state/paths.py.
  state         = "${local.store}/${var.warehouse}/_catalog"
  probe         = "${local.store}/_probe"
  table_folders = distinct(concat(["${local.store}/${var.warehouse}/warehouse"], var.allowed_locations))

  service = "${var.name}-api"
  job     = "${var.name}-reconcile"

  accounts = { for purpose in ["api", "reconcile", "schedule"] : purpose => "${var.name}-${purpose}" }
  members  = { for purpose, account in local.accounts : purpose => "serviceAccount:${account}@${var.project}.iam.gserviceaccount.com" }
}
