"""Collections on Spark: what `arco gc` does, its batches dealt out (`arco_catalog.upkeep.collection.batch_runner`).

The driver lists each kind once, in the order of the one process, and hands what it has listed to executors, a batch to
a Spark job. An executor judges and deletes its batch as that process would: it looks again, fences for itself, and
stops before the run's deadline. What it has learned of entities it keeps for the run's next batch. A batch that is lost
is halved, and its halves are tried again, until what is lost is one object: that is told, and kept.

The registries of realms, and what a delegation service has, are small: the driver collects them by itself.
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

from arco_catalog.config.variables import ALLOWED_LOCATIONS, MAX_METADATA, REALM, STORE
from arco_catalog.iceberg.errors import CatalogError, NotFound
from arco_catalog.operations.catalogs import DeployedCatalog, Inventory, take_inventory
from arco_catalog.operations.environment import catalog_from_env, opened
from arco_catalog.planning.collection import Retention
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
from reconciler.parts import InFlight, Losses, Part, halves, why
from storage_backends import Listed
from storage_backends.open import StoreOpener, canonical_url

MARGIN_MS = 60 * 1000
"""What a run that is to stop may take to end."""
IN_FLIGHT = 64
"""Batches that are on executors at once: so much of what was listed the driver has in memory."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Setting:
    """What an executor has to know of a run over one catalog."""

    config: CatalogConfig
    retention: Retention
    delete: bool
    deadline_ms: int
    run: str


@dataclass(frozen=True, slots=True)
class Done(Generic[R]):
    """What came of a batch: None if it was stopped."""

    stats: CollectionStats
    result: R | None


def collector_request(deadline_ms: int) -> OperationRequest:
    """What a run asks of a store."""
    return OperationRequest("POST", "collect", "", None, "collector", {"kind": "Collector"}, deadline_ms)


class OnExecutors:
    """Deals the batches of one catalog's collection to the executors of a Spark application."""

    def __init__(self, spark: SparkContext, setting: Setting, in_flight: int = IN_FLIGHT) -> None:
        self._spark = spark
        self._setting = setting
        self._most = in_flight
        self._losses = Losses()

    async def run_batches(
        self, run: Run, entities: Entities, batches: AsyncGenerator[Batch[T, R], None]
    ) -> AsyncGenerator[tuple[Batch[T, R], R | None], None]:
        """Each batch, or a part of one, with what came of it. A run that is stopped waits for what is under way, which
        stops by itself, so that all that was deleted is counted. Raises `Stopped`, `StoreError`, and, where more is
        lost than any object could be to blame for, what Spark raised."""
        group = run.session.runtime.ulid()
        in_flight = InFlight[Batch[T, R], Done[R]](
            self._spark, group, "collect", partial(do_batches, self._setting), self._most
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
                            for done in self._take(run, part, queue):
                                yield done
                    if run.stats.stopped or stopped is not None:
                        listing, stopped = False, stopped or Stopped()
                        queue.clear()
        finally:
            await in_flight.close()
        if stopped is not None:
            raise stopped

    def _take(
        self, run: Run, part: Part[Batch[T, R], Done[R]], queue: deque[Batch[T, R]]
    ) -> Iterator[tuple[Batch[T, R], R | None]]:
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
            run.stats.fails(f"{_called(item)}: the Spark task that looked at it failed: {why(part.lost)}")
            yield batch, None


def _called(item: object) -> str:
    """An object of a batch, as it is told."""
    if isinstance(item, Listed):
        return item.key
    return str(item[0]) if isinstance(item, tuple) else str(item)


class _Kept(threading.local):
    """What this process of an executor has learned of the entities of one run."""

    run: str = ""
    known: EntityCache = EntityCache()


_KEPT = _Kept()


def do_batches(setting: Setting, batches: Iterable[Batch[T, R]]) -> Iterator[Done[R]]:
    """An executor's share: one catalog opened, and batches judged, and what may go of them deleted. Raises `StoreError`
    if the store does not answer."""
    return iter(asyncio.run(_do_batches(setting, [*batches])))


def _is_near(deadline: Deadline) -> bool:
    return deadline.left_ms() <= MARGIN_MS


async def _do_batches(setting: Setting, batches: list[Batch[T, R]]) -> list[Done[R]]:
    if _KEPT.run != setting.run:
        _KEPT.run, _KEPT.known = setting.run, EntityCache()
    done: list[Done[R]] = []
    async with setting.config.catalog() as catalog:
        for batch in batches:
            session = catalog.session(collector_request(setting.deadline_ms), ALLOW_ALL)
            run = Run(session, setting.retention, setting.delete, should_stop=partial(_is_near, session.deadline))
            try:
                result = await batch.work(run, Entities(run, _KEPT.known), batch.items)
            except Stopped:
                run.stats.stopped = True
                result = None
            done.append(Done(run.stats, result))
    return done


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
    """Collects what `arco gc` does, in all that has state in the deployment that the variables name; without `delete`
    it only counts, and writes nothing. `opens` opens stores on executors. Raises what `collect` does, `NotFound` if
    there is nothing, and `RuntimeError` over a store that ignores conditions."""
    by_paths: dict[Paths, DeployedCatalog] = {}

    async def collection(session: Session) -> CollectionStats:
        owner = by_paths.get(session.state.paths)
        runner = HERE if owner is None else OnExecutors(spark, setting(session, owner))
        return await collect(
            session,
            delete=delete,
            progress=progress,
            should_stop=partial(_is_near, session.deadline),
            runner=runner,
        )

    def setting(session: Session, owner: DeployedCatalog) -> Setting:
        config = CatalogConfig(
            STORE.require(environment),
            owner.name,
            tuple(ALLOWED_LOCATIONS.read(environment)),
            opens=opens,
            realm=owner.realm if REALM.read(environment) else None,
            max_metadata_bytes=MAX_METADATA.read(environment),
        )
        retention = session.settings.retention
        return Setting(config, retention, delete, session.request.deadline_ms, runtime.ulid())

    async with _inventory(environment, runtime, delete=False) as found:
        if not found.registries:
            [only] = found.catalogs
            session = only.open().session(collector_request(runtime.now_ms() + timeout_ms), ALLOW_ALL)
            if (await session.state.head()).version is None:
                raise NotFound(f"there is no catalog {only.name!r} in {STORE.require(environment)}")
    async with _inventory(environment, runtime, delete=delete) as inventory:
        for each in inventory.catalogs:
            with suppress(CatalogError):  # told where it is collected
                by_paths[each.open().paths] = each
        request = collector_request(runtime.now_ms() + timeout_ms)
        return [each async for each in collect_all(inventory, request, runtime, collection)]


@asynccontextmanager
async def _inventory(environment: Mapping[str, str], runtime: Runtime, *, delete: bool) -> AsyncIterator[Inventory]:
    """What there is. Before anything is deleted the store is asked whether it keeps conditions, which writes to it."""
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
