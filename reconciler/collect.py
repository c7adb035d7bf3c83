"""Collection on Spark: `arco gc` with batches distributed to executors
(`arco_catalog.upkeep.collection.batch_runner`).

The driver lists every kind of object once, in the order of `arco gc`, and sends a batch of listed objects to an
executor as one Spark job. The executor runs the code of `arco gc` on the batch: it reads every object again, fences by
itself, and stops before the run's deadline. What it has read about entities serves the run's next batch, too. If a
batch fails, the halves are tried again, until a batch of one object fails: that object counts as kept, and is reported.

The driver itself collects what is not done in batches: in a catalog tombstones, commits of the registry, checkpoints
and the event feed, and all of the registries of realms and of a delegation service, which have few objects.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from pyspark import SparkContext

from arco_catalog.config.variables import REALM, STORE
from arco_catalog.iceberg.errors import CatalogError, NotFound
from arco_catalog.operations.catalogs import DeployedCatalog, Inventory, take_inventory
from arco_catalog.operations.environment import catalog_from_env, opened
from arco_catalog.planning.upkeep_settings import Retention
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.paths import Paths
from arco_catalog.state.runtime import Deadline, Runtime
from arco_catalog.upkeep.collection.batch_runner import Batch
from arco_catalog.upkeep.collection.collect import HERE, collect, collect_all
from arco_catalog.upkeep.collection.entities import Entities, EntityCache
from arco_catalog.upkeep.collection.report import CollectedCatalogs
from arco_catalog.upkeep.collection.run import Run, Stopped
from arco_catalog.upkeep.collection.stats import CollectionStats
from reconciler.catalog_config import CatalogConfig, open_by_environment
from reconciler.parts import InFlight, Losses, Part, halves, reason
from storage_backends import Listed
from storage_backends.open import StoreOpener, canonical_url

MARGIN_MS = 60 * 1000
"""How many milliseconds before the deadline of the session a collection stops, in the driver and on executors."""
IN_FLIGHT = 64
"""How many batches are on executors at once. It bounds the listed objects in the driver's memory."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CollectionJob:
    """A collection of one catalog, as executors receive it. `run` is an id of the run, and `deadline_ms` the end of the
    session in milliseconds since 1970. Without `delete`, objects are only counted."""

    config: CatalogConfig
    retention: Retention
    delete: bool
    deadline_ms: int
    run: str


@dataclass(frozen=True, slots=True)
class BatchResult(Generic[R]):
    """What an executor returns for a batch of a collection: in `stats` the counts, and in `result` what the batch's
    work returned. `result` is None if the batch was stopped before the end, and also for work that returns nothing."""

    stats: CollectionStats
    result: R | None


def collector_request(deadline_ms: int) -> OperationRequest:
    """Returns the request for a session of the collector: its principal is `collector`, it has no idempotency key, and
    its deadline is `deadline_ms`."""
    return OperationRequest("POST", "collect", "", None, "collector", {"kind": "Collector"}, deadline_ms)


class SparkBatchRunner:
    """Runs the batches of one catalog's collection on the executors of a Spark application."""

    def __init__(self, spark: SparkContext, job: CollectionJob, in_flight: int = IN_FLIGHT) -> None:
        self._spark = spark
        self._job = job
        self._max_in_flight = in_flight
        self._losses = Losses()

    async def run_batches(
        self, run: Run, entities: Entities, batches: AsyncGenerator[Batch[T, R], None]
    ) -> AsyncGenerator[tuple[Batch[T, R], R | None], None]:
        """Runs batches on executors, and yields every batch with the result of the work (None if it was stopped or
        failed), in the order in which they finish; adds the counts to the run's. A batch whose Spark job fails is run
        and yielded as two halves; one object that fails alone is counted as one that can't be read. If the
        run is stopped, batches on executors are awaited, so that all deletions are in the counts. Raises `Stopped`,
        `StoreError`, and the error of Spark if so many batches fail that no object can be the cause (`Losses`)."""
        group = run.session.runtime.ulid()
        in_flight = InFlight[Batch[T, R], BatchResult[R]](
            self._spark, group, "collect", partial(run_batches_on_executor, self._job), self._max_in_flight
        )
        queue: deque[Batch[T, R]] = deque()
        stopped: Stopped | None = None
        try:
            async with aclosing(batches):
                listing = True
                while listing or queue or in_flight:
                    if queue and not in_flight.is_full:
                        in_flight.start([queue.popleft()])
                    elif listing and not in_flight.is_full:
                        try:
                            queue.append(await anext(batches))
                        except StopAsyncIteration:
                            listing = False
                        except Stopped as error:
                            listing, stopped = False, error
                    else:
                        for part in await in_flight.finished():
                            for outcome in self._take(run, part, queue):
                                yield outcome
                    if run.stats.stopped or stopped is not None:
                        listing, stopped = False, stopped or Stopped()
                        queue.clear()
        finally:
            await in_flight.close()
        if stopped is not None:
            raise stopped

    def _take(
        self, run: Run, part: Part[Batch[T, R], BatchResult[R]], queue: deque[Batch[T, R]]
    ) -> Iterator[tuple[Batch[T, R], R | None]]:
        """Adds the outcome of a batch's Spark job to the run's counts, and yields the batch with the result; with None,
        as one that can't be read, for a single object whose job failed. The halves of a failed batch of more than one
        object are put at the front of `queue` instead. Raises the error of Spark as `run_batches` does."""
        [batch] = part.items
        self._losses.note(part.lost)
        if part.lost is None:
            [done] = part.done
            run.stats.add(done.stats)
            run.progress(run.stats)
            yield batch, done.result
        elif len(batch.items) > 1:
            queue.extendleft(replace(batch, items=half) for half in halves(batch.items))
        else:
            [item] = batch.items
            run.stats.fails(f"{_describe(item)}: the Spark task that read it failed: {reason(part.lost)}")
            yield batch, None


def _describe(item: object) -> str:
    """Returns the key or name of an object in a batch of a collection, for a report."""
    if isinstance(item, Listed):
        return item.key
    return str(item[0]) if isinstance(item, tuple) else str(item)


class _RunCache(threading.local):
    """What one thread of an executor has read about entities in the run with the id `run`, for later batches of the
    same run in that thread. The next run replaces it."""

    run: str = ""
    entities: EntityCache = EntityCache()


_CACHE = _RunCache()


def run_batches_on_executor(job: CollectionJob, batches: Iterable[Batch[T, R]]) -> Iterator[BatchResult[R]]:
    """Runs batches on an executor with one opened catalog, and returns their results in order. Less than
    `MARGIN_MS` before the deadline, a batch is stopped, also one that has begun, between two steps. Raises
    `StoreError` if the store does not respond, and the errors of `CatalogConfig.catalog`."""
    return iter(asyncio.run(_run_batches(job, [*batches])))


def _is_near(deadline: Deadline) -> bool:
    """Whether a deadline is so near that no other work may start."""
    return deadline.left_ms() <= MARGIN_MS


async def _run_batches(job: CollectionJob, batches: list[Batch[T, R]]) -> list[BatchResult[R]]:
    """Works on batches of a collection in an executor, and returns their results in order, that of a stopped one
    without a result. What the thread has read in a former batch of the run is used again."""
    if _CACHE.run != job.run:
        _CACHE.run, _CACHE.entities = job.run, EntityCache()
    results: list[BatchResult[R]] = []
    async with job.config.catalog() as catalog:
        for batch in batches:
            session = catalog.session(collector_request(job.deadline_ms), ALLOW_ALL)
            run = Run(session, job.retention, job.delete, should_stop=partial(_is_near, session.deadline))
            try:
                result = await batch.work(run, Entities(run, _CACHE.entities), batch.items)
            except Stopped:
                run.stats.stopped = True
                result = None
            results.append(BatchResult(run.stats, result))
    return results


async def collect_on_spark(
    spark: SparkContext,
    environment: Mapping[str, str],
    runtime: Runtime,
    timeout_ms: int,
    *,
    delete: bool,
    progress: Callable[[CollectionStats], None] = lambda stats: None,
    opens: StoreOpener = open_by_environment,
) -> CollectedCatalogs:
    """Collects in every catalog and registry, and in the delegation service, of the deployment that `environment`
    describes, as `arco gc` does. Without `delete`, objects are counted, and nothing is written. `timeout_ms` is shared
    by all catalogs, and a collection stops `MARGIN_MS` before the catalog's share of it is over. `opens` opens stores
    on executors. The callback receives the counts of the catalog that is being collected, as they grow.

    Returns the counts of every catalog and registry, and of the service if it has objects. Raises `NotFound` if a realm
    that the variables name does not exist, or a store without a realm has no catalog of the warehouse's name;
    `InternalError` if the HEAD of that catalog can't be read; `StoreError`; and, with `delete`, `RuntimeError` if the
    store ignores preconditions."""
    by_paths: dict[Paths, DeployedCatalog] = {}

    async def collection(session: Session) -> CollectionStats:
        owner = by_paths.get(session.state.paths)
        runner = HERE if owner is None else SparkBatchRunner(spark, job_of(session, owner))
        return await collect(
            session,
            delete=delete,
            progress=progress,
            should_stop=partial(_is_near, session.deadline),
            runner=runner,
        )

    def job_of(session: Session, owner: DeployedCatalog) -> CollectionJob:
        config = CatalogConfig.from_environment(environment, owner, opens)
        retention = session.settings.retention
        return CollectionJob(config, retention, delete, session.request.deadline_ms, runtime.ulid())

    async with _inventory(environment, runtime, delete=False) as found:
        if not found.registries:
            [only] = found.catalogs
            session = only.open().session(collector_request(runtime.now_ms() + timeout_ms), ALLOW_ALL)
            if (await session.state.head()).version is None:
                raise NotFound(
                    f"there is no catalog {only.name!r} in {STORE.require(environment)}: check --store, --warehouse "
                    "and --realm"
                )
    async with _inventory(environment, runtime, delete=delete) as inventory:
        for each in inventory.catalogs:
            with suppress(CatalogError):  # `collect_all` opens it again, and reports the error
                by_paths[each.open().paths] = each
        request = collector_request(runtime.now_ms() + timeout_ms)
        return [each async for each in collect_all(inventory, request, runtime, collection, margin_ms=MARGIN_MS)]


@asynccontextmanager
async def _inventory(environment: Mapping[str, str], runtime: Runtime, *, delete: bool) -> AsyncIterator[Inventory]:
    """Opens the catalogs and registries of the deployment, and closes its store on exit. With `delete`, a trial write
    first ensures that the store honours preconditions; raises `RuntimeError` if it ignores them."""
    if delete:
        async with opened(environment, runtime) as inventory:
            yield inventory
        return
    catalog = await catalog_from_env(environment, runtime)
    try:
        url = canonical_url(STORE.require(environment), environment)
        yield await take_inventory(catalog, url, REALM.read(environment))
    finally:
        await catalog.close()
