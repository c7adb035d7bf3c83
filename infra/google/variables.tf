# What and where

variable "project" {
  description = "ID of the project that everything is made in."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "project must be a project's ID: 6 to 30 lower-case letters, digits and hyphens."
  }
}

variable "region" {
  description = "Where the service, the job and the schedule run, such as europe-west3."
  type        = string
}

variable "name" {
  description = "Prefix of the names of everything that is made. One deployment in a project has it."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,17}[a-z0-9]$", var.name))
    error_message = "name must be 3 to 19 lower-case letters, digits and hyphens: it becomes part of a service account's name."
  }
}

variable "image" {
  description = "The container image, in a registry that Cloud Run may read, by tag or digest. See docs/deploying.md for how it is built and pushed."
  type        = string

  validation {
    condition     = can(regex("^[^\\s:@]+(:[0-9]+/[^\\s:@]+)?(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$", var.image)) && can(regex("(:[^/:@]+|@sha256:[0-9a-f]{64})$", var.image)) && !endswith(var.image, ":latest")
    error_message = "image must end with a tag other than latest, or with a digest: a deployment must say which one it is."
  }
}

variable "bucket" {
  description = "An existing bucket. Nothing on it is changed but who may read and write in it. Null makes one, called PROJECT-NAME."
  type        = string
  default     = null
}

variable "prefix" {
  description = "Folder of the store in the bucket, without slashes at its ends. Empty: the whole bucket."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^([A-Za-z0-9_=.-]+(/[A-Za-z0-9_=.-]+)*)?$", var.prefix))
    error_message = "prefix must be folder names joined by slashes, of letters, digits and _ = . -"
  }
  validation {
    condition     = alltrue([for folder in split("/", var.prefix) : !contains([".", ".."], folder)])
    error_message = "prefix must not hold . or .. as a folder: the server does not start with one."
  }
}

variable "warehouse" {
  description = "Name of the catalog, which engines give as `warehouse`: a folder below the prefix."
  type        = string
  default     = "main"

  validation {
    condition     = can(regex("^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$", var.warehouse))
    error_message = "warehouse must be 1 to 64 letters, digits, hyphens and underscores, and not begin with a hyphen."
  }
  validation {
    condition     = var.warehouse != "catalogs"
    error_message = "warehouse must not be catalogs: tables of a realm's other catalogs lie in that folder."
  }
  validation {
    condition     = var.warehouse != "_probe"
    error_message = "warehouse must not be _probe: what lies in that folder expires after a day."
  }
}

variable "allowed_locations" {
  description = "Folders outside the warehouse where tables may live, as gs://bucket/folder. Sixteen at most: a bucket takes twenty conditions for one account and role."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for location in var.allowed_locations : can(regex("^gs://[a-z0-9._-]+(/[^*?#\\[\\]\"\\\\%,/\\s]+)+$", location))])
    error_message = "allowed_locations must be of the form gs://bucket/folder, without * ? # [ ] % , quotes, backslashes and spaces, and without a slash at the end."
  }
  validation {
    condition     = length(var.allowed_locations) <= 16
    error_message = "allowed_locations must be sixteen at most."
  }
  validation {
    condition     = alltrue([for location in var.allowed_locations : !startswith("${local.state}/", "${location}/") && !startswith("${location}/", "${local.state}/")])
    error_message = "allowed_locations must not hold the catalog's state or lie in it: engines may delete what lies there."
  }
  validation {
    condition     = alltrue([for location in var.allowed_locations : length(setintersection(split("/", location), local.reserved_folders)) == 0 && !startswith("${local.realm}/", "${location}/")])
    error_message = "allowed_locations must not hold the realm's state, nor lie in a folder named _catalog, _probe, _realm or .arco-store: no table may be there."
  }
}

variable "allow_location_overlap" {
  description = "Let a table's location lie inside another's."
  type        = bool
  default     = false
}

variable "idempotency_dialect" {
  description = "How Idempotency-Keys are read and answered: iceberg or polaris."
  type        = string
  default     = "iceberg"

  validation {
    condition     = contains(["iceberg", "polaris"], var.idempotency_dialect)
    error_message = "idempotency_dialect must be iceberg or polaris."
  }
}

variable "idempotency_enabled" {
  description = "Take Idempotency-Keys; false: they are ignored, and clients are told not to send them."
  type        = bool
  default     = true
}

variable "idempotency_lifetime" {
  description = "How long clients may retry with one Idempotency-Key: a duration such as PT30M, a day at most."
  type        = string
  default     = "PT30M"

  validation {
    condition     = can(regex("^P(1D|T(\\d+H)?(\\d+M)?(\\d+S)?)$", var.idempotency_lifetime)) && can(regex("[1-9]", var.idempotency_lifetime))
    error_message = "idempotency_lifetime must be a duration such as PT30M, P1D at most."
  }
}

variable "idempotency_cleanup_enabled" {
  description = "Have the collector delete markers of old Idempotency-Keys, and decisions of transactions that they may ask for."
  type        = bool
  default     = true
}

# Purges, and other tasks

variable "purge" {
  description = "What a drop with purge does: mode async, sync or off; how long it can be undone; whether files of other tables are taken to lie in their own locations."
  type = object({
    mode            = optional(string, "async")
    undrop_window   = optional(string, "PT24H")
    trust_locations = optional(bool, false)
  })
  default = {}

  validation {
    condition     = contains(["async", "sync", "off"], var.purge.mode)
    error_message = "purge.mode must be async, sync or off."
  }
  validation {
    condition     = can(regex("^P(\\d+D)?(T(\\d+H)?(\\d+M)?(\\d+S)?)?$", var.purge.undrop_window)) && can(regex("\\d", var.purge.undrop_window))
    error_message = "purge.undrop_window must be a duration such as PT24H, P7D or PT0S."
  }
}

variable "task_properties" {
  description = "How tasks are leased and retried, such as { \"delegation.retry.TABLE_PURGE.max-attempts\" = \"20\" } (docs/configuration.md)."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name, value in var.task_properties : startswith(name, "delegation.") && !strcontains("${name}${value}", ",")])
    error_message = "task_properties must be properties delegation.task... or delegation.retry..., without commas."
  }
}

variable "enable_apis" {
  description = "Turn on the APIs of Google Cloud that this needs. They stay on when the deployment is taken down."
  type        = bool
  default     = true
}

# The bucket, if one is made

variable "bucket_location" {
  description = "Location of the bucket: a region, a pair of regions or a continent. Null: `region`."
  type        = string
  default     = null
}

variable "kms_key" {
  description = "Key that encrypts the bucket (projects/.../cryptoKeys/...); Cloud Storage's own account must be allowed to use it. Null: Google's own keys."
  type        = string
  default     = null
}

variable "noncurrent_days" {
  description = "Days that replaced and deleted versions of objects are kept: how far back the store can be restored."
  type        = number
  default     = 30

  validation {
    condition     = var.noncurrent_days >= 1
    error_message = "noncurrent_days must be at least 1."
  }
}

variable "soft_delete_days" {
  description = "Days that a version can still be restored after it was deleted for good: 0 for none, or 7 to 90. It is paid as any other."
  type        = number
  default     = 7

  validation {
    condition     = var.soft_delete_days == 0 || (var.soft_delete_days >= 7 && var.soft_delete_days <= 90)
    error_message = "soft_delete_days must be 0, or 7 to 90."
  }
}

variable "force_destroy" {
  description = "Let `terraform destroy` delete a bucket that was made although there is data in it."
  type        = bool
  default     = false
}

# Who may call

variable "authorization" {
  description = "Who may call: iam (Google ID tokens of members that may invoke the service) or none."
  type        = string
  default     = "iam"

  validation {
    condition     = contains(["iam", "none"], var.authorization)
    error_message = "authorization must be iam or none."
  }
  validation {
    condition     = var.authorization != "none" || var.allow_unauthenticated || local.has_realm
    error_message = "authorization = \"none\" opens the catalog to everybody who can reach its URL. If that is what you want, set allow_unauthenticated = true."
  }
  validation {
    condition     = !local.has_realm || var.authorization == "none"
    error_message = "auth is set, and Cloud Run would refuse the tokens that the catalog verifies before it saw them: set authorization = \"none\"."
  }
}

variable "allow_unauthenticated" {
  description = "Say that authorization = \"none\" is meant."
  type        = bool
  default     = false
}

variable "ingress" {
  description = "From where the service can be reached: all, or internal (networks of the project, and what may pass for them)."
  type        = string
  default     = "all"

  validation {
    condition     = contains(["all", "internal"], var.ingress)
    error_message = "ingress must be all or internal."
  }
}

variable "engine_members" {
  description = "Who may call the catalog and read and write its tables, such as serviceAccount:lake-spark@my-project.iam.gserviceaccount.com or group:analysts@example.com."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for member in var.engine_members : can(regex("^(user|group|serviceAccount|domain|principal|principalSet):.+$", member))])
    error_message = "engine_members must be members of IAM with their kind, such as serviceAccount:name@project.iam.gserviceaccount.com. Everybody (allUsers, allAuthenticatedUsers) is none."
  }
}

variable "operator_members" {
  description = "People who run `arco` commands against the store: they may read tables, and read and write state."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for member in var.operator_members : can(regex("^(user|group|serviceAccount|principal|principalSet):.+$", member))])
    error_message = "operator_members must be members of IAM with their kind, such as user:ada@example.com."
  }
}

# The service

variable "cpu" {
  description = "Cores of an instance, each with a worker: 1, 2, 4 or 8."
  type        = number
  default     = 1

  validation {
    condition     = contains([1, 2, 4, 8], var.cpu)
    error_message = "cpu must be 1, 2, 4 or 8."
  }
}

variable "memory" {
  description = "MB of an instance. A worker takes up to 420 MB with the default settings."
  type        = number
  default     = 1024

  validation {
    condition     = var.memory >= 512 * var.cpu && var.memory <= 4096 * var.cpu
    error_message = "memory must be 512 to 4096 MB for each core."
  }
}

variable "concurrency" {
  description = "Requests that an instance answers at once before another is started."
  type        = number
  default     = 80

  validation {
    condition     = var.concurrency >= 1 && var.concurrency <= 500
    error_message = "concurrency must be 1 to 500: a worker takes 512 connections."
  }
}

variable "instance_billing" {
  description = "Pay for instances as long as they are there, not for the time of their requests: what follows an answer (receipts) is then written at once."
  type        = bool
  default     = false
}

variable "min_instances" {
  description = "Instances that are kept warm. Paid by the hour, at a lower price while idle."
  type        = number
  default     = 0

  validation {
    condition     = var.min_instances >= 0 && var.min_instances <= var.max_instances
    error_message = "min_instances must be 0 to max_instances."
  }
}

variable "max_instances" {
  description = "Instances at most; requests beyond what they take are answered 429."
  type        = number
  default     = 20

  validation {
    condition     = var.max_instances >= 1
    error_message = "max_instances must be at least 1."
  }
}

variable "environment" {
  description = "More environment variables for service and job. They do not replace the module's own."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.environment) : !can(regex("^ARCO_(AUTH|AUTHORIZATION|REALM|TOKEN_.*|OIDC_.*)$", name))])
    error_message = "environment must not hold ARCO_AUTH, ARCO_REALM, ARCO_TOKEN_... or ARCO_OIDC_...: the variables of those names give the service the rights that go with them, and a key in the environment would lie in Terraform's state."
  }
  validation {
    condition     = alltrue([for variable in keys(var.environment) : !contains(["PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION"], variable)])
    error_message = "environment must not hold PORT or K_...: Cloud Run sets them."
  }
}

# Watching it

variable "log_level" {
  description = "Least severe level that is logged: debug, info, warning or error."
  type        = string
  default     = "warning"

  validation {
    condition     = contains(["debug", "info", "warning", "error"], var.log_level)
    error_message = "log_level must be debug, info, warning or error: the server does not start with another."
  }
}

variable "max_state_objects" {
  description = "Objects of the state of all catalogs above which an alert tells that collection does not keep up: a commit leaves some four for 90 days."
  type        = number
  default     = 5000000
}

variable "request_metrics" {
  description = "Make metrics of the lines that the catalog logs for its requests: latency, store calls and conflicts by operation."
  type        = bool
  default     = true
}

variable "notification_channels" {
  description = "Channels of Cloud Monitoring that alerts are sent to, as projects/.../notificationChannels/..."
  type        = list(string)
  default     = []
}

variable "labels" {
  description = "Labels of everything that takes them."
  type        = map(string)
  default     = {}
}
