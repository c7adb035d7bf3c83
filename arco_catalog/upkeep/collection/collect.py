"""Runs a collection: of one catalog, of a realm's registry, of a delegation service's tasks, or of all of these in a
deployment (docs/design/collection.md)."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from arco_catalog.iceberg.errors import CatalogError, InternalError
from arco_catalog.operations.catalogs import DeployedCatalog, Inventory, Owner
from arco_catalog.planning.upkeep_settings import Retention
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.copies import CatalogIsCopy, require_original
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.paths import SERVICE
from arco_catalog.state.runtime import Runtime
from arco_catalog.upkeep.collection.batch_runner import BatchRunner, LocalRunner
from arco_catalog.upkeep.collection.checkpoints import collect_checkpoints
from arco_catalog.upkeep.collection.claims import collect_claims
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.feed import collect_feed
from arco_catalog.upkeep.collection.hints import put_missing_hints
from arco_catalog.upkeep.collection.markers import collect_markers
from arco_catalog.upkeep.collection.pipeline import read_progress
from arco_catalog.upkeep.collection.plans import collect_plans
from arco_catalog.upkeep.collection.pointers import collect_pointers
from arco_catalog.upkeep.collection.proposals import collect_proposals
from arco_catalog.upkeep.collection.receipts import collect_receipts
from arco_catalog.upkeep.collection.registry import collect_registry
from arco_catalog.upkeep.collection.reports import collect_reports
from arco_catalog.upkeep.collection.run import Run, Stopped
from arco_catalog.upkeep.collection.stats import CollectionStats
from arco_catalog.upkeep.collection.tasks import collect_tasks
from arco_catalog.upkeep.collection.tombstones import collect_tombstones
from arco_catalog.upkeep.collection.transactions import collect_transactions
from arco_catalog.upkeep.shares import share_of

HERE = LocalRunner()


async def collect(
    session: Session,
    *,
    delete: bool,
    retention: Retention | None = None,
    progress: Callable[[CollectionStats], None] = lambda stats: None,
    should_stop: Callable[[], bool] = lambda: False,
    runner: BatchRunner = HERE,
) -> CollectionStats:
    """Deletes the objects that the rules allow, and returns their counts; without `delete` it counts them and writes
    nothing. `progress` gets the counts so far, often. If `should_stop` returns true it ends early, and
    sets `stopped`. A collection may be interrupted anywhere, run twice at once, and run while clients write: the next
    run collects the rest. `runner` runs the batches, by default in this process. Raises `StoreError` if the store does
    not answer or the session's deadline passes, `InternalError` for a corrupt HEAD, and `CatalogIsCopy` for a copy with
    `delete` (docs/recovery.md#copies)."""
    run = Run(session, retention or session.settings.retention, delete, progress=progress, should_stop=should_stop)
    try:
        if run.paths == SERVICE:
            await _collect_service(run, runner)
        else:
            if delete:
                await require_original(session)
            await _collect_catalog(run, runner)
    except Stopped:
        run.stats.stopped = True
    return run.stats


async def _collect_catalog(run: Run, runner: BatchRunner) -> None:
    """Deletes what the rules allow of the state of a catalog, or of a realm, which has fewer kinds. The first kind of a
    run depends on the millisecond of its start, so that every kind has a turn even if no run has time for all.

    Kinds with a runner are collected in batches. The others stay in this process: tombstones are removed by commits to
    the one HEAD, the registry's floor and its HEAD of a week ago need a listing of all commits, and the records about
    entities are a few objects, which one process writes.
    """
    entities, pipeline = Entities(run), await read_progress(run)
    parts: Sequence[Callable[[], Awaitable[None]]] = (
        lambda: collect_tombstones(run, entities),
        lambda: collect_pointers(run, entities, runner),
        lambda: _collect_requests(run, entities, runner),
        lambda: collect_receipts(run, entities, pipeline, runner),
        lambda: collect_claims(run, entities, runner),
        lambda: collect_registry(run, pipeline),
        lambda: collect_tasks(run, entities, runner),
        lambda: put_missing_hints(run),
        lambda: collect_checkpoints(run, entities),
        lambda: collect_reports(run, entities, runner),
        lambda: collect_proposals(run, entities, runner),
        lambda: collect_plans(run, entities, runner),
        lambda: collect_feed(run),
    )
    first = run.session.runtime.now_ms() % len(parts)
    for part in (*parts[first:], *parts[:first]):
        await part()


async def _collect_requests(run: Run, entities: Entities, runner: BatchRunner) -> None:
    """Collects idempotency markers, and then the decisions of transactions, which depend on the oldest marker slot that
    is kept. Does nothing if the settings keep markers for ever."""
    if run.retention.markers:
        oldest_slot_ms = await collect_markers(run, entities, runner)
        await collect_transactions(run, entities, runner, oldest_slot_ms)


async def _collect_service(run: Run, runner: BatchRunner) -> None:
    """Collects the tasks of a delegation service, and the markers unless the settings keep these for ever. It has no
    pointers and no registry, so there is nothing to fence."""
    entities = Entities(run)
    if run.retention.markers:
        await collect_markers(run, entities, runner)
    await collect_tasks(run, entities, runner)


async def collect_all(
    inventory: Inventory,
    request: OperationRequest,
    runtime: Runtime,
    collection: Callable[[Session], Awaitable[CollectionStats]],
    *,
    margin_ms: int = 0,
) -> AsyncGenerator[tuple[DeployedCatalog, CollectionStats], None]:
    """Runs `collection` for the catalogs, then the registries, then the delegation service, and yields each with its
    counts; the service only if objects were listed there, or it failed. Each has an equal share of the
    time that is left until the deadline of `request`; the last `margin_ms` of that time, in which `collection` begins
    nothing new, are in the share of each. A catalog that can't be opened, that is a copy, or whose collection raises
    `InternalError`, as for a corrupt HEAD, is yielded with one record that can't be read, and one that can't be opened
    also as stopped. Raises what else `collection` raises."""
    every = [*inventory.catalogs, *inventory.registries, inventory.service]
    for place, each in enumerate(every):
        share = share_of(request, runtime.now_ms(), len(every) - place, margin_ms)
        try:
            session = each.open().session(share, ALLOW_ALL)
        except CatalogError as error:
            stats = CollectionStats(stopped=True)
            stats.fails(f"catalog {each.name}: {error.message}")
        else:
            try:
                stats = await collection(session)
            except (CatalogIsCopy, InternalError) as error:
                stats = CollectionStats()
                stats.fails(f"catalog {each.name}: {error.message}")
        if stats.listed or stats.unreadable_count or each.owner is not Owner.SERVICE:
            yield each, stats
