output "url" {
  description = "ARCO_DELEGATION_URL of callers. The service's certificate must have this name."
  value       = "https://delegation.${local.domain}:${local.port}"
}

output "role_arn" {
  description = "The role of the service: add it to operator_role_arns and collector_role_arns of the catalog's module, if they share a bucket that the module made."
  value       = "arn:${local.partition}:iam::${local.account}:role/${local.label}"
}

output "start_role_arn" {
  description = "The role that reads the secrets."
  value       = "arn:${local.partition}:iam::${local.account}:role/${local.label}-start"
}

output "security_group_id" {
  description = "The security group of the service."
  value       = aws_security_group.delegation.id
}
