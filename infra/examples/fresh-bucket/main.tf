# The catalog with a bucket of its own, called by engines that sign their requests.

variable "region" {
  description = "Where it runs."
  type        = string
  default     = "us-east-1"
}

provider "aws" {
  region = var.region
}

module "catalog" {
  source = "../.."

  name = "lake"
}

output "catalog" {
  value = module.catalog
}
