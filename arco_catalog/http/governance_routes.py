"""The routes of governance, which are the same below a catalog's prefix and in the API of management
(docs/design/polaris.md#governance)."""

from collections.abc import Iterator, Sequence

from arco_catalog.http import requires as on
from arco_catalog.http.requires import Named, needs
from arco_catalog.http.route import JSON, Effect, Route
from arco_catalog.planning.privileges import Privilege

MERGE_PATCH = (*JSON, "application/merge-patch+json")
"""How a body may be said to be a JSON merge patch (RFC 7386)."""


def governance_of(namespace: str, *, advertised: bool) -> Sequence[Route]:
    """The routes below a template that names a `namespace`: of itself, its tables and its views."""
    return (
        *_pair(namespace, "namespace", Privilege.NAMESPACE_READ_PROPERTIES, on.namespace, advertised),
        *_pair(f"{namespace}/tables/{{table}}", "table", Privilege.TABLE_READ_PROPERTIES, on.table, advertised),
        *_pair(f"{namespace}/views/{{view}}", "view", Privilege.VIEW_READ_PROPERTIES, on.view, advertised),
    )


def _pair(template: str, of: str, reads: Privilege, named: Named, advertised: bool) -> Iterator[Route]:
    """To look, and to change."""
    yield Route(
        "GET",
        f"{template}/governance",
        f"governance.of_{of}",
        advertised=advertised,
        requires=needs(reads, named),
    )
    yield Route(
        "POST",
        f"{template}/governance",
        f"governance.change_of_{of}",
        Effect.MUTATES,
        advertised=advertised,
        body_types=MERGE_PATCH,
        requires=on.governs(reads, named),
    )
