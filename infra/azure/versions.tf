terraform {
  required_version = ">= 1.9" # a variable's validation may look at other variables

  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = "~> 5.2"
    }
  }
}
