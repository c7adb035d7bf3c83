terraform {
  required_version = ">= 1.11" # what is write-only goes into no plan and no state

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}
