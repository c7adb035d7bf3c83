"""The routes by which people look at a table or view besides its metadata: its timeline, how two versions differ, and
the lineage of a table. No specification has them."""

from collections.abc import Iterator, Sequence

from arco_catalog.http import requires as on
from arco_catalog.http.requires import SecurableReader, needs
from arco_catalog.http.route import Route
from arco_catalog.planning.privileges import Privilege


def inspection_of(namespace: str) -> Sequence[Route]:
    """Returns the routes below the path template `namespace` for timelines and comparisons of the namespace's tables
    and views, and for the lineage of tables."""
    table = f"{namespace}/tables/{{table}}"
    return (
        *_routes(table, "table", Privilege.TABLE_READ_PROPERTIES, on.table),
        Route("GET", f"{table}/lineage", "lineage.of_table", needs(Privilege.TABLE_READ_PROPERTIES, on.table)),
        *_routes(f"{namespace}/views/{{view}}", "view", Privilege.VIEW_READ_PROPERTIES, on.view),
    )


def _routes(template: str, of: str, reads: Privilege, on_securable: SecurableReader) -> Iterator[Route]:
    """Yields the routes that list, show and compare the versions of a kind of relation."""
    requires = needs(reads, on_securable)
    yield Route("GET", f"{template}/timeline", f"timeline.of_{of}", requires)
    yield Route("GET", f"{template}/timeline/{{version}}", f"timeline.version_of_{of}", requires)
    yield Route("GET", f"{template}/compare", f"timeline.compare_{of}s", requires)
