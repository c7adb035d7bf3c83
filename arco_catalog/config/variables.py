"""The table of the catalog's own environment variables. `arco serve` has an option for each of `SERVER`, and `arco
delegation-service` for each of `DELEGATION_SERVICE`. The functions read those of `FUNCTIONS`; servers and functions
read those of `AUTHENTICATION`, `POLICY` and `VENDING`, their stores those of `STORE_SETTINGS`, what sends events,
except functions, those of `DELIVERY`, and what works on tasks those of `DELEGATION`. The vendors' variables `AWS_*`,
`AZURE_*` and `GOOGLE_*`, which stores read, and `OTEL_*`, which tracing reads, are not in it."""

from arco_catalog.config.durations import parse_duration
from arco_catalog.config.parsing import (
    AUTO_WORKERS,
    OPA_CACHE_S,
    OPA_TIMEOUT_S,
    TOKEN_LIFETIME_S,
    VENDED_LIFETIME_S,
    Choice,
    parse_base_path,
    parse_body_size,
    parse_bool,
    parse_count,
    parse_key_lifetime,
    parse_port,
    parse_rate,
    parse_separator,
    parse_size,
    parse_warehouse,
    parse_workers,
    split_csv,
)
from arco_catalog.config.variable import Variable

STORES = (
    "file:/absolute/path, s3://bucket/prefix, gs://bucket/prefix, "
    "abfss://container@account.dfs.core.windows.net/prefix or memory:"
)
DIALECTS = ("iceberg", "polaris")
METRICS_MODES = ("count", "store")
PLANNING_MODES = ("client", "server")
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")
PURGE_MODES = ("async", "sync", "off")
PURGE_EXECUTORS = ("local", "delegated")


def _switch(name: str, help_: str, default: str = "false") -> Variable[bool]:
    """Returns the description of an environment variable that is true or false, by default false, or else the text
    `default`; reads no environment."""
    return Variable(name, help_, parse_bool, default)


def _listed(name: str, help_: str, metavar: str) -> Variable[tuple[str, ...]]:
    """Returns the description of an environment variable that has a list of texts, separated by commas, and is empty by
    default."""
    return Variable(name, help_, split_csv, "", metavar)


def _text(name: str, help_: str, metavar: str) -> Variable[str]:
    """Returns the description of an environment variable that has any text, without a default."""
    return Variable(name, help_, str, metavar=metavar)


STORE = _text("ARCO_STORE", f"URL of the object store: {STORES}", "URL")
HOST = Variable("ARCO_HOST", "address to listen on", str, "127.0.0.1", "H")
PORT = Variable("ARCO_PORT", "port to listen on; 0 takes a free one", parse_port, "8181", "P")
WAREHOUSE = Variable("ARCO_WAREHOUSE", "name of the catalog", parse_warehouse, "arco", "NAME")
ALLOWED_LOCATIONS = _listed(
    "ARCO_ALLOWED_LOCATIONS",
    "prefix of locations of tables besides the catalog's own folder; may be repeated or given several values; the "
    "variable is comma-separated",
    "PREFIX",
)
ALLOWED_HOSTS = _listed(
    "ARCO_ALLOWED_HOSTS",
    "host name that requests may name, besides IP addresses and localhost; other names are refused on loopback, and "
    "everywhere once one is allowed; * allows any",
    "NAME",
)
ALLOWED_ORIGINS = _listed(
    "ARCO_ALLOWED_ORIGINS",
    "origin of web pages that may use the catalog from a browser, such as https://console.example.com; without one, "
    "no page of another origin may",
    "ORIGIN",
)
ALLOW_LOCATION_OVERLAP = _switch(
    "ARCO_ALLOW_LOCATION_OVERLAP", "allow locations of tables, and of catalogs of a realm, to be inside each other"
)
ALLOW_TABLE_LOCATION_OVERLAP = _switch(
    "ARCO_ALLOW_TABLE_LOCATION_OVERLAP", "allow a table's location to be inside another's"
)
ALLOW_CATALOG_LOCATION_OVERLAP = _switch(
    "ARCO_ALLOW_CATALOG_LOCATION_OVERLAP", "allow a location of a realm's catalog to be inside another's"
)
IDEMPOTENCY_DIALECT = Variable(
    "ARCO_IDEMPOTENCY_DIALECT",
    "rules for Idempotency-Key: iceberg (a UUIDv7) or polaris (any text); fixed when a catalog is made",
    Choice(DIALECTS),
    "iceberg",
    "DIALECT",
)
IDEMPOTENCY_ENABLED = Variable(
    "ARCO_IDEMPOTENCY_ENABLED",
    "accept Idempotency-Key; with false the header is ignored, and the configuration that clients read does not "
    "announce it; fixed when a catalog is made",
    parse_bool,
    "true",
    "BOOL",
)
IDEMPOTENCY_LIFETIME = Variable(
    "ARCO_IDEMPOTENCY_LIFETIME",
    "how long clients may retry with one Idempotency-Key; a duration such as PT30M, a day at most",
    parse_key_lifetime,
    "PT30M",
    "DURATION",
)
IDEMPOTENCY_CLEANUP_ENABLED = Variable(
    "ARCO_IDEMPOTENCY_CLEANUP_ENABLED",
    "let `arco gc` delete markers of old idempotency keys, and the decisions of transactions that these refer to",
    parse_bool,
    "true",
    "BOOL",
)
METRICS = Variable(
    "ARCO_METRICS",
    "handling of the metrics that engines report of scans and commits: count (in the log of requests), or store (also "
    "as an object each)",
    Choice(METRICS_MODES),
    "count",
    "MODE",
)
SCAN_PLANNING = Variable(
    "ARCO_SCAN_PLANNING",
    "who should plan scans of tables, in the configuration of clients: client or server; without it clients decide. "
    "The property scan-planning-mode of a catalog of a realm, or of a table, has precedence",
    Choice(PLANNING_MODES, any_case=True),
    metavar="MODE",
)
GZIP = _switch("ARCO_GZIP", "compress answers of 64 KB, not only those of 1 MB, for clients that accept it")
CONSOLE = _switch("ARCO_CONSOLE", "serve the console, the pages for browsers below /ui, from a package that has it")
NO_CONSOLE = _switch("ARCO_NO_CONSOLE", "do not serve the console, the pages for browsers below /ui")
CONSOLE_CLIENTS = _listed(
    "ARCO_CONSOLE_CLIENTS",
    "what the console is to an issuer at which people sign in: the issuer, the id of a public client, and its scopes, "
    "openid unless there are others, separated by blanks; may be repeated; the variable is comma-separated",
    "CLIENT",
)
CONSOLE_ORIGINS = _listed(
    "ARCO_CONSOLE_ORIGINS",
    "origin of an issuer's endpoints, where that is not the origin of the issuer: pages of the console may send "
    "requests there; may be repeated; the variable is comma-separated",
    "ORIGIN",
)
LOG_FORMAT = Variable(
    "ARCO_LOG_FORMAT",
    "text, or json (one object per line, and a line for each request at any level)",
    Choice(LOG_FORMATS, "unknown log format {text}: expected {choices}", any_case=True),
    "text",
    "FORMAT",
)
AUDIT_LOG = _text(
    "ARCO_AUDIT_LOG",
    "file to which a line of JSON is appended for each credential and each signature given, and for each denial; - is "
    "standard output, and on a function, which takes no other value, its log",
    "FILE",
)
METRICS_NAMESPACE = _text(
    "ARCO_METRICS_NAMESPACE", "add CloudWatch embedded metrics of this namespace to the JSON lines", "NAME"
)
METRICS_PORT = Variable(
    "ARCO_METRICS_PORT",
    "port of metrics for Prometheus, apart from that of the server: GET /metrics; none unless this is set",
    parse_port,
    metavar="P",
)
METRICS_HOST = Variable("ARCO_METRICS_HOST", "address of the port of metrics", str, "127.0.0.1", "H")
LOG_LEVEL = Variable(
    "ARCO_LOG_LEVEL",
    "debug (with a line for each request), info, warning or error",
    Choice(LOG_LEVELS, "unknown log level {text}: expected {choices}", any_case=True),
    "warning",
    "LEVEL",
)
WORKERS = Variable(
    "ARCO_WORKERS",
    "number of processes; auto: one for each core that memory suffices for, and 1 with memory:",
    parse_workers,
    AUTO_WORKERS,
    "N",
)
MAX_CONNECTIONS = Variable(
    "ARCO_MAX_CONNECTIONS",
    "maximum connections per process; lowered to fit the limit of open files",
    parse_count,
    "512",
    "N",
)
REQUESTS_PER_SECOND = Variable(
    "ARCO_REQUESTS_PER_SECOND",
    "requests that each principal may send to a process in a second; others get 429; no limit unless this is set",
    parse_rate,
    metavar="N",
)
REQUEST_MEMORY = Variable(
    "ARCO_REQUEST_MEMORY",
    "memory for all concurrent requests; others wait for up to 5 s, then get 503",
    parse_size,
    "256MB",
    "SIZE",
)
CACHE_MEMORY = Variable("ARCO_CACHE_MEMORY", "memory for all caches of a process", parse_size, "100MB", "SIZE")
MAX_BODY = Variable("ARCO_MAX_BODY", "maximum size of a request body", parse_body_size, "8MB", "SIZE")
MAX_METADATA = Variable(
    "ARCO_MAX_METADATA", "maximum size of a metadata file, uncompressed", parse_size, "64MB", "SIZE"
)
FILE_CONFIRMED = Variable(
    "ARCO_FILE_CONFIRMED",
    "time during which loads do not check again that a metadata file which the catalog wrote exists; PT0S: each load "
    "checks it, as it always does for local files",
    parse_duration,
    "PT1M",
    "DURATION",
)
PURGE_MODE = Variable(
    "ARCO_PURGE_MODE",
    "mode of a drop with purge: async (it answers, and the files are deleted later), sync (it answers when they are "
    "deleted, with a window of PT0S), or off (a plain drop)",
    Choice(PURGE_MODES),
    "async",
    "MODE",
)
PURGE_UNDROP_WINDOW = Variable(
    "ARCO_PURGE_UNDROP_WINDOW",
    "how long a drop with purge can be undone, before files are deleted",
    parse_duration,
    "PT24H",
    "DURATION",
)
PURGE_TRUST_LOCATIONS = _switch(
    "ARCO_PURGE_TRUST_LOCATIONS",
    "purge without reading the manifests of all other tables: none has files inside another's location",
)
PURGE_WHOLE_LOCATION = _switch(
    "ARCO_PURGE_WHOLE_LOCATION",
    "purge all files at the location that the catalog made for a table, if no other table or catalog has named it",
)
RECEIPT_RETENTION = Variable(
    "ARCO_RECEIPT_RETENTION",
    "how long `arco gc` keeps receipts of commits, and commits of the registry; a week at least",
    parse_duration,
    "P90D",
    "DURATION",
)
UNDROP_RETENTION = Variable(
    "ARCO_UNDROP_RETENTION",
    "how long a drop without purge can be undone, before `arco gc` forgets it; a week at least",
    parse_duration,
    "P30D",
    "DURATION",
)
TASKS = _switch("ARCO_TASKS", "work on tasks, such as purges, in the server", "true")
EVENTS = _switch("ARCO_EVENTS", "fill the event feed of each catalog where the process works on tasks")
KAFKA_PROPERTIES = _text(
    "ARCO_KAFKA_PROPERTIES",
    "file with the brokers of Kafka to which events are sent, and how to log in to them, as properties of librdkafka: "
    "bootstrap.servers, security.protocol, sasl.username",
    "FILE",
)
TASK_PROPERTIES = _listed(
    "ARCO_TASK_PROPERTIES",
    "how tasks are leased and retried, as NAME=VALUE, such as delegation.retry.TABLE_PURGE.max-attempts=10; "
    "comma-separated",
    "NAME=VALUE",
)
WORK_QUEUE = _text(
    "ARCO_WORK_QUEUE",
    "URL of the SQS queue whose function works on tasks: it gets a message for each that is due within 15 minutes",
    "URL",
)
PURGE_EXECUTOR = Variable(
    "ARCO_PURGE_EXECUTOR",
    "executor of purges: local (any process that works on tasks), or delegated (a delegation service, for tables whose "
    "locations no other table uses)",
    Choice(PURGE_EXECUTORS),
    "local",
    "EXECUTOR",
)
DELEGATION_URL = _text(
    "ARCO_DELEGATION_URL",
    "the delegation service, such as https://delegation.example.com:8182; http is for this machine only",
    "URL",
)
DELEGATION_TOKEN_FILE = _text(
    "ARCO_DELEGATION_TOKEN_FILE",
    "file with a token of the scope execute_tasks, read for each request to the delegation service",
    "FILE",
)
DELEGATION_CLIENT_CERT = _text(
    "ARCO_DELEGATION_CLIENT_CERT", "file with the client certificate for the delegation service", "FILE"
)
DELEGATION_CLIENT_KEY = _text(
    "ARCO_DELEGATION_CLIENT_KEY", "file with that certificate's private key, in the clear", "FILE"
)
DELEGATION_CA = _text(
    "ARCO_DELEGATION_CA",
    "file with the authorities that may sign the delegation service's certificate, in place of the system's",
    "FILE",
)
DELEGATION_PORT = Variable("ARCO_DELEGATION_PORT", "port to listen on; 0 takes a free one", parse_port, "8182", "P")
DELEGATION_ALLOWED_LOCATIONS = _listed(
    "ARCO_DELEGATION_ALLOWED_LOCATIONS",
    "delegation.allowed-locations: prefixes where the delegation service may delete files for its callers; none unless "
    "this is set; comma-separated",
    "PREFIX",
)
DELEGATION_ALLOWED_ENDPOINTS = _listed(
    "ARCO_DELEGATION_ALLOWED_ENDPOINTS",
    "endpoints of stores that callers may name besides the service's own; comma-separated",
    "URL",
)
QUIET = _switch("ARCO_QUIET", "do not print client configuration at start")
ENDPOINT = _text(
    "ARCO_ENDPOINT",
    "endpoint in front of the function: http-api, rest-api or function-url; on Azure easy-auth (App Service "
    "authenticates callers) or unauthenticated",
    "KIND",
)
SOURCE_PRINCIPALS = _listed(
    "ARCO_SOURCE_PRINCIPALS",
    "principals that may name the principal they act for, with * for any text; comma-separated",
    "PATTERN",
)
SKIP_PROBE = _switch(
    "ARCO_SKIP_PROBE",
    "`true` if the store has passed the test for conditional writes: a cold start then does not repeat it",
)
GCS_CLIENT = Variable(
    "ARCO_GCS_CLIENT",
    "client for requests to GCS: wire (connections of the catalog's own) or sdk (google-cloud-storage, which also "
    "goes through the proxy in HTTPS_PROXY)",
    Choice(("wire", "sdk")),
    "wire",
)
AZURE_CLIENT = Variable(
    "ARCO_AZURE_CLIENT",
    "client for requests to Azure: wire (connections of the catalog's own) or sdk (azure-storage-blob, which also "
    "goes through the proxy in HTTPS_PROXY)",
    Choice(("wire", "sdk")),
    "wire",
)
S3_CLIENT = Variable(
    "ARCO_S3_CLIENT",
    "client for requests to S3: wire (this project's own connections), sdk (Amazon's SDK, the extra s3-sdk), or "
    "auto: the wire, and the SDK for directory buckets, ARNs and proxies",
    str,
    "auto",
    "NAME",
)
S3_ENCRYPTION = _text(
    "ARCO_S3_ENCRYPTION",
    "encryption that each write of an object requests: AES256, aws:kms or aws:kms:dsse; else the bucket's",
    "NAME",
)
S3_KMS_KEY_ID = _text("ARCO_S3_KMS_KEY_ID", "key of KMS that objects are encrypted with", "ID")
S3_BUCKET_OWNER = _text(
    "ARCO_S3_BUCKET_OWNER", "account that must own the bucket; requests to any other's fail", "ACCOUNT"
)
S3_REQUESTER_PAYS = _switch("ARCO_S3_REQUESTER_PAYS", "pay for requests to another's bucket")

AUTH = _listed(
    "ARCO_AUTH",
    "how callers are authenticated: none (not at all, for this machine alone), internal (clients with an id and a "
    "secret), oidc (tokens of other issuers), gateway (by API Gateway or a function URL); comma-separated",
    "KIND",
)
AUTHORIZATION = Variable(
    "ARCO_AUTHORIZATION",
    "with off, every authenticated caller may do everything without grants; needed where the store has no realm and "
    "ARCO_AUTH names anything but none",
    Choice(("on", "off")),
    "on",
)
REALM = _listed(
    "ARCO_REALM",
    "folders of the store with the realms to serve, where it has several: token requests that name no realm are "
    "for the first; comma-separated",
    "NAME",
)
BASE_PATH = Variable(
    "ARCO_BASE_PATH",
    "path under which clients reach the catalog, such as /iceberg; without it they do too",
    parse_base_path,
    "",
    "PATH",
)
NAMESPACE_SEPARATOR = Variable(
    "ARCO_NAMESPACE_SEPARATOR",
    "character between the levels of a namespace in the paths of clients; %1F is accepted as well, and no new "
    "level may have the character in its name",
    parse_separator,
    "%1F",
    "CHARACTER",
)
TLS_CERT = _text("ARCO_TLS_CERT", "file with the certificate for TLS, and those between it and its root", "FILE")
TLS_KEY = _text("ARCO_TLS_KEY", "file with the certificate's private key, in the clear", "FILE")
TLS_CLIENT_CA = _text(
    "ARCO_TLS_CLIENT_CA",
    "file with the authorities that may sign clients' certificates; without it, clients need no certificate",
    "FILE",
)
TOKEN_KEY = _text(
    "ARCO_TOKEN_KEY",
    "key that signs tokens, of at least 32 bytes; or several, comma-separated, of which the first signs and all verify",
    "KEY",
)
TOKEN_KEY_FILE = _text("ARCO_TOKEN_KEY_FILE", "file with these keys, one per line", "FILE")
TOKEN_KEY_SECRET = _text(
    "ARCO_TOKEN_KEY_SECRET",
    "secret with these keys: the ARN of a secret or parameter of AWS, projects/P/secrets/S of Google Cloud, or "
    "https://V.vault.azure.net/secrets/S",
    "REFERENCE",
)
TOKEN_AUDIENCE = Variable(
    "ARCO_TOKEN_AUDIENCE",
    "audience of own tokens: deployments that share a key take only their own",
    str,
    "arco-catalog",
    "NAME",
)
TOKEN_LIFETIME = Variable(
    "ARCO_TOKEN_LIFETIME", "seconds until own tokens expire, from 10 to 86400", TOKEN_LIFETIME_S, "3600", "SECONDS"
)
OIDC_ISSUERS = _listed(
    "ARCO_OIDC_ISSUERS", "issuers whose tokens are accepted, as URL or REALM=URL; comma-separated", "URL"
)
OIDC_AUDIENCES = _listed(
    "ARCO_OIDC_AUDIENCES", "audiences of which a token of other issuers must have one; comma-separated", "NAME"
)
OIDC_ALGORITHMS = Variable(
    "ARCO_OIDC_ALGORITHMS",
    "algorithms by which other issuers may sign; comma-separated",
    split_csv,
    "RS256,ES256,EdDSA",
    "NAME",
)
OIDC_PRINCIPAL_CLAIM = Variable(
    "ARCO_OIDC_PRINCIPAL_CLAIM", "claim of other issuers' tokens that holds the principal's name", str, "sub", "NAME"
)
OIDC_ROLES_CLAIM = _text(
    "ARCO_OIDC_ROLES_CLAIM",
    "claim that names the principal roles to activate, such as roles or realm_access.roles; unset, all are activated",
    "NAME",
)
OIDC_LOOPBACK_HTTP = _switch("ARCO_OIDC_LOOPBACK_HTTP", "accept issuers on this machine that have no TLS, for trials")
GATEWAY_APIS = _listed(
    "ARCO_GATEWAY_APIS", "APIs and function URLs that authenticate callers, as ID or REALM=ID; comma-separated", "ID"
)
GATEWAY_PRINCIPAL_CLAIM = Variable(
    "ARCO_GATEWAY_PRINCIPAL_CLAIM", "claim with the principal's name, of tokens that they verified", str, "sub", "NAME"
)
GATEWAY_ROLES_CLAIM = _text(
    "ARCO_GATEWAY_ROLES_CLAIM",
    "claim of these that names the principal roles to activate; unset, all are activated",
    "NAME",
)
OPA_URL = _text(
    "ARCO_OPA_URL",
    "rule of Open Policy Agent that must allow each request, besides the grants, such as "
    "https://opa.example.com/v1/data/arco/allow",
    "URL",
)
OPA_BATCH_URL = _text(
    "ARCO_OPA_BATCH_URL",
    "rule that answers for up to 1,000 such questions at once, such as https://opa.example.com/v1/data/arco/batch; "
    "without it lists are not filtered, and the namespace system is closed",
    "URL",
)
OPA_TIMEOUT = Variable(
    "ARCO_OPA_TIMEOUT",
    "seconds that Open Policy Agent may take for an answer, from 1 to 10; then a request gets 503",
    OPA_TIMEOUT_S,
    "2",
    "SECONDS",
)
OPA_CACHE = Variable(
    "ARCO_OPA_CACHE",
    "seconds for which an answer that allows something is used again, from 0 to 5; a revocation may take that long",
    OPA_CACHE_S,
    "5",
    "SECONDS",
)
OPA_TOKEN_FILE = _text(
    "ARCO_OPA_TOKEN_FILE", "file with a token that is sent to Open Policy Agent, read at start", "FILE"
)
OPA_CA = _text(
    "ARCO_OPA_CA", "file with the authorities that may sign its certificate, in place of the system's", "FILE"
)
VENDING_LIFETIME = Variable(
    "ARCO_VENDING_LIFETIME",
    "seconds until clients replace credentials for the files of a table, from 60 to 43200; keys of STS are valid for "
    "at least 900",
    VENDED_LIFETIME_S,
    "3600",
    "SECONDS",
)
VENDING_KEYS_FILE = _text(
    "ARCO_VENDING_KEYS_FILE",
    "file with keys of S3 stores without STS, which are given to engines as they are: each opens a whole prefix",
    "FILE",
)
VENDING_ENDPOINTS = _listed(
    "ARCO_VENDING_ENDPOINTS",
    "URLs of S3 and STS that a catalog's storage configuration may name, besides that of AWS_ENDPOINT_URL and "
    "Amazon's own; comma-separated",
    "URL",
)
VENDING_IDENTITIES = _listed(
    "ARCO_VENDING_IDENTITIES",
    "ARNs of roles, and service accounts of Google, that the server may act as for it, with * for any text; "
    "comma-separated; unset, any that trusts the server",
    "PATTERN",
)
VENDING_CONTAINER_SCOPE = _switch(
    "ARCO_VENDING_CONTAINER_SCOPE",
    "in Azure accounts without a hierarchical namespace, give signatures that open the whole container of a table",
)
VENDING_STRICT_SIGNATURES = _switch(
    "ARCO_VENDING_STRICT_SIGNATURES",
    "all S3 servers refuse headers and bodies that a signature does not cover, as Amazon's does: requests that write "
    "are then signed for them too",
)

_OVERLAPS = (ALLOW_LOCATION_OVERLAP, ALLOW_TABLE_LOCATION_OVERLAP, ALLOW_CATALOG_LOCATION_OVERLAP)
_IDEMPOTENCY = (IDEMPOTENCY_DIALECT, IDEMPOTENCY_ENABLED, IDEMPOTENCY_LIFETIME)
_MEMORY = (REQUEST_MEMORY, CACHE_MEMORY, MAX_BODY, MAX_METADATA)
_PURGES = (PURGE_MODE, PURGE_UNDROP_WINDOW, PURGE_TRUST_LOCATIONS, PURGE_WHOLE_LOCATION)
_IDENTITY = (REALM, AUTH, TOKEN_KEY_FILE)
_TLS = (TLS_CERT, TLS_KEY, TLS_CLIENT_CA)

AUTHENTICATION: tuple[Variable[object], ...] = (
    AUTHORIZATION,
    TOKEN_KEY,
    TOKEN_KEY_SECRET,
    TOKEN_AUDIENCE,
    TOKEN_LIFETIME,
    OIDC_ISSUERS,
    OIDC_AUDIENCES,
    OIDC_ALGORITHMS,
    OIDC_PRINCIPAL_CLAIM,
    OIDC_ROLES_CLAIM,
    OIDC_LOOPBACK_HTTP,
    GATEWAY_APIS,
    GATEWAY_PRINCIPAL_CLAIM,
    GATEWAY_ROLES_CLAIM,
)
"""Authentication of callers: read by the server and by the functions."""

POLICY: tuple[Variable[object], ...] = (
    OPA_URL,
    OPA_BATCH_URL,
    OPA_TIMEOUT,
    OPA_CACHE,
    OPA_TOKEN_FILE,
    OPA_CA,
)
"""The policy that must allow requests: read by the server and by the functions."""

VENDING: tuple[Variable[object], ...] = (
    VENDING_ENDPOINTS,
    VENDING_IDENTITIES,
    VENDING_CONTAINER_SCOPE,
    VENDING_STRICT_SIGNATURES,
)
"""How engines get access to the files of tables: read by the server and by the functions."""

STORE_SETTINGS: tuple[Variable[object], ...] = (
    S3_CLIENT,
    S3_ENCRYPTION,
    S3_KMS_KEY_ID,
    S3_BUCKET_OWNER,
    S3_REQUESTER_PAYS,
    GCS_CLIENT,
    AZURE_CLIENT,
)
"""Variables that a store reads itself, besides its vendor's own."""

DELIVERY: tuple[Variable[object], ...] = (KAFKA_PROPERTIES,)
"""Where events are sent: read by every process that sends them, except functions."""

SERVER: tuple[Variable[object], ...] = (
    STORE,
    HOST,
    PORT,
    WAREHOUSE,
    ALLOWED_LOCATIONS,
    ALLOWED_HOSTS,
    ALLOWED_ORIGINS,
    *_OVERLAPS,
    *_IDEMPOTENCY,
    METRICS,
    SCAN_PLANNING,
    GZIP,
    NO_CONSOLE,
    CONSOLE_CLIENTS,
    CONSOLE_ORIGINS,
    LOG_FORMAT,
    AUDIT_LOG,
    METRICS_NAMESPACE,
    METRICS_PORT,
    METRICS_HOST,
    LOG_LEVEL,
    WORKERS,
    MAX_CONNECTIONS,
    REQUESTS_PER_SECOND,
    *_MEMORY,
    FILE_CONFIRMED,
    *_PURGES,
    TASKS,
    EVENTS,
    TASK_PROPERTIES,
    QUIET,
    *_IDENTITY,
    VENDING_LIFETIME,
    VENDING_KEYS_FILE,
    BASE_PATH,
    NAMESPACE_SEPARATOR,
    *_TLS,
)
DELEGATION_REALMS = _listed(
    "ARCO_DELEGATION_REALMS", "realm of another deployment whose tasks are executed, too; comma-separated", "NAME"
)
DELEGATION: tuple[Variable[object], ...] = (
    PURGE_EXECUTOR,
    DELEGATION_URL,
    DELEGATION_TOKEN_FILE,
    DELEGATION_CLIENT_CERT,
    DELEGATION_CLIENT_KEY,
    DELEGATION_CA,
    DELEGATION_PORT,
    DELEGATION_ALLOWED_LOCATIONS,
    DELEGATION_ALLOWED_ENDPOINTS,
    DELEGATION_REALMS,
)
"""The executor of purges: read by every process that works on tasks, and by `arco delegation-service`."""
DELEGATION_SERVICE: tuple[Variable[object], ...] = (
    STORE,
    HOST,
    DELEGATION_PORT,
    WAREHOUSE,
    ALLOWED_LOCATIONS,
    DELEGATION_ALLOWED_LOCATIONS,
    DELEGATION_ALLOWED_ENDPOINTS,
    DELEGATION_REALMS,
    ALLOWED_HOSTS,
    IDEMPOTENCY_DIALECT,
    LOG_FORMAT,
    METRICS_NAMESPACE,
    METRICS_PORT,
    METRICS_HOST,
    LOG_LEVEL,
    MAX_CONNECTIONS,
    *_MEMORY,
    TASK_PROPERTIES,
    *_IDENTITY,
    BASE_PATH,
    *_TLS,
)
"""Variables of which `arco delegation-service` has an option each."""
FUNCTIONS: tuple[Variable[object], ...] = (
    STORE,
    WAREHOUSE,
    ALLOWED_LOCATIONS,
    *_OVERLAPS,
    *_IDEMPOTENCY,
    METRICS,
    SCAN_PLANNING,
    AUDIT_LOG,
    METRICS_NAMESPACE,
    LOG_LEVEL,
    *_MEMORY,
    FILE_CONFIRMED,
    *_PURGES,
    EVENTS,
    TASK_PROPERTIES,
    RECEIPT_RETENTION,
    UNDROP_RETENTION,
    IDEMPOTENCY_CLEANUP_ENABLED,
    WORK_QUEUE,
    ENDPOINT,
    CONSOLE,
    CONSOLE_CLIENTS,
    CONSOLE_ORIGINS,
    SOURCE_PRINCIPALS,
    SKIP_PROBE,
    *_IDENTITY,
    BASE_PATH,
    NAMESPACE_SEPARATOR,
)
