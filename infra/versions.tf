terraform {
  required_version = ">= 1.9" # a variable's validation may look at other variables

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}
