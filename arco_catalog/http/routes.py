"""The table of the catalog API's routes. `/v1/config` lists the advertised ones, and a test compares the table with the
specification.

The table has the names of handlers. The first request of a route imports the handler, so a cold start imports only the
modules that the request needs.
"""

from collections.abc import Sequence

from arco_catalog.http import requires as on
from arco_catalog.http.discovery_routes import DISCOVERY
from arco_catalog.http.governance_routes import governance_of
from arco_catalog.http.inspection_routes import inspection_of
from arco_catalog.http.polaris.routes import POLARIS
from arco_catalog.http.requires import needs
from arco_catalog.http.route import Effect, Route
from arco_catalog.planning.privileges import Privilege

MUTATES, COMMITS = Effect.MUTATES, Effect.COMMITS

CATALOG = "/v1/{prefix}"
NAMESPACES = f"{CATALOG}/namespaces"
NAMESPACE = f"{NAMESPACES}/{{namespace}}"
TABLES = f"{NAMESPACE}/tables"
TABLE = f"{TABLES}/{{table}}"
VIEWS = f"{NAMESPACE}/views"
VIEW = f"{VIEWS}/{{view}}"

GOVERNANCE = governance_of(NAMESPACE, advertised=True)
"""The catalog's own endpoints, which no specification has (docs/design/polaris.md#governance)."""

INSPECTION = inspection_of(NAMESPACE)
"""The catalog's own endpoints for the timelines of tables and views, which no specification has."""

PROPOSED: Sequence[Route] = (
    Route("POST", f"{CATALOG}/resolve", "resolve.resolve", on.nothing),
    Route("POST", f"{CATALOG}/events", "events.query", on.nothing),
)
"""Endpoints of open proposals for Iceberg's specification. What the caller may not load or see is decided for each item
or event."""

HEALTH: Sequence[Route] = (
    Route("GET", "/health", "config.health", advertised=False, public=True),
    Route("HEAD", "/health", "config.health", advertised=False, public=True),
)
"""Health checks of a server, not part of the catalog's API."""

ROUTES: Sequence[Route] = (
    Route("GET", "/v1/config", "config.get_config", on.nothing),
    Route("GET", NAMESPACES, "namespaces.list_", needs(Privilege.NAMESPACE_LIST, on.parent)),
    Route("POST", NAMESPACES, "namespaces.create", on.new_namespace, MUTATES),
    Route("GET", NAMESPACE, "namespaces.load", needs(Privilege.NAMESPACE_READ_PROPERTIES, on.namespace)),
    Route("HEAD", NAMESPACE, "namespaces.exists", needs(Privilege.NAMESPACE_LIST, on.namespace)),
    Route("DELETE", NAMESPACE, "namespaces.drop", needs(Privilege.NAMESPACE_DROP, on.namespace), MUTATES),
    Route(
        "POST",
        f"{NAMESPACE}/properties",
        "namespaces.update_properties",
        needs(Privilege.NAMESPACE_WRITE_PROPERTIES, on.namespace),
        MUTATES,
    ),
    Route("GET", TABLES, "tables.list_", needs(Privilege.TABLE_LIST, on.namespace)),
    Route(
        "POST", TABLES, "table_changes.create", needs(Privilege.TABLE_CREATE, on.namespace), MUTATES, in_external=False
    ),
    Route("POST", f"{NAMESPACE}/register", "table_changes.register", on.registration, MUTATES, in_external=False),
    Route("GET", TABLE, "tables.load", on.load),
    Route("HEAD", TABLE, "tables.exists", needs(Privilege.TABLE_LIST, on.table)),
    Route("POST", TABLE, "table_commits.commit", on.commit, COMMITS, in_external=False),
    Route("DELETE", TABLE, "table_changes.drop", on.drop, MUTATES, in_external=False),
    Route("POST", f"{TABLE}/metrics", "tables.report_metrics", on.report),
    Route("POST", f"{TABLE}/plan", "scans.plan", needs(Privilege.TABLE_READ_DATA, on.table)),
    Route("GET", f"{TABLE}/plan/{{plan-id}}", "scans.fetch_plan", needs(Privilege.TABLE_READ_DATA, on.table)),
    Route("DELETE", f"{TABLE}/plan/{{plan-id}}", "scans.cancel_plan", needs(Privilege.TABLE_READ_DATA, on.table)),
    Route("POST", f"{TABLE}/tasks", "scans.fetch_tasks", needs(Privilege.TABLE_READ_DATA, on.table)),
    Route(
        "POST",
        f"{TABLE}/unregister",
        "table_changes.unregister",
        on.both(needs(Privilege.TABLE_DROP, on.table), needs(Privilege.TABLE_READ_PROPERTIES, on.table)),
        MUTATES,
        takes_json=False,
        in_external=False,
    ),
    Route(
        "POST",
        f"{TABLE}/undrop",
        "table_changes.undrop",
        needs(Privilege.TABLE_CREATE, on.namespace),
        MUTATES,
        advertised=False,
        takes_json=False,
        in_external=False,
    ),
    Route(
        "POST",
        f"{CATALOG}/tables/rename",
        "table_changes.rename",
        on.both(needs(Privilege.TABLE_DROP, on.source_table), needs(Privilege.TABLE_CREATE, on.destination)),
        MUTATES,
        in_external=False,
    ),
    Route("POST", f"{CATALOG}/transactions/commit", "transactions.commit", on.transaction, COMMITS, in_external=False),
    Route("GET", VIEWS, "views.list_", needs(Privilege.VIEW_LIST, on.namespace)),
    Route("POST", VIEWS, "views.create", needs(Privilege.VIEW_CREATE, on.namespace), MUTATES, in_external=False),
    Route(
        "POST",
        f"{NAMESPACE}/register-view",
        "views.register",
        needs(Privilege.VIEW_CREATE, on.namespace),
        MUTATES,
        in_external=False,
    ),
    Route("GET", VIEW, "views.load", needs(Privilege.VIEW_READ_PROPERTIES, on.view)),
    Route("HEAD", VIEW, "views.exists", needs(Privilege.VIEW_LIST, on.view)),
    Route("POST", VIEW, "views.replace", needs(Privilege.VIEW_WRITE_PROPERTIES, on.view), COMMITS, in_external=False),
    Route("DELETE", VIEW, "views.drop", needs(Privilege.VIEW_DROP, on.view), MUTATES, in_external=False),
    Route(
        "POST",
        f"{CATALOG}/views/rename",
        "views.rename",
        on.both(needs(Privilege.VIEW_DROP, on.source_view), needs(Privilege.VIEW_CREATE, on.destination)),
        MUTATES,
        in_external=False,
    ),
    Route("GET", f"{NAMESPACE}/functions", "unsupported.list_functions", needs(Privilege.NAMESPACE_LIST, on.namespace)),
    Route(
        "GET",
        f"{NAMESPACE}/functions/{{function}}",
        "unsupported.load_function",
        needs(Privilege.NAMESPACE_LIST, on.namespace),
    ),
    Route(
        "GET",
        f"{TABLE}/credentials",
        "unsupported.load_credentials",
        needs(Privilege.TABLE_READ_DATA, on.table),
        advertised=False,
    ),
    Route("POST", f"{TABLE}/sign", "unsupported.sign", on.signature, advertised=False),
    Route("POST", "/v1/oauth/tokens", "unsupported.get_token", advertised=False, takes_json=False, public=True),
    *GOVERNANCE,
    *INSPECTION,
    *PROPOSED,
    *DISCOVERY,
    *POLARIS,
    Route("POST", "/api/v1/{prefix}/lineage", "lineage.receive", on.nothing, advertised=False),
    Route("GET", "/openapi.json", "openapi.get", advertised=False, public=True),
)

DELEGATION: Sequence[Route] = (
    Route("GET", f"{TABLE}/credentials", "delegation.load_credentials", needs(Privilege.TABLE_READ_DATA, on.table)),
    Route("POST", f"{TABLE}/sign", "delegation.sign", on.signature),
)
"""The routes that a server with realms has in place of those that refuse access to files."""


def import_handlers() -> None:
    """Imports the handlers of `HEALTH` and `ROUTES`, for a server whose start may take time and should fail if a
    handler is broken. Raises `ImportError` or `AttributeError` for a handler that does not exist."""
    for route in (*HEALTH, *ROUTES):
        _ = route.handler
