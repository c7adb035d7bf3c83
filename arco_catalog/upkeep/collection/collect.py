"""A whole collection of one catalog, of a realm's registry or of a delegation service's tasks, and of all that a
deployment has (docs/design/collection.md)."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.operations.catalogs import DeployedCatalog, Inventory, Owner
from arco_catalog.planning.collection import Retention
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.copies import CatalogIsCopy, require_original
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.paths import SERVICE
from arco_catalog.state.runtime import Runtime
from arco_catalog.upkeep.collection.checkpoints import collect_checkpoints
from arco_catalog.upkeep.collection.claims import collect_claims
from arco_catalog.upkeep.collection.dealing import Dealer, Here
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.hints import put_missing_hints
from arco_catalog.upkeep.collection.markers import collect_markers
from arco_catalog.upkeep.collection.pipeline import read_progress
from arco_catalog.upkeep.collection.pointers import collect_pointers
from arco_catalog.upkeep.collection.receipts import collect_receipts
from arco_catalog.upkeep.collection.registry import collect_registry
from arco_catalog.upkeep.collection.reports import collect_reports
from arco_catalog.upkeep.collection.run import Run, Stopped
from arco_catalog.upkeep.collection.stats import CollectionStats
from arco_catalog.upkeep.collection.tasks import collect_tasks
from arco_catalog.upkeep.collection.tombstones import collect_tombstones
from arco_catalog.upkeep.collection.transactions import collect_transactions

HERE = Here()


async def collect(
    session: Session,
    *,
    delete: bool,
    retention: Retention | None = None,
    progress: Callable[[CollectionStats], None] = lambda stats: None,
    should_stop: Callable[[], bool] = lambda: False,
    dealer: Dealer = HERE,
) -> CollectionStats:
    """Collects what the rules let go, and returns what it was; without `delete` it only counts, and writes nothing. It
    may be cut anywhere, run twice at once, and beside live writers: what it leaves the next run collects. `dealer` has
    what is listed judged and deleted, by this process unless it says otherwise. Raises `StoreError` if the store does
    not answer, or the session's deadline passes, and `CatalogIsCopy` where a copy is to delete
    (docs/recovery.md#copies)."""
    run = Run(session, retention or session.settings.retention, delete, progress=progress, should_stop=should_stop)
    try:
        if run.paths == SERVICE:
            await _collect_service(run, dealer)
        else:
            if delete:
                await require_original(session)
            await _collect_catalog(run, dealer)
    except Stopped:
        run.stats.stopped = True
    return run.stats


async def _collect_catalog(run: Run, dealer: Dealer) -> None:
    """A catalog's state, or that of a realm, which has less of it. Where a run begins follows from the millisecond at
    which it does: if all are too short to reach the end, each kind has its turn nevertheless.

    What has the dealer goes by batches. The rest stays with this process: tombstones leave by commits to the one HEAD;
    the registry's floor and its HEAD of a week ago are known to who lists all of its commits; the notes on entities are
    a few objects, which one process writes."""
    entities, pipeline = Entities(run), await read_progress(run)
    parts: Sequence[Callable[[], Awaitable[None]]] = (
        lambda: collect_tombstones(run, entities),
        lambda: collect_pointers(run, entities, dealer),
        lambda: _collect_requests(run, entities, dealer),
        lambda: collect_receipts(run, entities, pipeline, dealer),
        lambda: collect_claims(run, entities, dealer),
        lambda: collect_registry(run, pipeline),
        lambda: collect_tasks(run, entities, dealer),
        lambda: put_missing_hints(run),
        lambda: collect_checkpoints(run, entities),
        lambda: collect_reports(run, entities, dealer),
    )
    first = run.session.runtime.now_ms() % len(parts)
    for part in (*parts[first:], *parts[:first]):
        await part()


async def _collect_requests(run: Run, entities: Entities, dealer: Dealer) -> None:
    """What is kept of requests, unless it is kept for ever. Decisions go by the markers that are left."""
    if run.retention.markers:
        oldest_slot_ms = await collect_markers(run, entities, dealer)
        await collect_transactions(run, entities, dealer, oldest_slot_ms)


async def _collect_service(run: Run, dealer: Dealer) -> None:
    """What a delegation service has: it moves no pointer and no registry, so nothing is to be fenced."""
    entities = Entities(run)
    if run.retention.markers:
        await collect_markers(run, entities, dealer)
    await collect_tasks(run, entities, dealer)


async def collect_all(
    inventory: Inventory,
    request: OperationRequest,
    runtime: Runtime,
    collection: Callable[[Session], Awaitable[CollectionStats]],
) -> AsyncGenerator[tuple[DeployedCatalog, CollectionStats], None]:
    """What `collection` finds in each catalog and registry, and in the delegation service's state if there is any. Each
    has an equal share of the time that those before it left until the deadline of `request`. A catalog that can't be
    opened is told as unreadable. Raises what `collection` does."""
    every = [*inventory.catalogs, *inventory.registries, inventory.service]
    for place, each in enumerate(every):
        now_ms = runtime.now_ms()
        share_ms = (request.deadline_ms - now_ms) // (len(every) - place)
        try:
            session = each.open().session(replace(request, deadline_ms=now_ms + share_ms), ALLOW_ALL)
        except CatalogError as error:
            stats = CollectionStats(stopped=True)
            stats.fails(f"catalog {each.name}: {error.message}")
        else:
            try:
                stats = await collection(session)
            except CatalogIsCopy as copy:
                stats = CollectionStats()
                stats.fails(f"catalog {each.name}: {copy.message}")
        if stats.listed or each.owner is not Owner.SERVICE:
            yield each, stats
