# The same settings as `arco serve` prints (arco_catalog/cli/client_config.py), and what signs in besides.

locals {
  iceberg = "1.11.0"
  catalog = "arco"
  packages = join(",", [
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:${local.iceberg}",
    "org.apache.iceberg:iceberg-aws-bundle:${local.iceberg}",
  ])

  signature = {
    "rest.signing-name"   = local.front_door.signing_name
    "rest.signing-region" = local.region
  }
  logs_in = var.authorization != "none" ? var.authorization : contains(var.auth, "internal") ? "internal" : contains(var.auth, "oidc") ? "oidc" : "none"
  client = {
    "credential"        = "CLIENT_ID:CLIENT_SECRET"
    "oauth2-server-uri" = local.logs_in == "internal" ? "${local.front_door.url}/v1/oauth/tokens" : "TOKEN_ENDPOINT_OF_THE_ISSUER"
    "scope"             = local.logs_in == "internal" ? "PRINCIPAL_ROLE:ALL" : join(" ", try(var.jwt.scopes, []))
  }
  by_token = contains(["jwt", "internal", "oidc"], local.logs_in)

  spark_signs_in = merge(
    local.logs_in == "iam" ? merge(local.signature, { "rest.auth.type" = "sigv4", "rest.auth.sigv4.delegate-auth-type" = "none" }) : {},
    local.by_token ? merge(local.client, { "rest.auth.type" = "oauth2" }) : {},
    local.vending ? { "header.X-Iceberg-Access-Delegation" = "vended-credentials" } : {},
  )

  pyiceberg_signs_in = merge( # it asks for vended credentials by itself
    local.logs_in == "iam" ? merge(local.signature, { "rest.sigv4-enabled" = "true" }) : {},
    local.by_token ? local.client : {},
  )

  trino_signs_in = merge( # in the region of s3.region, as a role that it assumes, or with keys
    local.logs_in == "iam" ? {
      "iceberg.rest-catalog.security"     = "SIGV4"
      "iceberg.rest-catalog.signing-name" = local.front_door.signing_name
      "s3.iam-role"                       = "ARN_OF_A_ROLE_WITH_THE_ENGINE_POLICY"
    } : {},
    local.by_token ? {
      "iceberg.rest-catalog.security"          = "OAUTH2"
      "iceberg.rest-catalog.oauth2.credential" = local.client["credential"]
      "iceberg.rest-catalog.oauth2.server-uri" = local.client["oauth2-server-uri"]
      "iceberg.rest-catalog.oauth2.scope"      = local.client["scope"]
    } : {},
    local.vending ? { "iceberg.rest-catalog.vended-credentials-enabled" = "true" } : {},
  )

  spark = merge(
    {
      "spark.sql.extensions"     = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
      "spark.sql.defaultCatalog" = local.catalog

      "spark.sql.catalog.${local.catalog}"               = "org.apache.iceberg.spark.SparkCatalog"
      "spark.sql.catalog.${local.catalog}.type"          = "rest"
      "spark.sql.catalog.${local.catalog}.uri"           = local.front_door.url
      "spark.sql.catalog.${local.catalog}.warehouse"     = var.warehouse
      "spark.sql.catalog.${local.catalog}.io-impl"       = "org.apache.iceberg.aws.s3.S3FileIO"
      "spark.sql.catalog.${local.catalog}.client.region" = local.region
    },
    { for key, value in local.spark_signs_in : "spark.sql.catalog.${local.catalog}.${key}" => value if value != "" },
  )

  pyiceberg = merge(
    { type = "rest", uri = local.front_door.url, warehouse = var.warehouse, "s3.region" = local.region },
    { for key, value in local.pyiceberg_signs_in : key => value if value != "" },
  )

  trino = merge(
    {
      "connector.name"                                = "iceberg"
      "iceberg.catalog.type"                          = "rest"
      "iceberg.rest-catalog.uri"                      = local.front_door.url
      "iceberg.rest-catalog.warehouse"                = var.warehouse
      "iceberg.rest-catalog.nested-namespace-enabled" = "true"
      "iceberg.rest-catalog.view-endpoints-enabled"   = "true"
      "fs.native-s3.enabled"                          = "true"
      "s3.region"                                     = local.region
    },
    { for key, value in local.trino_signs_in : key => value if value != "" },
  )

  to_paste = {
    spark = join("\n", [
      "# Spark 4.1, on a command line",
      join(" \\\n  ", concat(
        ["spark-sql --packages ${local.packages}"],
        [for key, value in local.spark : "--conf ${key}=${value}"],
      )),
    ])
    pyiceberg = join("\n", concat(
      ["# PyIceberg", "from pyiceberg.catalog import load_catalog", "", "catalog = load_catalog(", "    \"${local.catalog}\",", "    **{"],
      [for key, value in local.pyiceberg : "        \"${key}\": \"${value}\","],
      ["    },", ")"],
    ))
    trino = join("\n", concat(
      ["# Trino, as etc/catalog/${local.catalog}.properties"],
      var.authorization == "iam" ? ["# 476 and older: iceberg.rest-catalog.sigv4-enabled=true in place of iceberg.rest-catalog.security"] : [],
      [for key, value in local.trino : "${key}=${value}"],
    ))
  }
}
