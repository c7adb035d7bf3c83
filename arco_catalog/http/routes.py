"""The one table of routes. `/v1/config` lists it, and a test holds it against the specification.

Handlers are named, and imported with the first request for them: a cold start pays for what it is asked.
"""

from collections.abc import Sequence

from arco_catalog.http.request_context import Effect, Route

MUTATES, COMMITS = Effect.MUTATES, Effect.COMMITS

CATALOG = "/v1/{prefix}"
NAMESPACES = f"{CATALOG}/namespaces"
NAMESPACE = f"{NAMESPACES}/{{namespace}}"
TABLES = f"{NAMESPACE}/tables"
TABLE = f"{TABLES}/{{table}}"
VIEWS = f"{NAMESPACE}/views"
VIEW = f"{VIEWS}/{{view}}"

HEALTH: Sequence[Route] = (
    Route("GET", "/health", "config.health", advertised=False),
    Route("HEAD", "/health", "config.health", advertised=False),
)
"""Health checks of a server, not part of the catalog's API."""

ROUTES: Sequence[Route] = (
    Route("GET", "/v1/config", "config.get_config"),
    Route("GET", NAMESPACES, "namespaces.list_"),
    Route("POST", NAMESPACES, "namespaces.create", MUTATES),
    Route("GET", NAMESPACE, "namespaces.load"),
    Route("HEAD", NAMESPACE, "namespaces.exists"),
    Route("DELETE", NAMESPACE, "namespaces.drop", MUTATES),
    Route("POST", f"{NAMESPACE}/properties", "namespaces.update_properties", MUTATES),
    Route("GET", TABLES, "tables.list_"),
    Route("POST", TABLES, "table_changes.create", MUTATES),
    Route("POST", f"{NAMESPACE}/register", "table_changes.register", MUTATES),
    Route("GET", TABLE, "tables.load"),
    Route("HEAD", TABLE, "tables.exists"),
    Route("POST", TABLE, "table_changes.commit", COMMITS),
    Route("DELETE", TABLE, "table_changes.drop", MUTATES),
    Route("POST", f"{TABLE}/metrics", "tables.report_metrics"),
    Route("POST", f"{TABLE}/unregister", "table_changes.unregister", MUTATES, takes_json=False),
    Route("POST", f"{CATALOG}/tables/rename", "table_changes.rename", MUTATES),
    Route("POST", f"{CATALOG}/transactions/commit", "transactions.commit", COMMITS),
    Route("GET", VIEWS, "views.list_"),
    Route("POST", VIEWS, "views.create", MUTATES),
    Route("POST", f"{NAMESPACE}/register-view", "views.register", MUTATES),
    Route("GET", VIEW, "views.load"),
    Route("HEAD", VIEW, "views.exists"),
    Route("POST", VIEW, "views.replace", COMMITS),
    Route("DELETE", VIEW, "views.drop", MUTATES),
    Route("POST", f"{CATALOG}/views/rename", "views.rename", MUTATES),
    Route("GET", f"{NAMESPACE}/functions", "unsupported.list_functions"),
    Route("GET", f"{NAMESPACE}/functions/{{function}}", "unsupported.load_function"),
    Route("GET", f"{TABLE}/credentials", "unsupported.load_credentials", advertised=False),
    Route("POST", f"{TABLE}/sign", "unsupported.sign", advertised=False),
    Route("POST", "/v1/oauth/tokens", "unsupported.get_token", advertised=False, takes_json=False),
)


def import_handlers() -> None:
    """Imports all of them now: for a process whose start may be slow, and which should not start with a broken
    one."""
    for route in (*HEALTH, *ROUTES):
        _ = route.handler
