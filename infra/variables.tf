# What and where

variable "name" {
  description = "Prefix of the names of everything that is made. One deployment in an account has it: roles and dashboards know no region."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,26}[a-z0-9]$", var.name))
    error_message = "name must be 3 to 28 lower-case letters, digits and hyphens: it becomes part of a bucket's name."
  }
}

variable "bucket" {
  description = "An existing bucket, left as it is. Null makes one, called NAME-ACCOUNT-REGION."
  type        = string
  default     = null
}

variable "prefix" {
  description = "Folder of the store in the bucket, without slashes at its ends. Empty: the whole bucket."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^([A-Za-z0-9_=.-]+(/[A-Za-z0-9_=.-]+)*)?$", var.prefix))
    error_message = "prefix must be folder names joined by slashes, of letters, digits and _ = . -"
  }
  validation {
    condition     = alltrue([for folder in split("/", var.prefix) : !contains([".", ".."], folder)])
    error_message = "prefix must not hold . or .. as a folder: the functions do not start with one."
  }
}

variable "warehouse" {
  description = "Name of the catalog, which engines give as `warehouse`: a folder below the prefix."
  type        = string
  default     = "main"

  validation {
    condition     = can(regex("^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$", var.warehouse))
    error_message = "warehouse must be 1 to 64 letters, digits, hyphens and underscores, and not begin with a hyphen."
  }
  validation {
    condition     = var.warehouse != "_probe"
    error_message = "warehouse must not be _probe: what lies in that folder expires after a day."
  }
}

variable "allowed_locations" {
  description = "Folders outside the warehouse where tables may live, as s3://bucket/folder."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for location in var.allowed_locations : can(regex("^s3://[a-z0-9.-]+(/[^*?%,/]+)+$", location))])
    error_message = "allowed_locations must be of the form s3://bucket/folder, without * ? % , and without a slash at the end."
  }
  validation {
    condition     = alltrue([for location in var.allowed_locations : length(setintersection(split("/", location), local.reserved_folders)) == 0])
    error_message = "allowed_locations must not lie in a folder named _catalog, _probe, _realm or .arco-store: no table may be there."
  }
}

variable "allow_location_overlap" {
  description = "Let a table's location lie inside another's."
  type        = bool
  default     = false
}

variable "idempotency_dialect" {
  description = "How Idempotency-Keys are read and answered: iceberg or polaris."
  type        = string
  default     = "iceberg"

  validation {
    condition     = contains(["iceberg", "polaris"], var.idempotency_dialect)
    error_message = "idempotency_dialect must be iceberg or polaris."
  }
}

variable "idempotency_enabled" {
  description = "Take Idempotency-Keys; false: they are ignored, and clients are told not to send them."
  type        = bool
  default     = true
}

variable "idempotency_lifetime" {
  description = "How long clients may retry with one Idempotency-Key: a duration such as PT30M, a day at most."
  type        = string
  default     = "PT30M"

  validation {
    condition     = can(regex("^P(1D|T(\\d+H)?(\\d+M)?(\\d+S)?)$", var.idempotency_lifetime)) && can(regex("[1-9]", var.idempotency_lifetime))
    error_message = "idempotency_lifetime must be a duration such as PT30M, P1D at most."
  }
}

variable "idempotency_cleanup_enabled" {
  description = "Have the collector delete markers of old Idempotency-Keys, and decisions of transactions that they may ask for."
  type        = bool
  default     = true
}

# Purges, and other tasks

variable "purge" {
  description = "What a drop with purge does: mode async, sync or off; how long it can be undone; whether files of other tables are taken to lie in their own locations."
  type = object({
    mode            = optional(string, "async")
    undrop_window   = optional(string, "PT24H")
    trust_locations = optional(bool, false)
  })
  default = {}

  validation {
    condition     = contains(["async", "sync", "off"], var.purge.mode)
    error_message = "purge.mode must be async, sync or off."
  }
  validation {
    condition     = can(regex("^P(\\d+D)?(T(\\d+H)?(\\d+M)?(\\d+S)?)?$", var.purge.undrop_window)) && can(regex("\\d", var.purge.undrop_window))
    error_message = "purge.undrop_window must be a duration such as PT24H, P7D or PT0S."
  }
}

variable "task_properties" {
  description = "How tasks are leased and retried, such as { \"delegation.retry.TABLE_PURGE.max-attempts\" = \"20\" } (docs/configuration.md)."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name, value in var.task_properties : startswith(name, "delegation.") && !strcontains("${name}${value}", ",")])
    error_message = "task_properties must be properties delegation.task... or delegation.retry..., without commas."
  }
}

variable "max_state_objects" {
  description = "Objects of the catalog's state above which an alarm tells that collection does not keep up: a commit leaves some four for 90 days."
  type        = number
  default     = 5000000
}

# The bucket, if one is made

variable "kms_key_arn" {
  description = "Key that encrypts the bucket. Null: S3's own keys (SSE-S3) in a bucket that is made."
  type        = string
  default     = null
}

variable "noncurrent_days" {
  description = "Days that replaced and deleted versions of objects are kept: how far back the store can be restored."
  type        = number
  default     = 30

  validation {
    condition     = var.noncurrent_days >= 1
    error_message = "noncurrent_days must be at least 1."
  }
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

variable "force_destroy" {
  description = "Let `terraform destroy` delete a bucket that was made although there is data in it."
  type        = bool
  default     = false
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

variable "allow_unauthenticated" {
  description = "Say that authorization = \"none\" is meant."
  type        = bool
  default     = false
}

variable "allow_any_scope" {
  description = "Say that jwt without scopes is meant: every token of the audience may do everything."
  type        = bool
  default     = false
}

variable "source_principals" {
  description = "Who may say on whose behalf a request comes (X-Arco-Admin-User, X-Arco-Servo-...): role ARNs as receipts name them (arn:aws:sts::ACCOUNT:assumed-role/NAME), ARNs of users, or subjects of tokens; * matches any text. What others say there is ignored."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for principal in var.source_principals : principal != "" && !strcontains(principal, ",")])
    error_message = "source_principals must be names of principals, without commas."
  }
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
  description = "The zip that `make package` builds, or `make package ARGS=--sdk`. Null: dist/arco-catalog-lambda.zip beside this folder; with oidc in auth arco-catalog-lambda-oidc.zip (`make package ARGS=--oidc`)."
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

variable "environment" {
  description = "More environment variables for all functions. They do not replace the module's own."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.environment) : !can(regex("^ARCO_(AUTH|AUTHORIZATION|REALM|TOKEN_.*|OIDC_.*|GATEWAY_.*)$", name))])
    error_message = "environment must not hold ARCO_AUTH, ARCO_REALM, ARCO_TOKEN_..., ARCO_OIDC_... or ARCO_GATEWAY_...: the variables of those names give the functions the rights that go with them, and a key in the environment would lie in Terraform's state."
  }
}

# Watching it

variable "log_level" {
  description = "Least severe level that is logged: DEBUG, INFO, WARNING or ERROR."
  type        = string
  default     = "INFO"

  validation {
    condition     = contains(["DEBUG", "INFO", "WARNING", "ERROR"], upper(var.log_level))
    error_message = "log_level must be DEBUG, INFO, WARNING or ERROR: the functions do not start with another."
  }
}

variable "log_retention_days" {
  description = "Days that logs are kept."
  type        = number
  default     = 30
}

variable "metrics_namespace" {
  description = "CloudWatch namespace of the catalog's own metrics. Null: ArcoCatalog/NAME. Empty: none, and no alarm that needs them."
  type        = string
  default     = null

  validation {
    condition     = can(regex("^[A-Za-z0-9_./#-][A-Za-z0-9_./#: -]{0,254}$", coalesce(var.metrics_namespace, "-"))) && !startswith(coalesce(var.metrics_namespace, "-"), "AWS/")
    error_message = "metrics_namespace must be what CloudWatch takes for one, and must not begin with AWS/."
  }
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

variable "tags" {
  description = "Tags of everything that takes them."
  type        = map(string)
  default     = {}
}
