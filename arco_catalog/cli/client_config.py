"""Writes the configuration with which engines (Spark, PyIceberg, Trino and others) use a running catalog, ready to
paste.

It has no secrets: engines read keys from the same variables as the server, and the credentials of a client are left as
a placeholder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from arco_catalog.authentication.setup import INTERNAL, OIDC
from storage_backends.azure.config import AzureConfig, SasToken, SharedKey
from storage_backends.gcs.config import Anonymous, GcsConfig
from storage_backends.open import canonical_url
from storage_backends.s3.config import S3Config
from storage_backends.url import StoreUrl

ICEBERG = "1.11.0"
SCALA_OF_SPARK = {"3.5": "2.12", "4.0": "2.13", "4.1": "2.13"}
"""For each supported version of Spark, the version of Scala with which PySpark on PyPI is built; the newest last."""
SPARK = [*SCALA_OF_SPARK][-1]
FLINK_RUNTIME = f"org.apache.iceberg:iceberg-flink-runtime-2.1:{ICEBERG}"
AWS_BUNDLE = f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}"
GCP_BUNDLE = f"org.apache.iceberg:iceberg-gcp-bundle:{ICEBERG}"
AZURE_BUNDLE = f"org.apache.iceberg:iceberg-azure-bundle:{ICEBERG}"
CATALOG = "arco"
"""The name of the catalog in engines. The warehouse's name may not be an identifier in SQL, so it is not used."""
FAR_AHEAD_MS = "4102444800000"
"""The year 2100 in milliseconds since 1970: PyIceberg requires a token with an expiry, even for an emulator."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """What engines need to reach the files of a store: a package for Spark, and settings under the names of each
    engine. A `$NAME` in a setting of Spark is a variable of the shell into which the user pastes it."""

    package: str | None
    spark: Mapping[str, str]
    pyiceberg: Mapping[str, str]
    trino: Mapping[str, str]

    def delegated(self) -> "StoreSettings":
        """Returns these settings for engines that get credentials for files from the catalog: with the ones by which
        Spark and Trino request them. PyIceberg and DuckDB request them without a setting. Local files have no
        credentials: there the settings are unchanged."""
        if self.package is None:
            return self
        header = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
        enabled = {"iceberg.rest-catalog.vended-credentials-enabled": "true"}
        return replace(self, spark={**header, **self.spark}, trino={**enabled, **self.trino})


@dataclass(frozen=True, slots=True)
class Login:
    """How a client authenticates: the name of the setting in Spark and PyIceberg, a placeholder for its value, and
    whether the server exchanges it for a token."""

    setting: str
    placeholder: str
    exchanged: bool

    @classmethod
    def of(cls, auth: Sequence[str]) -> "Login | None":
        """Returns the login for the methods of authentication of a server: that of `internal` if it is among them, else
        that of `oidc`; None for others, for which no setting of the client is written."""
        if INTERNAL in auth:
            return cls("credential", "CLIENT_ID:CLIENT_SECRET", exchanged=True)
        return cls("token", "TOKEN", exchanged=False) if OIDC in auth else None

    def settings(self, uri: str) -> Mapping[str, str]:
        """Returns the settings of the login under the names of Spark and PyIceberg, with the scope of all roles and the
        server's token endpoint below `uri` if the server exchanges credentials for a token."""
        where = {"scope": ALL_ROLES, "oauth2-server-uri": f"{uri}{TOKENS}"} if self.exchanged else {}
        return {self.setting: self.placeholder, **where}

    def of_trino(self, uri: str) -> Mapping[str, str]:
        """Returns the settings of the login under the names of Trino, with the scope of all roles and the server's
        token endpoint below `uri` if the server exchanges credentials for a token."""
        prefix = "iceberg.rest-catalog.oauth2."
        where = {f"{prefix}scope": ALL_ROLES, f"{prefix}server-uri": f"{uri}{TOKENS}"} if self.exchanged else {}
        return {"iceberg.rest-catalog.security": "OAUTH2", f"{prefix}{self.setting}": self.placeholder, **where}


TOKENS = "/v1/oauth/tokens"
ALL_ROLES = "PRINCIPAL_ROLE:ALL"
IN_MEMORY = """\
# The store lives in this process's memory: no engine can read or write files there, and it ends with the server.
# Take --store file:/absolute/path to work with tables."""


def client_config(
    uri: str, warehouse: str, store: str, environment: Mapping[str, str], login: Login | None = None
) -> str:
    """Returns the configuration of Spark, PyIceberg and Trino; with a login also of Flink and DuckDB, and with the
    settings by which engines get credentials for files from the catalog. Each block is ready to paste, except for the
    placeholder of the login. For a store in memory, which engines can't reach, returns a comment that explains this."""
    if store.partition(":")[0] == "memory":
        return IN_MEMORY
    settings = store_settings(store, environment)
    if login is None:
        return "\n\n".join(block(uri, warehouse, settings, login) for block in (_spark, _pyiceberg, _trino))
    settings = settings.delegated()
    blocks = [block(uri, warehouse, settings, login) for block in (_spark, _pyiceberg, _trino, _flink)]
    return "\n\n".join([*blocks, _duckdb(uri, warehouse, login)])


def file_io(store: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the properties of Iceberg, those of Spark and of PyIceberg together, by which engines reach the files of
    a store, without the FileIO class and without secrets."""
    settings = store_settings(store, environment)
    named = {**settings.spark, **settings.pyiceberg}
    return {name: value for name, value in named.items() if name != "io-impl" and not value.startswith("$")}


def spark_runtime(spark: str) -> str:
    """Returns the Maven coordinates of Iceberg for a version of Spark, such as `4.1`. Raises `KeyError` if it is not
    supported."""
    return f"org.apache.iceberg:iceberg-spark-runtime-{spark}_{SCALA_OF_SPARK[spark]}:{ICEBERG}"


def store_settings(store: str, environment: Mapping[str, str]) -> StoreSettings:
    """Returns the settings with which engines read and write the files of a store, configured by the environment. Every
    URL that is not of S3, GCS or Azure counts as local files."""
    match store.partition(":")[0]:
        case "s3":
            return _s3(environment)
        case "gs":
            return _gcs(environment)
        case "abfss" | "abfs" | "az":
            return _azure(store, environment)
        case _:
            return StoreSettings(None, {}, {}, {"fs.native-local.enabled": "true", "local.location": "/"})


def _s3(environment: Mapping[str, str]) -> StoreSettings:
    """Returns the settings for S3: the region, us-east-1 if no variable sets one, and the endpoint if a variable sets
    one, even one of Amazon's."""
    config = S3Config.from_environment(environment)
    region, endpoint = config.region or "us-east-1", config.endpoint_url
    spark = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "client.region": region}
    python = {"s3.region": region}
    trino = {"fs.native-s3.enabled": "true", "s3.region": region}
    if endpoint is not None:
        spark |= {"s3.endpoint": endpoint, "s3.path-style-access": "true"}
        python |= {"s3.endpoint": endpoint}
        trino |= {"s3.endpoint": endpoint, "s3.path-style-access": "true"}
    return StoreSettings(AWS_BUNDLE, spark, python, trino)


def _gcs(environment: Mapping[str, str]) -> StoreSettings:
    """Returns the settings for GCS: the project and the billed project if they are set, the endpoint if it is not
    Google's, and for an emulator the lack of credentials. Sources: Iceberg's `GCPProperties`; PyIceberg, "Google Cloud
    Storage"; Trino, "Google Cloud Storage file system support"."""
    config = GcsConfig.from_environment(environment)
    project = {} if config.project is None else {"gcs.project-id": config.project}
    spark = {"io-impl": "org.apache.iceberg.gcp.gcs.GCSFileIO", **project}
    python = dict(project)
    trino = {"fs.native-gcs.enabled": "true", **project}
    if config.user_project is not None:
        spark["gcs.user-project"] = config.user_project
    if config.endpoint != GcsConfig().endpoint:
        spark["gcs.service.host"] = python["gcs.service.host"] = trino["gcs.endpoint"] = config.endpoint
    if isinstance(config.credentials, Anonymous):
        spark["gcs.no-auth"] = "true"
        python |= {"gcs.oauth2.token": "none", "gcs.oauth2.token-expires-at": FAR_AHEAD_MS}
    return StoreSettings(GCP_BUNDLE, spark, python, trino)


def _azure(store: str, environment: Mapping[str, str]) -> StoreSettings:
    """Returns the settings for Azure: the account, the endpoint if it is not Azure's, and the variable with the key or
    signature, in engines that do not read it themselves. Sources: Iceberg's `AzureProperties`; PyIceberg, "Azure Data
    Lake"; Trino, "Azure Storage file system support"."""
    config = AzureConfig.from_environment(environment)
    endpoint = config.endpoint_url
    host = StoreUrl.parse(canonical_url(store, environment)).host.partition("@")[2]
    account, _, cloud = host.partition(".dfs.")
    spark = {"io-impl": "org.apache.iceberg.azure.adlsv2.ADLSFileIO"}
    python = {"adls.account-name": account}
    trino = {"fs.native-azure.enabled": "true", "azure.auth-type": "DEFAULT"}
    if isinstance(config.credentials, SharedKey):
        spark["adls.auth.shared-key.account.name"] = account
        spark["adls.auth.shared-key.account.key"] = "$AZURE_STORAGE_KEY"
        trino |= {"azure.auth-type": "ACCESS_KEY", "azure.access-key": "${ENV:AZURE_STORAGE_KEY}"}
    if isinstance(config.credentials, SasToken):
        spark[f"adls.sas-token.{host}"] = "$AZURE_STORAGE_SAS_TOKEN"
    if cloud != "core.windows.net":
        trino["azure.endpoint"] = cloud
    if endpoint is not None and endpoint != f"https://{account}.blob.{cloud}":
        spark[f"adls.connection-string.{host}"] = endpoint
        scheme, _, account_host = endpoint.partition("://")
        if scheme == "https":  # another is read from AZURE_STORAGE_CONNECTION_STRING alone
            python["adls.account-host"] = account_host
    return StoreSettings(AZURE_BUNDLE, spark, python, trino)


def _spark(uri: str, warehouse: str, store: StoreSettings, login: Login | None) -> str:
    """Formats a command line of `spark-sql`, with the packages that it needs and the settings for this catalog, with
    the ones of the login if there is one."""
    catalog = f"spark.sql.catalog.{CATALOG}"
    settings = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "rest",
        f"{catalog}.uri": uri,
        f"{catalog}.warehouse": warehouse,
        "spark.sql.defaultCatalog": CATALOG,
        **{f"{catalog}.{name}": value for name, value in (login.settings(uri) if login else {}).items()},
        **{f"{catalog}.{name}": value for name, value in store.spark.items()},
    }
    lines = [
        f"spark-sql --packages {','.join(filter(None, (spark_runtime(SPARK), store.package)))}",
        *(f"--conf {name}={value}" for name, value in settings.items()),
    ]
    return f"# Spark {SPARK}, on a command line\n" + " \\\n  ".join(lines)


def _pyiceberg(uri: str, warehouse: str, store: StoreSettings, login: Login | None) -> str:
    """Formats a call of PyIceberg's `load_catalog` for this catalog."""
    logged_in = login.settings(uri) if login else {}
    settings = {"type": "rest", "uri": uri, "warehouse": warehouse, **logged_in, **store.pyiceberg}
    lines = ["catalog = load_catalog(", f'    "{CATALOG}",', "    **{"]
    lines += [f'        "{name}": "{value}",' for name, value in settings.items()]
    return "\n".join(["# PyIceberg", "from pyiceberg.catalog import load_catalog", "", *lines, "    },", ")"])


def _trino(uri: str, warehouse: str, store: StoreSettings, login: Login | None) -> str:
    """Formats a properties file of Trino for this catalog."""
    settings = {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": uri,
        "iceberg.rest-catalog.warehouse": warehouse,
        "iceberg.rest-catalog.nested-namespace-enabled": "true",
        "iceberg.rest-catalog.view-endpoints-enabled": "true",
        **(login.of_trino(uri) if login else {}),
        **store.trino,
    }
    return "\n".join([f"# Trino, as etc/catalog/{CATALOG}.properties", *(f"{k}={v}" for k, v in settings.items())])


def _flink(uri: str, warehouse: str, store: StoreSettings, login: Login) -> str:
    """Formats the statement that makes this catalog known in Flink, without the settings of the store that hold a
    secret; the login has a placeholder in place of one."""
    settings = {
        "type": "iceberg",
        "catalog-type": "rest",
        "uri": uri,
        "warehouse": warehouse,
        **login.settings(uri),
        **{name: value for name, value in store.spark.items() if not value.startswith("$")},
    }
    listed = ",\n".join(f"  '{name}' = '{value}'" for name, value in settings.items())
    jars = " and ".join(filter(None, (FLINK_RUNTIME, store.package)))
    return f"-- Flink, with {jars}\nCREATE CATALOG {CATALOG} WITH (\n{listed}\n);"


def _duckdb(uri: str, warehouse: str, login: Login) -> str:
    """Formats the statements that make this catalog known in DuckDB."""
    names = ("CLIENT_ID", "CLIENT_SECRET") if login.exchanged else ("TOKEN",)
    secret = [f"{name} '{name}'" for name in names]
    if login.exchanged:
        secret += [f"OAUTH2_SERVER_URI '{uri}{TOKENS}'", f"OAUTH2_SCOPE '{ALL_ROLES}'"]
    lines = [
        "-- DuckDB",
        "INSTALL iceberg;",
        "LOAD iceberg;",
        f"CREATE SECRET {CATALOG} (TYPE iceberg, {', '.join(secret)});",
        f"ATTACH '{warehouse}' AS {CATALOG} (TYPE iceberg, SECRET {CATALOG}, ENDPOINT '{uri}');",
    ]
    return "\n".join(lines)
