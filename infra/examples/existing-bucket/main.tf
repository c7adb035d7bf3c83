# The catalog in a folder of a bucket that is there already, called with tokens of an identity provider. Nothing on the
# bucket is changed: it must be versioned, and `bucket_policy_json` belongs into its policy.

variable "bucket" {
  description = "The bucket's name."
  type        = string
}

variable "issuer" {
  description = "URL of the identity provider, as its tokens say it (iss)."
  type        = string
}

variable "region" {
  description = "Where the bucket is."
  type        = string
  default     = "us-east-1"
}

provider "aws" {
  region = var.region
}

data "aws_s3_bucket" "lake" {
  bucket = var.bucket
}

module "catalog" {
  source = "../.."

  name      = "lake"
  bucket    = data.aws_s3_bucket.lake.id
  prefix    = "iceberg"
  warehouse = "analytics"

  authorization = "jwt"
  jwt = {
    issuer   = var.issuer
    audience = ["lake"]
    scopes   = ["catalog"]
  }

  memory             = { api = 1769 }
  log_retention_days = 90
}

output "catalog" {
  value = module.catalog
}
