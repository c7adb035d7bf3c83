"""The routes by which people look at a catalog: its names, and what happened to them. No specification has them."""

from collections.abc import Sequence

from arco_catalog.http import requires as on
from arco_catalog.http.route import Route

CATALOG = "/v1/{prefix}"

DISCOVERY: Sequence[Route] = (
    Route("GET", f"{CATALOG}/search", "search.find", on.nothing, advertised=False),
    Route("GET", f"{CATALOG}/history", "history.list_", on.nothing, advertised=False),
)
