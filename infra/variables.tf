# Variables of this module alone. Those of settings, and others that the modules of all clouds have, are in
# setting_variables.tf.

# What and where

variable "bucket" {
  description = "An existing bucket, left as it is. Null makes one, called NAME-ACCOUNT-REGION."
  type        = string
  default     = null
}

# The bucket, if one is made

variable "kms_key_arn" {
  description = "Key that encrypts the bucket. Null: S3's own keys (SSE-S3) in a bucket that is made."
  type        = string
  default     = null
}

variable "operator_role_arns" {
  description = "Roles of people who run `arco` commands that write (reconcile, undrop) against a bucket that is made."
  type        = list(string)
  default     = []
}

variable "collector_role_arns" {
  description = "Roles that may delete state in a bucket that is made. Everybody else is denied it."
  type        = list(string)
  default     = []
}

# The gateway

variable "endpoint" {
  description = "What answers HTTP: http-api (default; names with / ? # % + are refused), rest-api or function-url."
  type        = string
  default     = "http-api"

  validation {
    condition     = contains(["http-api", "rest-api", "function-url"], var.endpoint)
    error_message = "endpoint must be http-api, rest-api or function-url."
  }
}

variable "authorization" {
  description = "Who may call: iam (requests signed with SigV4), jwt (bearer tokens, see `jwt`) or none."
  type        = string
  default     = "iam"

  validation {
    condition     = contains(["iam", "jwt", "none"], var.authorization)
    error_message = "authorization must be iam, jwt or none."
  }
  validation {
    condition     = var.authorization != "none" || var.allow_unauthenticated || local.has_realm
    error_message = "authorization = \"none\" opens the catalog to everybody who knows its URL. If that is what you want, set allow_unauthenticated = true."
  }
  validation {
    condition     = var.authorization != "jwt" || var.endpoint == "http-api"
    error_message = "authorization = \"jwt\" needs endpoint = \"http-api\": the other endpoints check no tokens of themselves."
  }
  validation {
    condition     = var.authorization != "jwt" || var.jwt != null
    error_message = "authorization = \"jwt\" needs jwt = { issuer, audience, scopes }."
  }
  validation {
    condition     = var.authorization != "jwt" || try(length(var.jwt.scopes), 0) > 0 || var.allow_any_scope || local.has_realm
    error_message = "jwt.scopes is empty: any token of the audience could do anything in the catalog. Name the scopes of which a token must have one, or say with allow_any_scope = true that this is meant."
  }
  validation {
    condition     = var.authorization == "jwt" || var.jwt == null
    error_message = "jwt is set, and nobody would look at a token: set authorization = \"jwt\" too."
  }
  validation {
    condition     = var.authorization != "none" || var.endpoint != "function-url"
    error_message = "A function URL open to everybody needs a permission (lambda:InvokedViaFunctionUrl) that this provider cannot express: use authorization = \"iam\", or endpoint = \"http-api\" or \"rest-api\"."
  }
  validation {
    condition     = !contains(var.auth, "gateway") || var.authorization != "none"
    error_message = "auth = [\"gateway\"] believes what the endpoint verified, and authorization = \"none\" verifies nobody: set authorization = \"iam\" or \"jwt\"."
  }
  validation {
    condition     = length(setintersection(["internal", "oidc"], var.auth)) == 0 || var.authorization == "none"
    error_message = "auth holds internal or oidc, whose tokens the function verifies: the endpoint would refuse them before that. Set authorization = \"none\"."
  }
}

variable "allow_any_scope" {
  description = "Say that jwt without scopes is meant: every token of the audience may do everything."
  type        = bool
  default     = false
}

variable "jwt" {
  description = "Whose tokens are taken: the issuer's URL, the audiences, and scopes of which a token must have one."
  type = object({
    issuer   = string
    audience = list(string)
    scopes   = optional(list(string), [])
  })
  default = null

  validation {
    condition     = var.jwt == null || (startswith(try(var.jwt.issuer, ""), "https://") && length(try(var.jwt.audience, [])) > 0)
    error_message = "jwt needs an issuer that begins with https:// and at least one audience: a token for another service must not open this one."
  }
}

variable "console" {
  description = "Serve the console, pages for browsers below /ui. They are open to everybody and hold no data: what they show, they request with the token of their user. Needs a package with it (`make console`, then `make package ARGS=--console`)."
  type        = bool
  default     = false

  validation {
    condition     = !var.console || var.endpoint == "http-api"
    error_message = "console = true needs endpoint = \"http-api\": the other endpoints have no open routes beside those of the API."
  }
  validation {
    condition     = !var.console || var.authorization != "iam"
    error_message = "console = true needs authorization = \"none\" with a realm, or \"jwt\": a browser signs no requests with SigV4."
  }
}

variable "throttling" {
  description = "Requests a second, and how many at once, that API Gateway lets through. A function URL has none but reserved_concurrency."
  type        = object({ rate = number, burst = number })
  default     = { rate = 200, burst = 400 }
}

variable "token_throttling" {
  description = "The same for the route where clients log in (auth with internal), on an HTTP API."
  type        = object({ rate = number, burst = number })
  default     = { rate = 10, burst = 20 }
}

variable "access_logs" {
  description = "Log each request at the gateway. REST API: the account must have a CloudWatch role set for API Gateway."
  type        = bool
  default     = true
}

# The functions

variable "package" {
  description = "The zip that `make package` builds, or `make package ARGS=--sdk`. Null: dist/arco-catalog-lambda.zip beside this folder; with oidc in auth arco-catalog-lambda-oidc.zip (`make package ARGS=--oidc`), and with console such a zip that ends in -console.zip."
  type        = string
  default     = null
}

variable "architecture" {
  description = "arm64 or x86_64: the zip holds both."
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "architecture must be arm64 or x86_64."
  }
}

variable "memory" {
  description = "MB for each function; 1769 is one whole vCPU."
  type = object({
    api       = optional(number, 1024)
    reconcile = optional(number, 1024)
    work      = optional(number, 512)
    collect   = optional(number, 512)
  })
  default = {}
}

variable "reserved_concurrency" {
  description = "How many of each function may run at once; taken from what the account has. Null: no limit of its own."
  type = object({
    api       = optional(number)
    reconcile = optional(number)
    work      = optional(number)
    collect   = optional(number)
  })
  default = {}
}

variable "snap_start" {
  description = "Start the API's processes from a snapshot. Paid by the hour and by the start."
  type        = bool
  default     = false

  validation {
    condition     = !var.snap_start || var.provisioned_concurrency == 0
    error_message = "snap_start and provisioned_concurrency exclude each other on AWS: choose one."
  }
}

variable "provisioned_concurrency" {
  description = "Processes of the API that are kept warm. Paid by the hour, used or not."
  type        = number
  default     = 0
}

variable "layers" {
  description = "ARNs of layers for all functions, such as the AWS Distro for OpenTelemetry."
  type        = list(string)
  default     = []
}

# Logs, traces and alarms

variable "log_retention_days" {
  description = "Days that logs are kept."
  type        = number
  default     = 30
}

variable "otlp_endpoint" {
  description = "Where OpenTelemetry traces are sent. Null: none are made. The package holds no OpenTelemetry: a layer brings it."
  type        = string
  default     = null

  validation {
    condition     = var.otlp_endpoint == null || length(var.layers) > 0
    error_message = "otlp_endpoint needs a layer with opentelemetry-sdk and its OTLP exporter in layers: the functions do not start without."
  }
}

variable "tracing" {
  description = "X-Ray traces of the functions' invocations."
  type        = bool
  default     = false
}

variable "alarm_topic_arns" {
  description = "SNS topics that alarms are sent to, and their ends."
  type        = list(string)
  default     = []
}

# Spark

variable "emr" {
  description = <<-E
    An EMR Serverless application for the reconciler on Spark. Null: none.
    `code` is the s3://bucket/folder with its script and archives (docs/reconciler.md); `image` a custom image's URI, and
    `python` the Python in it. `schedules` runs jobs of the pipeline by the clock (docs/pipeline.md): compact, maintain, collect and
    fsck, as { compact = "rate(1 hour)", fsck = "rate(7 days)" }; none by default; collect deletes. `arguments` are more options of a job:
    { maintain = ["--max-bytes", "100G"] }. `jars` is Iceberg for Spark, 1.10 or newer, which maintain needs; releases
    before emr-7.12.0 bring an older one, and need jars in s3. `credential` is the s3 URL of a file that holds
    CLIENT_ID:CLIENT_SECRET of the pipeline's principal, if auth holds internal.
  E
  type = object({
    code          = string
    release_label = optional(string, "emr-7.12.0")
    architecture  = optional(string, "ARM64")
    max_vcpu      = optional(number, 64)
    max_memory_gb = optional(number, 256)
    idle_minutes  = optional(number, 5)
    image         = optional(string)
    python        = optional(string, "./environment/bin/python")
    schedules     = optional(map(string), {})
    arguments     = optional(map(list(string)), {})
    jars          = optional(string, "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar")
    credential    = optional(string)
  })
  default = null

  validation {
    condition     = var.emr == null || can(regex("^s3://[a-z0-9.-]+(/[^*?/]+)+$", var.emr.code))
    error_message = "emr.code must be of the form s3://bucket/folder, without a slash at the end."
  }
  validation {
    condition     = try(length(setsubtract(concat(keys(var.emr.schedules), keys(var.emr.arguments)), ["compact", "maintain", "collect", "fsck"])) == 0, true)
    error_message = "emr.schedules and emr.arguments know the jobs compact, maintain, collect and fsck."
  }
  validation {
    condition     = try(alltrue([for when in values(var.emr.schedules) : can(regex("^(rate|cron)\\([^()]+\\)$", when))]), true)
    error_message = "emr.schedules must be expressions such as rate(1 hour) or cron(0 3 * * ? *)."
  }
  validation {
    condition     = try(!contains(keys(var.emr.schedules), "maintain") || !startswith(var.emr.jars, "/usr/share/aws/iceberg/") || !can(regex("^emr-([1-6]\\.|7\\.([0-9]|1[01])\\.)", var.emr.release_label)), true)
    error_message = "emr.schedules.maintain needs Iceberg 1.10: emr-7.12.0 or newer brings it, before that emr.jars names it in s3."
  }
  validation {
    condition     = try(alltrue([for said in flatten(values(var.emr.arguments)) : !can(regex("credential", said))]), true)
    error_message = "emr.arguments are seen by whoever may look at the schedule: the credential is a file, emr.credential."
  }
  validation {
    condition     = try(var.emr.credential == null, true) || can(regex("^s3://[a-z0-9.-]+(/[^*?/ ]+)+$", var.emr.credential))
    error_message = "emr.credential must be of the form s3://bucket/key."
  }
  validation {
    condition     = try(length(setintersection(keys(var.emr.schedules), ["compact", "maintain"])) == 0, true) || var.authorization == "iam" || contains(var.auth, "internal") || (length(var.auth) == 0 && var.authorization == "none")
    error_message = "emr.schedules.compact and maintain need authorization = \"iam\", or auth with internal: a job gets no token of another issuer."
  }
  validation {
    condition     = try(length(setintersection(keys(var.emr.schedules), ["compact", "maintain"])) == 0, true) || contains(var.auth, "internal") == (try(var.emr.credential, null) != null)
    error_message = "emr.credential is what a job logs in with where auth holds internal, and nowhere else."
  }
  validation {
    condition     = try(length(var.emr.schedules) == 0, true) || length(var.realm) <= 1
    error_message = "emr.schedules is for one realm: with several, run the jobs of each by a schedule of your own."
  }
}
