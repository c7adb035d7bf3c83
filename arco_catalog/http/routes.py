"""The one table of routes. `/v1/config` lists it, and a test holds it against the specification.

Handlers are named, and imported with the first request for them: a cold start pays for what it is asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from arco_catalog.http.exchange import Effect, Exchange, Handler, Route
from arco_catalog.http.responses import Response


@dataclass(frozen=True, slots=True)
class Later:
    """The handler of a name, in a module of this package."""

    module: str
    name: str

    def load(self) -> Handler:
        """Imports it."""
        return cast(Handler, getattr(import_module(f"{__package__}.{self.module}"), self.name))

    async def __call__(self, exchange: Exchange) -> Response:
        return await self.load()(exchange)


MUTATES, COMMITS = Effect.MUTATES, Effect.COMMITS

CATALOG = "/v1/{prefix}"
NAMESPACES = f"{CATALOG}/namespaces"
NAMESPACE = f"{NAMESPACES}/{{namespace}}"
TABLES = f"{NAMESPACE}/tables"
TABLE = f"{TABLES}/{{table}}"
VIEWS = f"{NAMESPACE}/views"
VIEW = f"{VIEWS}/{{view}}"

HEALTH: Sequence[Route] = (
    Route("GET", "/health", Later("config", "health"), advertised=False),
    Route("HEAD", "/health", Later("config", "health"), advertised=False),
)
"""Of a server that somebody watches, and not of the catalog."""

ROUTES: Sequence[Route] = (
    Route("GET", "/v1/config", Later("config", "get_config")),
    Route("GET", NAMESPACES, Later("namespaces", "list_")),
    Route("POST", NAMESPACES, Later("namespaces", "create"), MUTATES),
    Route("GET", NAMESPACE, Later("namespaces", "load")),
    Route("HEAD", NAMESPACE, Later("namespaces", "exists")),
    Route("DELETE", NAMESPACE, Later("namespaces", "drop"), MUTATES),
    Route("POST", f"{NAMESPACE}/properties", Later("namespaces", "update_properties"), MUTATES),
    Route("GET", TABLES, Later("tables", "list_")),
    Route("POST", TABLES, Later("table_changes", "create"), MUTATES),
    Route("POST", f"{NAMESPACE}/register", Later("table_changes", "register"), MUTATES),
    Route("GET", TABLE, Later("tables", "load")),
    Route("HEAD", TABLE, Later("tables", "exists")),
    Route("POST", TABLE, Later("table_changes", "commit"), COMMITS),
    Route("DELETE", TABLE, Later("table_changes", "drop"), MUTATES),
    Route("POST", f"{TABLE}/metrics", Later("tables", "report_metrics")),
    Route("POST", f"{TABLE}/unregister", Later("table_changes", "unregister"), MUTATES, takes_json=False),
    Route("POST", f"{CATALOG}/tables/rename", Later("table_changes", "rename"), MUTATES),
    Route("POST", f"{CATALOG}/transactions/commit", Later("transactions", "commit"), COMMITS),
    Route("GET", VIEWS, Later("views", "list_")),
    Route("POST", VIEWS, Later("views", "create"), MUTATES),
    Route("POST", f"{NAMESPACE}/register-view", Later("views", "register"), MUTATES),
    Route("GET", VIEW, Later("views", "load")),
    Route("HEAD", VIEW, Later("views", "exists")),
    Route("POST", VIEW, Later("views", "replace"), COMMITS),
    Route("DELETE", VIEW, Later("views", "drop"), MUTATES),
    Route("POST", f"{CATALOG}/views/rename", Later("views", "rename"), MUTATES),
    Route("GET", f"{NAMESPACE}/functions", Later("elsewhere", "list_functions")),
    Route("GET", f"{NAMESPACE}/functions/{{function}}", Later("elsewhere", "load_function")),
    Route("GET", f"{TABLE}/credentials", Later("elsewhere", "load_credentials"), advertised=False),
    Route("POST", f"{TABLE}/sign", Later("elsewhere", "sign"), advertised=False),
    Route("POST", "/v1/oauth/tokens", Later("elsewhere", "get_token"), advertised=False, takes_json=False),
)


def import_handlers() -> None:
    """Imports all of them now: for a process whose start nobody waits for, and which should not start with a broken
    one."""
    for route in (*HEALTH, *ROUTES):
        if isinstance(route.handler, Later):
            route.handler.load()
