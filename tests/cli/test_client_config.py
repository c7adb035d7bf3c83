"""What a server prints for engines, store by store."""

from collections.abc import Mapping

import pytest

from arco_catalog.cli.client_config import Login, client_config

URI = "http://127.0.0.1:8181"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_SESSION_TOKEN": "hunter3"}
AZURE_KEYS = {"AZURE_STORAGE_KEY": "hunter4", "AZURE_STORAGE_SAS_TOKEN": "hunter5", "AZURE_CLIENT_SECRET": "hunter6"}
GOOGLE_TOKEN = {"GOOGLE_OAUTH_ACCESS_TOKEN": "hunter7"}


def blocks(store: str, environment: Mapping[str, str] | None = None) -> tuple[str, str, str]:
    """The blocks for Spark, PyIceberg and Trino."""
    text = client_config(URI, "lake", store, environment or {})
    spark, rest = text.split("\n\n# PyIceberg\n")
    python, trino = rest.split("\n\n# Trino")
    return spark, python, trino


def test_the_settings_for_local_files_are_pinned() -> None:
    assert (
        client_config(URI, "lake", "file:/data", KEYS)
        == """\
# Spark 4.1, on a command line
spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0 \\
  --conf spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions \\
  --conf spark.sql.catalog.arco=org.apache.iceberg.spark.SparkCatalog \\
  --conf spark.sql.catalog.arco.type=rest \\
  --conf spark.sql.catalog.arco.uri=http://127.0.0.1:8181 \\
  --conf spark.sql.catalog.arco.warehouse=lake \\
  --conf spark.sql.defaultCatalog=arco

# PyIceberg
from pyiceberg.catalog import load_catalog

catalog = load_catalog(
    "arco",
    **{
        "type": "rest",
        "uri": "http://127.0.0.1:8181",
        "warehouse": "lake",
    },
)

# Trino, as etc/catalog/arco.properties
connector.name=iceberg
iceberg.catalog.type=rest
iceberg.rest-catalog.uri=http://127.0.0.1:8181
iceberg.rest-catalog.warehouse=lake
iceberg.rest-catalog.nested-namespace-enabled=true
iceberg.rest-catalog.view-endpoints-enabled=true
fs.native-local.enabled=true
local.location=/"""
    )


def test_clients_with_a_secret_are_reported_where_to_put_it() -> None:
    text = client_config(URI, "lake", "file:/data", {}, Login.of(["oidc", "internal"]))

    for line in (
        "--conf spark.sql.catalog.arco.credential=CLIENT_ID:CLIENT_SECRET \\\n",
        "--conf spark.sql.catalog.arco.scope=PRINCIPAL_ROLE:ALL",
        "--conf spark.sql.catalog.arco.oauth2-server-uri=http://127.0.0.1:8181/v1/oauth/tokens",
        '"credential": "CLIENT_ID:CLIENT_SECRET"',
        "iceberg.rest-catalog.security=OAUTH2\n",
        "iceberg.rest-catalog.oauth2.credential=CLIENT_ID:CLIENT_SECRET\n",
        "iceberg.rest-catalog.oauth2.server-uri=http://127.0.0.1:8181/v1/oauth/tokens\n",
    ):
        assert line in text


def test_engines_get_access_to_the_files_of_a_cloud_from_a_catalog_with_logins() -> None:
    clouds = {
        "s3://b/p": {"AWS_REGION": "eu-west-1"},
        "gs://b/p": {},
        "abfss://lake@account.dfs.core.windows.net/p": AZURE_KEYS,
    }
    for store, environment in clouds.items():
        for login, report in ((Login.of(["internal"]), True), (None, False)):
            text = client_config(URI, "lake", store, {**KEYS, **environment}, login)
            assert ("spark.sql.catalog.arco.header.X-Iceberg-Access-Delegation=vended-credentials" in text) == report
            assert ("iceberg.rest-catalog.vended-credentials-enabled=true\n" in text) == report
            assert ("'header.X-Iceberg-Access-Delegation' = 'vended-credentials'" in text) == report
            assert "hunter" not in text
    assert "vended" not in client_config(URI, "lake", "file:/data", {}, Login.of(["internal"]))


def test_flink_and_duckdb_are_reported_a_catalog_with_logins() -> None:
    blocks = client_config(URI, "lake", "s3://b/p", {"AWS_REGION": "eu-west-1"}, Login.of(["internal"])).split(
        "\n\n-- "
    )

    assert blocks[1:] == [
        """\
Flink, with org.apache.iceberg:iceberg-flink-runtime-2.1:1.11.0 and org.apache.iceberg:iceberg-aws-bundle:1.11.0
CREATE CATALOG arco WITH (
  'type' = 'iceberg',
  'catalog-type' = 'rest',
  'uri' = 'http://127.0.0.1:8181',
  'warehouse' = 'lake',
  'credential' = 'CLIENT_ID:CLIENT_SECRET',
  'scope' = 'PRINCIPAL_ROLE:ALL',
  'oauth2-server-uri' = 'http://127.0.0.1:8181/v1/oauth/tokens',
  'header.X-Iceberg-Access-Delegation' = 'vended-credentials',
  'io-impl' = 'org.apache.iceberg.aws.s3.S3FileIO',
  'client.region' = 'eu-west-1'
);""",
        """\
DuckDB
INSTALL iceberg;
LOAD iceberg;
CREATE SECRET arco (TYPE iceberg, CLIENT_ID 'CLIENT_ID', CLIENT_SECRET 'CLIENT_SECRET', """
        """OAUTH2_SERVER_URI 'http://127.0.0.1:8181/v1/oauth/tokens', OAUTH2_SCOPE 'PRINCIPAL_ROLE:ALL');
ATTACH 'lake' AS arco (TYPE iceberg, SECRET arco, ENDPOINT 'http://127.0.0.1:8181');""",
    ]


def test_owners_of_another_issuers_token_are_reported_where_to_put_it() -> None:
    text = client_config(URI, "lake", "file:/data", {}, Login.of(["oidc"]))

    assert "spark.sql.catalog.arco.token=TOKEN" in text
    assert "iceberg.rest-catalog.oauth2.token=TOKEN\n" in text
    assert "CREATE SECRET arco (TYPE iceberg, TOKEN 'TOKEN');" in text
    assert "credential" not in text
    assert "oauth2-server-uri" not in text


def test_signers_need_no_settings() -> None:
    assert Login.of(["gateway"]) is Login.of([]) is None


def test_amazons_own_s3_needs_a_region_and_no_endpoint() -> None:
    spark, python, trino = blocks("s3://bucket/x", {**KEYS, "AWS_DEFAULT_REGION": "eu-west-1"})

    assert "iceberg-aws-bundle" in spark
    assert "spark.sql.catalog.arco.io-impl=org.apache.iceberg.aws.s3.S3FileIO" in spark
    assert "spark.sql.catalog.arco.client.region=eu-west-1" in spark
    assert '"s3.region": "eu-west-1"' in python
    assert "fs.native-s3.enabled=true\ns3.region=eu-west-1" in trino
    assert "fs.native-local" not in trino
    for block in (spark, python, trino):
        assert "s3.endpoint" not in block
        assert "path-style" not in block


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
def test_another_s3_needs_its_endpoint_and_paths(variable: str) -> None:
    spark, python, trino = blocks("s3://bucket/x", {**KEYS, variable: "http://127.0.0.1:9000", "AWS_REGION": "r"})

    assert "spark.sql.catalog.arco.s3.endpoint=http://127.0.0.1:9000" in spark
    assert "spark.sql.catalog.arco.s3.path-style-access=true" in spark
    assert '"s3.endpoint": "http://127.0.0.1:9000"' in python
    assert "s3.endpoint=http://127.0.0.1:9000\ns3.path-style-access=true" in trino


LAKE = "abfss://lake@account.dfs.core.windows.net/x"


@pytest.mark.parametrize("store", [LAKE, LAKE.replace("abfss", "abfs"), "az://lake/x"])
def test_azures_own_storage_needs_an_account_and_no_endpoint(store: str) -> None:
    spark, python, trino = blocks(store, {"AZURE_STORAGE_ACCOUNT": "account"})

    assert "iceberg-azure-bundle" in spark
    assert "spark.sql.catalog.arco.io-impl=org.apache.iceberg.azure.adlsv2.ADLSFileIO" in spark
    assert '"adls.account-name": "account"' in python
    assert "fs.native-azure.enabled=true\nazure.auth-type=DEFAULT" in trino
    for block in (spark, python, trino):
        assert "endpoint=" not in block
        assert "connection-string" not in block
        assert "account-host" not in block
        assert "local" not in block


def test_azures_keys_and_signatures_are_named_by_variables() -> None:
    key, _, trino = blocks(LAKE, {"AZURE_STORAGE_KEY": "hunter4"})
    signature, *_ = blocks(LAKE, {"AZURE_STORAGE_SAS_TOKEN": "hunter5"})

    assert "spark.sql.catalog.arco.adls.auth.shared-key.account.name=account" in key
    assert "spark.sql.catalog.arco.adls.auth.shared-key.account.key=$AZURE_STORAGE_KEY" in key
    assert "azure.auth-type=ACCESS_KEY\nazure.access-key=${ENV:AZURE_STORAGE_KEY}" in trino
    assert "spark.sql.catalog.arco.adls.sas-token.account.dfs.core.windows.net=$AZURE_STORAGE_SAS_TOKEN" in signature


def test_another_azure_needs_its_endpoint() -> None:
    spark, plain, _ = blocks(LAKE, {"AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:10000/account"})
    _, python, _ = blocks(LAKE, {"AZURE_STORAGE_ENDPOINT": "https://gateway:8443"})
    *_, trino = blocks(LAKE.replace("windows.net", "chinacloudapi.cn"))

    assert "adls.connection-string.account.dfs.core.windows.net=http://127.0.0.1:10000/account" in spark
    assert "account-host" not in plain
    assert '"adls.account-host": "gateway:8443"' in python
    assert "azure.endpoint=core.chinacloudapi.cn" in trino


def test_googles_own_gcs_needs_no_more_than_a_project() -> None:
    spark, python, trino = blocks("gs://bucket/x", {"GOOGLE_CLOUD_PROJECT": "ours", **GOOGLE_TOKEN})

    assert "iceberg-gcp-bundle" in spark
    assert "spark.sql.catalog.arco.io-impl=org.apache.iceberg.gcp.gcs.GCSFileIO" in spark
    assert "spark.sql.catalog.arco.gcs.project-id=ours" in spark
    assert '"gcs.project-id": "ours"' in python
    assert "fs.native-gcs.enabled=true\ngcs.project-id=ours" in trino
    for block in (spark, python, trino):
        assert "service.host" not in block
        assert "gcs.endpoint" not in block
        assert "auth" not in block


def test_another_gcs_needs_its_endpoint_and_an_emulator_no_credentials() -> None:
    environment = {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:4443", "GOOGLE_CLOUD_QUOTA_PROJECT": "payer"}
    spark, python, trino = blocks("gs://bucket/x", environment)

    assert "spark.sql.catalog.arco.gcs.service.host=http://127.0.0.1:4443" in spark
    assert "spark.sql.catalog.arco.gcs.user-project=payer" in spark
    assert "spark.sql.catalog.arco.gcs.no-auth=true" in spark
    assert '"gcs.service.host": "http://127.0.0.1:4443"' in python
    assert "gcs.endpoint=http://127.0.0.1:4443" in trino


@pytest.mark.parametrize("store", ["file:/data", "s3://bucket/x", "gs://bucket/x", LAKE, "az://lake/x", "memory:"])
def test_no_secret_is_printed(store: str) -> None:
    environment = {**KEYS, **AZURE_KEYS, **GOOGLE_TOKEN, "AZURE_STORAGE_ACCOUNT": "account"}
    text = client_config(URI, "lake", store, {**environment, "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9000"})

    assert not [value for value in (*KEYS.values(), *AZURE_KEYS.values(), *GOOGLE_TOKEN.values()) if value in text]


def test_a_store_in_memory_counts_as_out_of_reach() -> None:
    assert "no engine can read or write files there" in client_config(URI, "lake", "memory:", {})
