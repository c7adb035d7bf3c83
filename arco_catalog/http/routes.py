"""The one table of routes. `/v1/config` lists it, and a test holds it against the specification."""

from collections.abc import Sequence

from arco_catalog.http import config, elsewhere, namespaces, tables, transactions, views
from arco_catalog.http.exchange import Effect, Route

MUTATES, COMMITS = Effect.MUTATES, Effect.COMMITS

CATALOG = "/v1/{prefix}"
NAMESPACES = f"{CATALOG}/namespaces"
NAMESPACE = f"{NAMESPACES}/{{namespace}}"
TABLES = f"{NAMESPACE}/tables"
TABLE = f"{TABLES}/{{table}}"
VIEWS = f"{NAMESPACE}/views"
VIEW = f"{VIEWS}/{{view}}"

ROUTES: Sequence[Route] = (
    Route("GET", "/health", config.health, advertised=False),
    Route("GET", "/v1/config", config.get_config),
    Route("GET", NAMESPACES, namespaces.list_),
    Route("POST", NAMESPACES, namespaces.create, MUTATES),
    Route("GET", NAMESPACE, namespaces.load),
    Route("HEAD", NAMESPACE, namespaces.exists),
    Route("DELETE", NAMESPACE, namespaces.drop, MUTATES),
    Route("POST", f"{NAMESPACE}/properties", namespaces.update_properties, MUTATES),
    Route("GET", TABLES, tables.list_),
    Route("POST", TABLES, tables.create, MUTATES),
    Route("POST", f"{NAMESPACE}/register", tables.register, MUTATES),
    Route("GET", TABLE, tables.load),
    Route("HEAD", TABLE, tables.exists),
    Route("POST", TABLE, tables.commit, COMMITS),
    Route("DELETE", TABLE, tables.drop, MUTATES),
    Route("POST", f"{TABLE}/metrics", tables.report_metrics),
    Route("POST", f"{TABLE}/unregister", tables.unregister, MUTATES),
    Route("POST", f"{CATALOG}/tables/rename", tables.rename, MUTATES),
    Route("POST", f"{CATALOG}/transactions/commit", transactions.commit, COMMITS),
    Route("GET", VIEWS, views.list_),
    Route("POST", VIEWS, views.create, MUTATES),
    Route("POST", f"{NAMESPACE}/register-view", views.register, MUTATES),
    Route("GET", VIEW, views.load),
    Route("HEAD", VIEW, views.exists),
    Route("POST", VIEW, views.replace, COMMITS),
    Route("DELETE", VIEW, views.drop, MUTATES),
    Route("POST", f"{CATALOG}/views/rename", views.rename, MUTATES),
    Route("GET", f"{NAMESPACE}/functions", elsewhere.list_functions),
    Route("GET", f"{NAMESPACE}/functions/{{function}}", elsewhere.load_function),
    Route("GET", f"{TABLE}/credentials", elsewhere.load_credentials, advertised=False),
    Route("POST", f"{TABLE}/sign", elsewhere.sign, advertised=False),
    Route("POST", "/v1/oauth/tokens", elsewhere.get_token, advertised=False, takes_json=False),
)
