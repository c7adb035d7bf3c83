"""The one table of routes. `/v1/config` lists it, and a test holds it against the specification.

Handlers are named, and imported with the first request for them: a cold start pays for what it is asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import cast

from arco_catalog.http.request_context import Effect, Handler, RequestContext, Route
from arco_catalog.http.responses import Response


@dataclass(frozen=True, slots=True)
class LazyHandler:
    """A handler in a module of this package, imported with the first request for it."""

    module: str
    name: str

    def load(self) -> Handler:
        """Imports it, once. Raises `ImportError` or `AttributeError` if it is not there."""
        return _import_handler(self.module, self.name)

    async def __call__(self, context: RequestContext) -> Response:
        return await self.load()(context)


@cache
def _import_handler(module: str, name: str) -> Handler:
    return cast(Handler, getattr(import_module(f"{__package__}.{module}"), name))


MUTATES, COMMITS = Effect.MUTATES, Effect.COMMITS

CATALOG = "/v1/{prefix}"
NAMESPACES = f"{CATALOG}/namespaces"
NAMESPACE = f"{NAMESPACES}/{{namespace}}"
TABLES = f"{NAMESPACE}/tables"
TABLE = f"{TABLES}/{{table}}"
VIEWS = f"{NAMESPACE}/views"
VIEW = f"{VIEWS}/{{view}}"

HEALTH: Sequence[Route] = (
    Route("GET", "/health", LazyHandler("config", "health"), advertised=False),
    Route("HEAD", "/health", LazyHandler("config", "health"), advertised=False),
)
"""Health checks of a server, not part of the catalog's API."""

ROUTES: Sequence[Route] = (
    Route("GET", "/v1/config", LazyHandler("config", "get_config")),
    Route("GET", NAMESPACES, LazyHandler("namespaces", "list_")),
    Route("POST", NAMESPACES, LazyHandler("namespaces", "create"), MUTATES),
    Route("GET", NAMESPACE, LazyHandler("namespaces", "load")),
    Route("HEAD", NAMESPACE, LazyHandler("namespaces", "exists")),
    Route("DELETE", NAMESPACE, LazyHandler("namespaces", "drop"), MUTATES),
    Route("POST", f"{NAMESPACE}/properties", LazyHandler("namespaces", "update_properties"), MUTATES),
    Route("GET", TABLES, LazyHandler("tables", "list_")),
    Route("POST", TABLES, LazyHandler("table_changes", "create"), MUTATES),
    Route("POST", f"{NAMESPACE}/register", LazyHandler("table_changes", "register"), MUTATES),
    Route("GET", TABLE, LazyHandler("tables", "load")),
    Route("HEAD", TABLE, LazyHandler("tables", "exists")),
    Route("POST", TABLE, LazyHandler("table_changes", "commit"), COMMITS),
    Route("DELETE", TABLE, LazyHandler("table_changes", "drop"), MUTATES),
    Route("POST", f"{TABLE}/metrics", LazyHandler("tables", "report_metrics")),
    Route("POST", f"{TABLE}/unregister", LazyHandler("table_changes", "unregister"), MUTATES, takes_json=False),
    Route("POST", f"{CATALOG}/tables/rename", LazyHandler("table_changes", "rename"), MUTATES),
    Route("POST", f"{CATALOG}/transactions/commit", LazyHandler("transactions", "commit"), COMMITS),
    Route("GET", VIEWS, LazyHandler("views", "list_")),
    Route("POST", VIEWS, LazyHandler("views", "create"), MUTATES),
    Route("POST", f"{NAMESPACE}/register-view", LazyHandler("views", "register"), MUTATES),
    Route("GET", VIEW, LazyHandler("views", "load")),
    Route("HEAD", VIEW, LazyHandler("views", "exists")),
    Route("POST", VIEW, LazyHandler("views", "replace"), COMMITS),
    Route("DELETE", VIEW, LazyHandler("views", "drop"), MUTATES),
    Route("POST", f"{CATALOG}/views/rename", LazyHandler("views", "rename"), MUTATES),
    Route("GET", f"{NAMESPACE}/functions", LazyHandler("unsupported", "list_functions")),
    Route("GET", f"{NAMESPACE}/functions/{{function}}", LazyHandler("unsupported", "load_function")),
    Route("GET", f"{TABLE}/credentials", LazyHandler("unsupported", "load_credentials"), advertised=False),
    Route("POST", f"{TABLE}/sign", LazyHandler("unsupported", "sign"), advertised=False),
    Route("POST", "/v1/oauth/tokens", LazyHandler("unsupported", "get_token"), advertised=False, takes_json=False),
)


def import_handlers() -> None:
    """Imports all of them now: for a process whose start may be slow, and which should not start with a broken
    one."""
    for route in (*HEALTH, *ROUTES):
        if isinstance(route.handler, LazyHandler):
            route.handler.load()
