# Variables of a realm besides those of setting_variables.tf. `authorization` in variables.tf checks which go together.

# The key that signs tokens

variable "token_key_kms_key_arn" {
  description = "Key of KMS that token_key_secret is encrypted with, if it is one of your own."
  type        = string
  default     = null
}

variable "generate_token_key" {
  description = "Let Secrets Manager make the key, and keep it. It is in no plan and in no state of Terraform's."
  type        = bool
  default     = false

  validation {
    condition     = !contains(var.auth, "internal") || (var.token_key_secret != null) != var.generate_token_key
    error_message = "auth with internal needs a key to sign tokens with: set just one of token_key_secret and generate_token_key = true."
  }
  validation {
    condition     = contains(var.auth, "internal") || (var.token_key_secret == null && !var.generate_token_key)
    error_message = "There is a key to sign tokens with, and auth without internal signs none."
  }
}

variable "token_key_version" {
  description = "A higher number replaces the key that was generated: tokens signed with the old one end within 15 minutes."
  type        = number
  default     = 1
}

# Callers that the endpoint verified

variable "function_url_id" {
  description = "The output function_url_id, for auth = [\"gateway\"] behind a function URL. AWS makes the id after the function, so the first apply can't know it: until it is set everybody is answered 401."
  type        = string
  default     = null

  validation {
    condition     = can(regex("^[a-z0-9]+$", coalesce(var.function_url_id, "id")))
    error_message = "function_url_id must be the id alone: what is before .lambda-url in the URL."
  }
}

# What engines may read and write

variable "reader_role_arns" {
  description = "Roles of this account that read all tables' files with rights of their own, whatever was granted in the realm."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.reader_role_arns : can(regex("^arn:aws[a-z-]*:iam::${local.account}:role/[^*?]+$", arn))])
    error_message = "reader_role_arns must be ARNs of roles of this account, without * and ?."
  }
}

variable "writer_role_arns" {
  description = "Roles of this account that read and write all tables' files with rights of their own, whatever was granted in the realm."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.writer_role_arns : can(regex("^arn:aws[a-z-]*:iam::${local.account}:role/[^*?]+$", arn))])
    error_message = "writer_role_arns must be ARNs of roles of this account, without * and ?."
  }
}
