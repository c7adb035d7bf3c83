# What and where

variable "name" {
  description = "Name of the deployment, as the catalog's module has it: 3 to 28 lower-case letters, digits and hyphens."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,26}[a-z0-9]$", var.name))
    error_message = "name must be 3 to 28 lower-case letters, digits and hyphens, beginning with a letter."
  }
}

variable "store" {
  description = "Where the service keeps its tasks: the catalog's output `store`, or s3://bucket/folder of its own."
  type        = string

  validation {
    condition     = can(regex("^s3://[a-z0-9][a-z0-9.-]+(/[A-Za-z0-9_-]+)*$", var.store))
    error_message = "store must be of the form s3://bucket or s3://bucket/folder, without a slash at its end."
  }
}

variable "warehouse" {
  description = "The catalog in the store, as the catalog's module has it."
  type        = string
  default     = "main"
}

variable "realm" {
  description = "The realms of the store, as the catalog's module has them."
  type        = list(string)
  default     = []
}

variable "allowed_locations" {
  description = "Where the service may delete files, as s3://bucket/folder: folders of tables, not a bucket with other files."
  type        = list(string)

  validation {
    condition     = length(var.allowed_locations) > 0 && alltrue([for place in var.allowed_locations : can(regex("^s3://[^/,]+/[^,]+$", place))])
    error_message = "allowed_locations must name at least one place of the form s3://bucket/folder, without commas."
  }
}

variable "kms_key_arn" {
  description = "Key that encrypts the store's bucket. Null: S3's own keys."
  type        = string
  default     = null
}

# The container

variable "image" {
  description = "The image of `make image` in a registry, with a tag or a digest."
  type        = string
}

variable "architecture" {
  description = "Processor architecture of the image: ARM64 or X86_64."
  type        = string
  default     = "X86_64"

  validation {
    condition     = contains(["ARM64", "X86_64"], var.architecture)
    error_message = "architecture must be ARM64 or X86_64."
  }
}

variable "cpu" {
  description = "CPU units of the Fargate task: 1024 are one vCPU."
  type        = number
  default     = 512
}

variable "memory" {
  description = "Memory of the Fargate task in MB."
  type        = number
  default     = 1024
}

variable "replicas" {
  description = "Number of containers. Each executes up to 64 purges."
  type        = number
  default     = 1
}

variable "environment" {
  description = "More variables of the service (docs/configuration.md), such as ARCO_DELEGATION_REALMS."
  type        = map(string)
  default     = {}
}

# Who may call

variable "vpc_id" {
  description = "The network that the service and its callers are in."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets, from which S3 and the image's registry can be reached."
  type        = list(string)
}

variable "caller_security_group_ids" {
  description = "Security groups of the containers and functions that may connect. Nothing else can."
  type        = list(string)

  validation {
    condition     = length(var.caller_security_group_ids) > 0 && alltrue([for group in var.caller_security_group_ids : startswith(group, "sg-")])
    error_message = "caller_security_group_ids must have at least one id of a security group."
  }
}

variable "tls_secret_arn" {
  description = "A secret of Secrets Manager, JSON with the PEM texts `certificate` and `key` of the service, and `authority`, which signs the certificates of its callers."
  type        = string

  validation {
    condition     = startswith(var.tls_secret_arn, "arn:")
    error_message = "tls_secret_arn must be the whole ARN of a secret."
  }
}

variable "token_key_secret_arn" {
  description = "The secret with the keys that sign the catalog's tokens: callers then need a token of scope execute_tasks besides. Null: their certificates are enough."
  type        = string
  default     = null
}

# Logs

variable "log_retention_days" {
  description = "Days that logs are kept."
  type        = number
  default     = 30
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}
