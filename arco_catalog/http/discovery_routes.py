"""The routes by which people look at a catalog: the names that it has. No specification has them."""

from collections.abc import Sequence

from arco_catalog.http import requires as on
from arco_catalog.http.route import Route

CATALOG = "/v1/{prefix}"

DISCOVERY: Sequence[Route] = (Route("GET", f"{CATALOG}/search", "search.find", on.nothing, advertised=False),)
