terraform {
  required_version = ">= 1.9" # a variable's validation may look at other variables

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 8.0"
    }
  }
}
