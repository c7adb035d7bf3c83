"""The routes of governance. The catalog API and the management API have them below different templates
(docs/design/polaris.md#governance)."""

from collections.abc import Iterator, Sequence

from arco_catalog.http import requires as on
from arco_catalog.http.requires import SecurableReader, needs
from arco_catalog.http.route import JSON, Effect, Route
from arco_catalog.planning.privileges import Privilege

MERGE_PATCH = (*JSON, "application/merge-patch+json")
"""The content types of a body that is a JSON merge patch (RFC 7386)."""


def governance_of(namespace: str, *, advertised: bool) -> Sequence[Route]:
    """Returns the governance routes below the path template `namespace`: those of the namespace, of its tables and of
    its views. `advertised`: `/v1/config` lists them."""
    return (
        *_pair(namespace, "namespace", Privilege.NAMESPACE_READ_PROPERTIES, on.namespace, advertised),
        *_pair(f"{namespace}/tables/{{table}}", "table", Privilege.TABLE_READ_PROPERTIES, on.table, advertised),
        *_pair(f"{namespace}/views/{{view}}", "view", Privilege.VIEW_READ_PROPERTIES, on.view, advertised),
    )


def _pair(template: str, of: str, reads: Privilege, on_securable: SecurableReader, advertised: bool) -> Iterator[Route]:
    """Iterates over the route that reads a governance document, which needs the privilege `reads`, and the route that
    changes it. `advertised`: `/v1/config` lists them."""
    yield Route(
        "GET", f"{template}/governance", f"governance.of_{of}", needs(reads, on_securable), advertised=advertised
    )
    yield Route(
        "POST",
        f"{template}/governance",
        f"governance.change_of_{of}",
        on.governs(reads, on_securable),
        Effect.MUTATES,
        advertised=advertised,
        body_types=MERGE_PATCH,
    )
