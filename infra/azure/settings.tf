# The same settings as `arco serve` prints (arco_catalog/cli/client_config.py), and what signs in besides. Entra ID knows
# no exchange of tokens (RFC 8693), which engines would ask it for to renew theirs.

locals {
  iceberg = "1.11.0"
  catalog = "arco"
  packages = join(",", [
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:${local.iceberg}",
    "org.apache.iceberg:iceberg-azure-bundle:${local.iceberg}",
  ])

  tokens = "https://login.microsoftonline.com/${local.tenant}/oauth2/v2.0/token"
  scope  = try("api://${var.entra.client_id}/.default", "")
  own    = contains(var.auth, "internal")
  logs_in = var.authorization == "entra" ? { uri = local.tokens, scope = local.scope } : (
    local.own ? { uri = "${local.url}/v1/oauth/tokens", scope = "PRINCIPAL_ROLE:ALL" } : (
      local.has_realm ? { uri = "TOKEN_ENDPOINT_OF_THE_ISSUER", scope = "SCOPE_OF_THE_ISSUER" } : null
    )
  )
  client = local.logs_in == null ? {} : {
    "credential"        = "CLIENT_ID:CLIENT_SECRET"
    "oauth2-server-uri" = local.logs_in.uri
    "scope"             = local.logs_in.scope
  }

  spark_signs_in = merge(
    local.logs_in == null ? {} : merge(local.client, { "rest.auth.type" = "oauth2" }),
    local.logs_in == null || local.own ? {} : { "token-exchange-enabled" = "false" },
    local.vending ? { "header.X-Iceberg-Access-Delegation" = "vended-credentials" } : {},
  )

  trino_signs_in = merge(
    local.logs_in == null ? {} : {
      "iceberg.rest-catalog.security"          = "OAUTH2"
      "iceberg.rest-catalog.oauth2.credential" = "CLIENT_ID:CLIENT_SECRET"
      "iceberg.rest-catalog.oauth2.server-uri" = local.logs_in.uri
      "iceberg.rest-catalog.oauth2.scope"      = local.logs_in.scope
    },
    local.logs_in == null || local.own ? {} : { "iceberg.rest-catalog.oauth2.token-exchange-enabled" = "false" },
    local.vending ? { "iceberg.rest-catalog.vended-credentials-enabled" = "true" } : {},
  )

  spark = merge(
    {
      "spark.sql.extensions"     = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
      "spark.sql.defaultCatalog" = local.catalog

      "spark.sql.catalog.${local.catalog}"           = "org.apache.iceberg.spark.SparkCatalog"
      "spark.sql.catalog.${local.catalog}.type"      = "rest"
      "spark.sql.catalog.${local.catalog}.uri"       = local.url
      "spark.sql.catalog.${local.catalog}.warehouse" = var.warehouse
      "spark.sql.catalog.${local.catalog}.io-impl"   = "org.apache.iceberg.azure.adlsv2.ADLSFileIO"
    },
    { for key, value in local.spark_signs_in : "spark.sql.catalog.${local.catalog}.${key}" => value },
  )

  pyiceberg = merge(
    { type = "rest", uri = local.url, warehouse = var.warehouse, "adls.account-name" = local.account },
    local.client,
  )

  trino = merge(
    {
      "connector.name"                                = "iceberg"
      "iceberg.catalog.type"                          = "rest"
      "iceberg.rest-catalog.uri"                      = local.url
      "iceberg.rest-catalog.warehouse"                = var.warehouse
      "iceberg.rest-catalog.nested-namespace-enabled" = "true"
      "iceberg.rest-catalog.view-endpoints-enabled"   = "true"
      "fs.native-azure.enabled"                       = "true"
      "azure.auth-type"                               = "DEFAULT"
    },
    local.trino_signs_in,
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
      [for key, value in local.trino : "${key}=${value}"],
    ))
  }
}
