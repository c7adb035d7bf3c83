# Names are made here, not asked of resources: so a plan shows who may do what before anything exists.

locals {
  labels = merge({ application = var.name }, var.labels)
  id     = replace(var.name, "-", "_") # for what takes no hyphen

  own_bucket = var.bucket == null
  bucket     = local.own_bucket ? "${var.project}-${var.name}" : var.bucket
  folder     = var.prefix == "" ? "" : "${var.prefix}/"
  store      = trimsuffix("gs://${local.bucket}/${var.prefix}", "/")

  # The layout of arco_catalog/state/paths.py. Catalogs that are made in a realm have their state in the realm's folder;
  # where their tables lie is said when they are made: `new_catalogs` needs no more variables.
  state         = "${local.store}/${var.warehouse}/_catalog"
  realm         = "${local.store}/_realm"
  delegated     = "${local.store}/_catalog" # what a delegation service keeps, if one is run over this store
  probe         = "${local.store}/_probe"
  new_catalogs  = "${local.store}/catalogs"
  table_folders = distinct(concat(["${local.store}/${var.warehouse}/warehouse"], local.has_realm ? [local.new_catalogs] : [], var.allowed_locations))

  # What tables may never lie in (arco_catalog/state/locations.py).
  reserved_folders = ["_catalog", "_probe", "_realm", ".arco-store"]

  has_realm = length(var.auth) > 0
  vending   = coalesce(var.vending, local.has_realm)

  service = "${var.name}-api"
  job     = { for job in keys(local.jobs) : job => "${var.name}-${job}" }

  accounts = { for purpose in concat(["api", "schedule"], keys(local.jobs), local.vending ? ["vending"] : []) : purpose => "${var.name}-${purpose}" }
  members  = { for purpose, account in local.accounts : purpose => "serviceAccount:${account}@${var.project}.iam.gserviceaccount.com" }
}
