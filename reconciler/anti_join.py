"""The anti-join on Spark: purges that others may stand in the way of, and large ones (docs/design/purge.md#rule-19).

The driver holds the task's lease and does the purge as any worker does. Executors read what the other tables of the
catalog lead to, and what the purged one leads to; its data files are joined with the others' and deleted by executors,
part by part. What the driver remembers are the names of tables, and of the purged table's manifests.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from pyspark import RDD, SparkContext, StorageLevel

from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches
from arco_catalog.state.purge_progress import MAX_UNREAD, Progress
from arco_catalog.state.tombstone import Tombstone
from arco_catalog.tasks.execution import Execution, TaskFailed
from arco_catalog.upkeep.purge.deletion import Deletion
from arco_catalog.upkeep.purge.inventory import Inventory
from arco_catalog.upkeep.purge.missing import describe_missing, wait_for_missing
from arco_catalog.upkeep.purge.other_table import MAX_ROUNDS, has_name
from arco_catalog.upkeep.purge.reach import ReachedFile
from arco_catalog.upkeep.purge.sharing import known_tables
from reconciler.catalog_config import CatalogConfig
from reconciler.purge_parts import (
    Damaged,
    Deleted,
    Fact,
    Facts,
    Gone,
    Manifest,
    Missing,
    Outside,
    Own,
    Owner,
    PurgeJob,
    Row,
    Shared,
    Unmoved,
    delete_part,
    part_of,
    read_manifests,
    read_manifests_of_others,
    read_others,
)
from reconciler.spark_jobs import SparkJobs
from storage_backends import StoreUnavailable

T = TypeVar("T")

ITEMS_IN_A_SLICE = 50
"""Tables, or manifests, that one task reads where there are many."""
MANIFESTS_IN_A_PART = 20
"""Whose data files one task deletes."""
MAX_PARTS = 4_096
NAMES_AT_ONCE = 10_000
"""Files, other than data, that are looked for among those of others at once."""
MAX_KEEPERS = 20
"""Tables that the result names; files that were kept for more of them are counted under `OTHERS`."""
OTHERS = "others"


@dataclass(frozen=True, slots=True)
class SparkAntiJoin:
    """See `AntiJoin`."""

    spark: SparkContext
    config: CatalogConfig

    @asynccontextmanager
    async def deletion(self, execution: Execution, tombstone: Tombstone) -> AsyncIterator[Deletion]:
        """See `AntiJoin.deletion`."""
        lease = execution.task.lease
        assert lease is not None
        job = PurgeJob(self.config, execution.task.id, lease, tombstone.locations)
        jobs = SparkJobs(self.spark, lease, f"purge of entity {tombstone.entity}")
        shared = SharedFiles(self.spark, jobs, job)
        try:
            tables = await known_tables(execution, tombstone.entity, tombstone.locations)
            await shared.read(execution, [Owner(name, entity, 0) for name, entity in tables])
            yield SparkDeletion(execution, tombstone.locations, shared)
        finally:
            shared.forget()


class SharedFiles:
    """The files at the locations of the purged table that other tables lead to, kept by executors."""

    def __init__(self, spark: SparkContext, jobs: SparkJobs, job: PurgeJob) -> None:
        self.spark = spark
        self.jobs = jobs
        self.job = job
        self.any = False
        self.missing: dict[str, str] = {}
        """Tables of which a file is gone, and which."""
        self.unread: dict[str, str] = {}
        """Tables of which something can't be read, and what."""
        self._parts: list[RDD[Row]] = []

    @property
    def rows(self) -> "RDD[Row]":
        """A row for each."""
        return self.spark.union([part.filter(_is_shared) for part in self._parts])

    async def read(self, execution: Execution, tables: Sequence[Owner]) -> None:
        """Reads what these tables lead to. A table of which a file was gone when it came to be read may have been
        written anew: it is read again, if its pointer has moved. Raises `NotYet` while something that is gone of the
        present state of a table may be restored, unless locations are trusted; `TaskFailed` for a table
        without a pointer; and `StoreUnavailable` where tables keep changing."""
        lost: dict[Owner, str] = {}
        trusts = execution.session().settings.purge.trust_locations
        for _ in range(MAX_ROUNDS):
            if not tables:
                break
            rows = self._read(tables)
            facts = await self.jobs.run(rows.mapPartitions(_told).collect)
            for fact in facts:
                if isinstance(fact, Damaged) and len(self.unread) < MAX_UNREAD:
                    self.unread.setdefault(fact.name, fact.why)
            self.any = self.any or any(isinstance(fact, Shared) for fact in facts)
            for fact in facts:
                if isinstance(fact, Unmoved) and fact.owner in lost and not trusts:
                    await self._note_missing(execution.session(), fact.owner, lost[fact.owner])
            lost = {fact.owner: fact.file for fact in facts if isinstance(fact, Gone) and fact.present}
            tables = sorted({fact.owner for fact in facts if isinstance(fact, Gone)})
        else:
            raise StoreUnavailable(f"{tables[0].name} changes faster than it can be read")
        await wait_for_missing(execution, self.missing)

    async def _note_missing(self, session: Session, owner: Owner, file: str) -> None:
        if await has_name(session, owner.entity):
            name = f"{owner.name} (entity {owner.entity})"
            self.missing[name] = describe_missing(session, owner.entity, file)
            if len(self.unread) < MAX_UNREAD:
                self.unread.setdefault(name, self.missing[name])

    async def among(self, keys: Iterable[str]) -> Mapping[str, set[str]]:
        """Those of these files that are shared, and the names of who leads to each."""
        wanted, found = frozenset(keys), dict[str, set[str]]()
        for key, name in await self.jobs.run(self.rows.mapPartitions(partial(_among, wanted)).collect):
            found.setdefault(key, set()).add(name)
        return found

    def forget(self) -> None:
        """Lets executors forget them."""
        for part in self._parts:
            part.unpersist()

    def _read(self, tables: Sequence[Owner]) -> "RDD[Row]":
        walked = _slices(self.spark, tables).mapPartitions(partial(read_others, self.job))
        manifests = self._kept(walked).filter(_is_manifest)
        grouped = manifests.groupByKey(max(_at_once(self.spark), manifests.getNumPartitions()), part_of)
        named = self._kept(grouped.mapPartitions(partial(read_manifests_of_others, self.job)))
        return walked.union(named)

    def _kept(self, rows: "RDD[Row]") -> "RDD[Row]":
        self._parts.append(rows.persist(StorageLevel.DISK_ONLY))
        return rows


class SparkDeletion(Deletion):
    """Deletes what nobody shares: data files by executors, the rest, of which the driver knows the names, by itself."""

    def __init__(self, execution: Execution, locations: Sequence[str], shared: SharedFiles) -> None:
        progress = Progress.parse(execution.checkpoint)
        unread = {**progress.unread, **shared.unread}
        super().__init__(execution, locations, replace(progress, shared=progress.shared or shared.any, unread=unread))
        self._shared = shared

    async def _unshared(self, files: Sequence[ReachedFile]) -> Sequence[ReachedFile]:
        if not files or not self._shared.any:
            return files
        left: list[ReachedFile] = []
        for batch in batches(files, NAMES_AT_ONCE):
            keys = [self._key(file) for file in batch]
            found = await self._shared.among(key for key in keys if key)
            left += [file for file, key in zip(batch, keys, strict=True) if key not in found]
            self._keep(len(found), Counter(name for names in found.values() for name in names))
        return left

    async def _data(self, inventory: Inventory) -> None:
        shared = self._shared
        async with aclosing(inventory.chunks()) as chunks:
            manifests = [manifest.location async for chunk in chunks for manifest in chunk.manifests]
        if not manifests:
            return
        named = _slices(shared.spark, manifests).mapPartitions(partial(read_manifests, shared.job))
        named.persist(StorageLevel.DISK_ONLY)
        try:
            facts = await shared.jobs.run(named.mapPartitions(_told).collect)
            _require_undamaged(facts)
            if self.progress.parts == 0:  # nobody counted them yet
                outside = self.progress.outside + sum(fact.files for fact in facts if isinstance(fact, Outside))
                parts = min(MAX_PARTS, max(_at_once(shared.spark), len(manifests) // MANIFESTS_IN_A_PART))
                await self._save(replace(self.progress, outside=outside, parts=parts))
            files = named.filter(_is_file)
            if shared.any:
                files = files.union(shared.rows)
            await self._delete_parts(files.groupByKey(self.progress.parts, part_of))
            self.progress = self.progress.without(sorted(fact.manifest for fact in facts if isinstance(fact, Missing)))
        finally:
            named.unpersist()

    async def _delete_parts(self, files: "RDD[Facts]") -> None:
        """Deletes part after part, as many beside each other as executors have room for. Which file is in which part is
        the same for every lease."""
        shared, parts = self._shared, self.progress.parts
        while self.progress.done < parts:
            now = range(self.progress.done, min(parts, self.progress.done + _at_once(shared.spark)))
            action = partial(shared.spark.runJob, files, partial(delete_part, shared.job), [*now])
            done = Deleted.sum(await shared.jobs.run(action))
            self._keep(done.kept, done.kept_for)
            progress = self.progress
            progress = progress.with_unaddressable(done.unaddressable, done.unaddressable_examples)
            self.progress = replace(
                progress, done=now.stop, files=progress.files + done.files, bytes=progress.bytes + done.bytes
            )
            await self._execution.progress(self.progress.to_json(), done.files)

    def _key(self, file: ReachedFile) -> str:
        location = self.own(file.location)
        return "" if location is None else location.normal

    def _keep(self, files: int, names: Mapping[str, int]) -> None:
        kept_for = dict(self.progress.kept_for)
        for name, count in sorted(names.items()):
            told = name if name in kept_for or len(kept_for) < MAX_KEEPERS else OTHERS
            kept_for[told] = kept_for.get(told, 0) + count
        self.progress = replace(self.progress, kept=self.progress.kept + files, kept_for=kept_for)


def _at_once(spark: SparkContext) -> int:
    """Tasks that are handed to Spark together: enough for each core to have a next one."""
    return 2 * spark.defaultParallelism


def _slices(spark: SparkContext, items: Sequence[T]) -> "RDD[T]":
    """Items dealt out: as many slices as are worth it."""
    return spark.parallelize(items, max(1, min(len(items), max(_at_once(spark), len(items) // ITEMS_IN_A_SLICE))))


def _require_undamaged(facts: Iterable[Fact]) -> None:
    for fact in facts:
        if isinstance(fact, Damaged):
            raise TaskFailed(fact.why)


def _told(rows: Iterable[Row]) -> Iterator[Fact]:
    """What the driver is to know of some rows: what they tell it, and whether there are files of others among them."""
    outside, shares, told = 0, False, set[Fact]()
    for _, fact in rows:
        if isinstance(fact, Outside):
            outside += fact.files
        elif isinstance(fact, Damaged | Gone | Missing | Unmoved):
            told.add(fact)
        elif isinstance(fact, Shared) and not shares:
            shares = True
            told.add(fact)
    yield from told
    if outside:
        yield Outside(outside)


def _among(wanted: frozenset[str], rows: Iterable[Row]) -> Iterator[tuple[str, str]]:
    """Those of these files that are in the rows, each with the names of who leads to it."""
    return iter({(key, fact.name) for key, fact in rows if isinstance(fact, Shared) and key in wanted})


def _is_manifest(row: Row) -> bool:
    return isinstance(row[1], Manifest)


def _is_shared(row: Row) -> bool:
    return isinstance(row[1], Shared)


def _is_file(row: Row) -> bool:
    return isinstance(row[1], Own)
