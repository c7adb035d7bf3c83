"""Makes the Terraform of three clouds from the table of settings: `python -m tools.terraform` writes the variables and
the environment of settings into infra/, infra/google and infra/azure."""
