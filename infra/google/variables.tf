# Variables of this module alone. Those of settings, and others that the modules of all clouds have, are in
# setting_variables.tf.

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

variable "soft_delete_days" {
  description = "Days that a version can still be restored after it was deleted for good: 0 for none, or 7 to 90. It is paid as any other."
  type        = number
  default     = 7

  validation {
    condition     = var.soft_delete_days == 0 || (var.soft_delete_days >= 7 && var.soft_delete_days <= 90)
    error_message = "soft_delete_days must be 0, or 7 to 90."
  }
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

# Metrics and alerts

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
