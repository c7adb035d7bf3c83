"""Runs the reconciler for each catalog of a deployment, one after the other, each with an equal share of the time."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from arco_catalog.iceberg.errors import CatalogError, InternalError
from arco_catalog.operations.catalogs import DeployedCatalog
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.runtime import Runtime
from arco_catalog.upkeep.shares import share_of


async def reconcile_all(
    catalogs: Sequence[DeployedCatalog],
    request: OperationRequest,
    runtime: Runtime,
    walk: Callable[[Session], Awaitable[ReconcileStats]],
    *,
    margin_ms: int = 0,
) -> AsyncGenerator[tuple[DeployedCatalog, ReconcileStats], None]:
    """Runs `walk`, such as `reconcile`, for one catalog after the other, and yields each with its counts. Each catalog
    has an equal share of the time that is left until the deadline of `request`, so that none delays the others; the
    last `margin_ms` of that time, in which `walk` begins nothing new, are in the share of each. A catalog that can't be
    opened, or whose walk raises `InternalError`, as for a corrupt HEAD, is yielded with one failure and `stopped`.
    Raises what else `walk` raises."""
    for place, catalog in enumerate(catalogs):
        share = share_of(request, runtime.now_ms(), len(catalogs) - place, margin_ms)
        try:
            opened = catalog.open()
        except CatalogError as error:
            stats = _failed(catalog, error)
        else:
            try:
                stats = await walk(opened.session(share, ALLOW_ALL))
            except InternalError as error:
                stats = _failed(catalog, error)
        yield catalog, stats


def _failed(catalog: DeployedCatalog, error: CatalogError) -> ReconcileStats:
    """Returns the counts of a catalog that could not be walked: one failure, with the error, and `stopped`."""
    stats = ReconcileStats(stopped=True)
    stats.fails(f"catalog {catalog.name}: {error.message}")
    return stats
