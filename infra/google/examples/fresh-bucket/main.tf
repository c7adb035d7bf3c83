# The catalog with a bucket of its own, called by engines that run as one service account.

variable "project" {
  description = "The project's ID."
  type        = string
}

variable "image" {
  description = "The image that was pushed, with its tag or digest."
  type        = string
}

variable "region" {
  description = "Where it runs."
  type        = string
  default     = "europe-west3"
}

provider "google" {
  project = var.project
  region  = var.region
}

resource "google_service_account" "spark" {
  account_id   = "lake-spark"
  display_name = "Spark"
}

module "catalog" {
  source = "../.."

  project = var.project
  region  = var.region
  name    = "lake"
  image   = var.image

  engine_members = ["serviceAccount:${google_service_account.spark.email}"]
}

output "catalog" {
  value = module.catalog
}
