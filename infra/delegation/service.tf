# The service on Fargate, behind a name of the network's own. It stays up while it deletes, so it is no function.

locals {
  # Fargate gives secrets as variables alone, and the service reads files.
  files = merge(
    { TLS_CERTIFICATE = "tls.crt", TLS_KEY = "tls.key", TLS_AUTHORITY = "ca.crt" },
    local.needs_a_token ? { TOKEN_KEY = "token.key" } : {},
  )
  scratch = "/var/lib/arco" # the image's volume, which its user may write
  script = join("\n", concat(
    ["umask 077"],
    [for variable, file in local.files : format("printf '%%s\\n' \"$%s\" > %s/%s; unset %s", variable, local.scratch, file, variable)],
    ["exec arco delegation-service"],
  ))

  settings = merge(
    {
      AWS_REGION                        = local.region
      TMPDIR                            = local.scratch
      HOME                              = local.scratch
      ARCO_STORE                        = var.store
      ARCO_WAREHOUSE                    = var.warehouse
      ARCO_DELEGATION_PORT              = tostring(local.port)
      ARCO_DELEGATION_ALLOWED_LOCATIONS = join(",", var.allowed_locations)
      ARCO_TLS_CERT                     = "${local.scratch}/${local.files.TLS_CERTIFICATE}"
      ARCO_TLS_KEY                      = "${local.scratch}/${local.files.TLS_KEY}"
      ARCO_TLS_CLIENT_CA                = "${local.scratch}/${local.files.TLS_AUTHORITY}"
    },
    length(var.realm) == 0 ? {} : { ARCO_REALM = join(",", var.realm) },
    local.needs_a_token ? { ARCO_AUTH = "internal", ARCO_TOKEN_KEY_FILE = "${local.scratch}/${local.files.TOKEN_KEY}" } : {},
  )
}

resource "aws_ecs_cluster" "delegation" {
  name = local.label
  tags = local.tags
}

resource "aws_ecs_task_definition" "delegation" {
  family                   = local.label
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.cpu
  memory                   = var.memory
  task_role_arn            = aws_iam_role.service.arn
  execution_role_arn       = aws_iam_role.start.arn
  tags                     = local.tags

  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = var.architecture
  }

  volume {
    name = "scratch"
  }

  container_definitions = jsonencode([{
    name                   = "delegation"
    image                  = var.image
    essential              = true
    user                   = "65532:65532"
    readonlyRootFilesystem = true
    entryPoint             = ["/bin/sh", "-euc"]
    command                = [local.script]
    environment            = [for name, value in merge(var.environment, local.settings) : { name = name, value = value }]
    secrets = concat(
      [for variable, key in { TLS_CERTIFICATE = "certificate", TLS_KEY = "key", TLS_AUTHORITY = "authority" } :
      { name = variable, valueFrom = "${var.tls_secret_arn}:${key}::" }],
      local.needs_a_token ? [{ name = "TOKEN_KEY", valueFrom = var.token_key_secret_arn }] : [],
    )
    portMappings = [{ containerPort = local.port, protocol = "tcp" }]
    mountPoints  = [{ sourceVolume = "scratch", containerPath = local.scratch, readOnly = false }]
    stopTimeout  = 30
    healthCheck = {
      command  = ["CMD", "/opt/arco/bin/python", "-c", "import socket; socket.create_connection(('127.0.0.1', ${local.port}), 4)"]
      interval = 15
      timeout  = 5
      retries  = 3
    }
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        awslogs-group         = "/ecs/${local.label}"
        awslogs-region        = local.region
        awslogs-stream-prefix = "delegation"
      }
    }
  }])
}

resource "aws_cloudwatch_log_group" "delegation" {
  name              = "/ecs/${local.label}"
  retention_in_days = var.log_retention_days
  tags              = local.tags
}

resource "aws_ecs_service" "delegation" {
  name            = local.label
  cluster         = aws_ecs_cluster.delegation.id
  task_definition = aws_ecs_task_definition.delegation.arn
  desired_count   = var.replicas
  launch_type     = "FARGATE"
  propagate_tags  = "SERVICE"
  tags            = local.tags

  network_configuration {
    subnets          = var.subnet_ids
    security_groups  = [aws_security_group.delegation.id]
    assign_public_ip = false
  }

  service_registries {
    registry_arn = aws_service_discovery_service.delegation.arn
  }

  depends_on = [aws_iam_role_policy.service, aws_iam_role_policy.start, aws_cloudwatch_log_group.delegation]
}

resource "aws_service_discovery_private_dns_namespace" "delegation" {
  name = local.domain
  vpc  = var.vpc_id
  tags = local.tags
}

resource "aws_service_discovery_service" "delegation" {
  name = "delegation"
  tags = local.tags

  dns_config {
    namespace_id = aws_service_discovery_private_dns_namespace.delegation.id
    dns_records {
      type = "A"
      ttl  = 10
    }
  }
}
