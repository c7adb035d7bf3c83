# The same settings as `arco serve` prints (arco_catalog/cli/client_config.py), and what says who calls besides.
#
# Cloud Run takes ID tokens, which hold for an hour; the `google` ways to sign in of Iceberg, PyIceberg and Trino send
# access tokens. It looks into X-Serverless-Authorization first, which leaves Authorization to the catalog.

locals {
  iceberg = "1.11.0"
  catalog = "arco"
  packages = join(",", [
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:${local.iceberg}",
    "org.apache.iceberg:iceberg-gcp-bundle:${local.iceberg}",
  ])
  by_token = var.authorization == "iam"
  client = local.has_realm ? {
    "credential"        = "CLIENT_ID:CLIENT_SECRET"
    "oauth2-server-uri" = contains(var.auth, "internal") ? "${local.url}/v1/oauth/tokens" : "TOKEN_ENDPOINT_OF_THE_ISSUER"
    "scope"             = contains(var.auth, "internal") ? "PRINCIPAL_ROLE:ALL" : "SCOPE_OF_THE_ISSUER"
  } : {}

  spark = merge(
    {
      "spark.sql.extensions"     = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
      "spark.sql.defaultCatalog" = local.catalog

      "spark.sql.catalog.${local.catalog}"                = "org.apache.iceberg.spark.SparkCatalog"
      "spark.sql.catalog.${local.catalog}.type"           = "rest"
      "spark.sql.catalog.${local.catalog}.uri"            = local.url
      "spark.sql.catalog.${local.catalog}.warehouse"      = var.warehouse
      "spark.sql.catalog.${local.catalog}.io-impl"        = "org.apache.iceberg.gcp.gcs.GCSFileIO"
      "spark.sql.catalog.${local.catalog}.gcs.project-id" = var.project
    },
    { for key, value in local.client : "spark.sql.catalog.${local.catalog}.${key}" => value },
    local.has_realm ? { "spark.sql.catalog.${local.catalog}.rest.auth.type" = "oauth2" } : {},
    local.vending ? { "spark.sql.catalog.${local.catalog}.header.X-Iceberg-Access-Delegation" = "vended-credentials" } : {},
    local.by_token ? { "spark.sql.catalog.${local.catalog}.header.X-Serverless-Authorization" = "\"Bearer $ID_TOKEN\"" } : {},
  )

  pyiceberg = merge({ type = "rest", uri = local.url, warehouse = var.warehouse, "gcs.project-id" = var.project }, local.client)

  trino = merge(
    {
      "connector.name"                                = "iceberg"
      "iceberg.catalog.type"                          = "rest"
      "iceberg.rest-catalog.uri"                      = local.url
      "iceberg.rest-catalog.warehouse"                = var.warehouse
      "iceberg.rest-catalog.nested-namespace-enabled" = "true"
      "iceberg.rest-catalog.view-endpoints-enabled"   = "true"
      "fs.native-gcs.enabled"                         = "true"
      "gcs.project-id"                                = var.project
    },
    local.has_realm ? {
      "iceberg.rest-catalog.security"          = "OAUTH2"
      "iceberg.rest-catalog.oauth2.credential" = local.client["credential"]
      "iceberg.rest-catalog.oauth2.server-uri" = local.client["oauth2-server-uri"]
      "iceberg.rest-catalog.oauth2.scope"      = local.client["scope"]
    } : {},
    local.vending ? { "iceberg.rest-catalog.vended-credentials-enabled" = "true" } : {},
    local.by_token ? {
      "iceberg.rest-catalog.security"                     = "OAUTH2"
      "iceberg.rest-catalog.oauth2.token"                 = "$${ENV:ID_TOKEN}"
      "iceberg.rest-catalog.oauth2.token-refresh-enabled" = "false"
    } : {},
  )

  id_token = [
    "# ID_TOKEN holds for an hour. A person's, to try it: export ID_TOKEN=$(gcloud auth print-identity-token)",
    "# On a machine of Google's, its account's:          export ID_TOKEN=$(curl -s -H Metadata-Flavor:Google 'http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/identity?audience=${local.url}')",
  ]

  pyiceberg_signs_in = <<-E
    from google.auth.transport.requests import Request
    from google.oauth2.id_token import fetch_id_token_credentials
    from pyiceberg.catalog.rest.auth import AuthManager


    class IdToken(AuthManager):
        """ID tokens of this machine's service account, or of that in GOOGLE_APPLICATION_CREDENTIALS."""

        def __init__(self, audience):
            self._credentials = fetch_id_token_credentials(audience)

        def auth_header(self):
            if not self._credentials.valid:
                self._credentials.refresh(Request())
            return f"Bearer {self._credentials.token}"

  E

  to_paste = {
    spark = join("\n", concat(
      ["# Spark 4.1, on a command line"],
      local.by_token ? local.id_token : [],
      [join(" \\\n  ", concat(
        ["spark-sql --packages ${local.packages}"],
        [for key, value in local.spark : "--conf ${key}=${value}"],
      ))],
    ))
    pyiceberg = join("\n", concat(
      ["# PyIceberg, with google-auth and requests"],
      local.by_token ? [local.pyiceberg_signs_in] : [],
      ["from pyiceberg.catalog import load_catalog", "", "catalog = load_catalog(", "    \"${local.catalog}\",", "    **{"],
      [for key, value in local.pyiceberg : "        \"${key}\": \"${value}\","],
      local.by_token ? ["        \"auth\": {\"type\": \"custom\", \"impl\": f\"{__name__}.IdToken\", \"custom\": {\"audience\": \"${local.url}\"}},"] : [],
      ["    },", ")"],
    ))
    trino = join("\n", concat(
      ["# Trino, as etc/catalog/${local.catalog}.properties"],
      local.by_token ? local.id_token : [],
      [for key, value in local.trino : "${key}=${value}"],
    ))
  }
}
