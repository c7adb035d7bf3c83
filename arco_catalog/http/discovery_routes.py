"""The routes by which people look at a catalog: its names, what happened to them, who has access to what, and its
background tasks, of which a failed one can be submitted again. No specification has them."""

from collections.abc import Iterator, Sequence

from arco_catalog.http import requires as on
from arco_catalog.http.requires import SecurableReader, needs
from arco_catalog.http.route import Route
from arco_catalog.planning.privileges import Privilege

CATALOG = "/v1/{prefix}"
TASKS = f"{CATALOG}/tasks"


def holders_of(namespace: str) -> Sequence[Route]:
    """Returns the routes below the path template `namespace` that list who has access: to the namespace, to its tables
    and to its views. The catalog API and the management API have them."""
    return (
        *_holders(namespace, "namespace", on.namespace),
        *_holders(f"{namespace}/tables/{{table}}", "table", on.table),
        *_holders(f"{namespace}/views/{{view}}", "view", on.view),
    )


def _holders(template: str, of: str, on_securable: SecurableReader) -> Iterator[Route]:
    """Yields one route, below the path template of a kind of securable, that lists who has which privileges on it. The
    caller needs the privilege to manage access there."""
    requires = needs(Privilege.CATALOG_MANAGE_ACCESS, on_securable)
    yield Route("GET", f"{template}/access", f"privilege_holders.of_{of}", requires, advertised=False)


DISCOVERY: Sequence[Route] = (
    Route("GET", f"{CATALOG}/search", "search.find", on.nothing, advertised=False),
    Route("GET", f"{CATALOG}/history", "history.list_", on.nothing, advertised=False),
    Route("GET", TASKS, "tasks.list_", needs(Privilege.CATALOG_MANAGE_METADATA), advertised=False),
    Route("GET", f"{TASKS}/{{task}}", "tasks.get", needs(Privilege.CATALOG_MANAGE_METADATA), advertised=False),
    # Not a change of the catalog: it takes no idempotency key, since a task that was submitted again is not failed.
    Route("POST", f"{TASKS}/{{task}}/retry", "tasks.retry", needs(Privilege.CATALOG_MANAGE_CONTENT), advertised=False),
    *holders_of(f"{CATALOG}/namespaces/{{namespace}}"),
)
