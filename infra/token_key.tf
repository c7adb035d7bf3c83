# The key that signs own tokens. Whoever reads it can make tokens for every principal: the API may, and nobody else.

locals {
  makes_token_key  = var.generate_token_key
  token_key_secret = local.makes_token_key ? one(aws_secretsmanager_secret.token_key[*].arn) : var.token_key_secret
  reads_token_key  = concat([local.api_role_arn, data.aws_iam_session_context.deployer.issuer_arn], var.operator_role_arns)

  # Secrets Manager ends ARNs with six characters of its own.
  token_key_arn    = local.makes_token_key ? "${local.secret_arn}:${var.name}-token-key-??????" : var.token_key_secret
  token_key_action = startswith(coalesce(local.token_key_arn, "none"), "arn:${local.partition}:ssm:") ? "ssm:GetParameter" : "secretsmanager:GetSecretValue"
}

data "aws_iam_session_context" "deployer" {
  arn = data.aws_caller_identity.current.arn
}

resource "aws_secretsmanager_secret" "token_key" {
  count = local.makes_token_key ? 1 : 0

  name                    = "${var.name}-token-key"
  description             = "Signs the tokens of the Iceberg REST catalog ${var.warehouse}"
  recovery_window_in_days = 0 # its name is free at once, and all that a lost key costs is that clients log in again
  tags                    = local.tags
}

resource "aws_secretsmanager_secret_policy" "token_key" {
  count = local.makes_token_key ? 1 : 0

  secret_arn = aws_secretsmanager_secret.token_key[0].arn
  policy     = data.aws_iam_policy_document.token_key.json
}

# Terraform's provider reads a secret's version again whenever it plans: hence who deploys.
data "aws_iam_policy_document" "token_key" {
  statement {
    sid       = "ReadByTheApiOnly"
    effect    = "Deny"
    actions   = ["secretsmanager:GetSecretValue", "secretsmanager:BatchGetSecretValue"]
    resources = ["*"]
    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "ArnNotEquals"
      variable = "aws:PrincipalArn"
      values   = local.reads_token_key
    }
  }
}

ephemeral "aws_secretsmanager_random_password" "token_key" {
  count = local.makes_token_key ? 1 : 0

  password_length     = 64
  exclude_punctuation = true # commas and blanks part keys
}

resource "aws_secretsmanager_secret_version" "token_key" {
  count = local.makes_token_key ? 1 : 0

  secret_id                = aws_secretsmanager_secret.token_key[0].id
  secret_string_wo         = ephemeral.aws_secretsmanager_random_password.token_key[0].random_password
  secret_string_wo_version = var.token_key_version

  depends_on = [aws_secretsmanager_secret_policy.token_key]
}
