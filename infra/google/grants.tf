# Who may do what with objects, as values; permissions.tf makes bindings of them.
#
# To replace an object takes storage.objects.delete, and so may even a create of an object that is there already, which
# is how writers race: no right could be given to write state and not to delete it. So the catalog's accounts have it;
# the catalog uses it for old metadata files, probes, hints of tasks, proposals, and what is collected alone. Data is deleted by the
# account of tasks, in folders where tables may be; it creates metadata files alone there, which remove snapshots. The
# account of collection deletes state, also of realms and of a delegation service, and metadata files of lost tries.
#
# Where the catalog vends credentials, files are reached by tokens of an account of their own, narrowed to a table; the
# API may make such tokens, and engines have no right in the bucket. What an account may not do no token of its may.

locals {
  roles = {
    list  = ["storage.objects.list"]
    read  = ["storage.objects.get"]
    write = ["storage.objects.get", "storage.objects.create", "storage.objects.delete"]
    purge = ["storage.objects.get", "storage.objects.delete"]
  }
  vend_permissions      = ["iam.serviceAccounts.getAccessToken"]
  token_key_permissions = ["secretmanager.versions.access"]

  event_topics = {
    for name in var.event_receivers : name => { project = split("/", name)[1], topic = split("/", name)[3], member = local.members.tasks }
  }

  realm_state    = local.has_realm ? [local.realm] : []
  catalogs_state = local.has_realm ? ["${local.realm}/catalogs"] : []
  metadata_files = [".metadata.json", ".metadata.json.gz"]

  # Of each account or member: what it may write, read, and read or write of metadata files alone, below which folders.
  rights = merge(
    {
      api       = { member = local.members.api, write = concat([local.state, local.probe], local.realm_state), write_metadata = local.table_folders, read_metadata = [], purge_metadata = [], read = [], purge = [] }
      reconcile = { member = local.members.reconcile, write = concat([local.state, local.probe], local.catalogs_state), write_metadata = [], read_metadata = local.table_folders, purge_metadata = [], read = [local.realm], purge = [] }
      tasks     = { member = local.members.tasks, write = concat([local.state, local.probe], local.catalogs_state), write_metadata = local.table_folders, read_metadata = [], purge_metadata = [], read = [local.realm], purge = local.table_folders }
      collect   = { member = local.members.collect, write = concat([local.state, local.probe, local.delegated], local.realm_state), write_metadata = [], read_metadata = [], purge_metadata = local.table_folders, read = [], purge = [] }
    },
    local.vending ? {
      vending = { member = local.members.vending, write = local.table_folders, write_metadata = [], read_metadata = [], purge_metadata = [], read = [], purge = [] }
    } : {},
    { for member in toset(var.operator_members) :
      "operator ${member}" => { member = member, write = concat([local.state, local.probe, local.delegated], local.realm_state), write_metadata = [], read_metadata = [], purge_metadata = [], read = local.table_folders, purge = [] }
    },
    { for member in toset(local.vending ? [] : var.engine_members) :
      "engine ${member}" => { member = member, write = local.table_folders, write_metadata = [], read_metadata = [], purge_metadata = [], read = [], purge = [] }
    },
  )

  grants = flatten([
    for who, right in local.rights : concat(
      [for folder in right.write : { who = who, member = right.member, role = "write", folder = folder, only = [] }],
      [for folder in right.write_metadata : { who = who, member = right.member, role = "write", folder = folder, only = local.metadata_files }],
      [for folder in right.read_metadata : { who = who, member = right.member, role = "read", folder = folder, only = local.metadata_files }],
      [for folder in right.purge_metadata : { who = who, member = right.member, role = "purge", folder = folder, only = local.metadata_files }],
      [for folder in right.purge : { who = who, member = right.member, role = "purge", folder = folder, only = [] }],
      [for folder in right.read : { who = who, member = right.member, role = "read", folder = folder, only = [] }],
    )
  ])

  # With uniform access a condition on an object's name is the way to give a right on a folder.
  object_bindings = {
    for grant in local.grants : "${grant.who} ${grant.role} ${grant.folder}" => {
      bucket = split("/", grant.folder)[2]
      member = grant.member
      role   = grant.role
      condition = join(" && ", concat(
        ["resource.name.startsWith(\"projects/_/buckets/${split("/", grant.folder)[2]}/objects/${join("/", slice(split("/", grant.folder), 3, length(split("/", grant.folder))))}/\")"],
        length(grant.only) == 0 ? [] : ["(${join(" || ", [for end in grant.only : "resource.name.endsWith(\"${end}\")"])})"],
      ))
    }
  }

  # A list is asked of the bucket, whose name no folder begins. Without this right Cloud Storage answers 403 for an object
  # that is missing, and the protocols live on knowing the difference. It shows names of objects, not their contents.
  list_bindings = {
    for pair in distinct([for grant in local.grants : { member = grant.member, bucket = split("/", grant.folder)[2] }]) :
    "${pair.member} list ${pair.bucket}" => { bucket = pair.bucket, member = pair.member, role = "list", condition = null }
  }

  bindings = merge(local.object_bindings, local.list_bindings)
}
