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
  client = var.authorization == "entra" ? {
    "credential"        = "CLIENT_ID:CLIENT_SECRET"
    "oauth2-server-uri" = local.tokens
    "scope"             = local.scope
  } : {}

  spark_signs_in = var.authorization == "entra" ? merge(local.client, {
    "rest.auth.type"         = "oauth2"
    "token-exchange-enabled" = "false"
  }) : {}

  trino_signs_in = var.authorization == "entra" ? {
    "iceberg.rest-catalog.security"                      = "OAUTH2"
    "iceberg.rest-catalog.oauth2.credential"             = "CLIENT_ID:CLIENT_SECRET"
    "iceberg.rest-catalog.oauth2.server-uri"             = local.tokens
    "iceberg.rest-catalog.oauth2.scope"                  = local.scope
    "iceberg.rest-catalog.oauth2.token-exchange-enabled" = "false"
  } : {}

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
