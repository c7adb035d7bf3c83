# A caller that may submit tasks can delete files, so only the named groups can connect to the port at all.

resource "aws_security_group" "delegation" {
  name        = local.label
  description = "The delegation service of the catalog ${var.warehouse}"
  vpc_id      = var.vpc_id
  tags        = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "caller" {
  for_each = toset(var.caller_security_group_ids)

  security_group_id            = aws_security_group.delegation.id
  description                  = "Catalogs that submit tasks"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = local.port
  to_port                      = local.port
  tags                         = local.tags
}

# S3, the secrets, the logs and the image's registry: all by HTTPS, at addresses that AWS changes.
resource "aws_vpc_security_group_egress_rule" "https" {
  security_group_id = aws_security_group.delegation.id
  description       = "Stores, secrets and logs"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  tags              = local.tags
}
