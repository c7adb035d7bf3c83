"""The anti-join on Spark: purges large tables, and tables with files to which other tables may refer
(docs/design/purge.md#rule-19).

The driver holds the task's lease and executes the purge as any worker does. Executors read which files the other tables
of the catalog refer to, and which files the purged table refers to. They join both, and delete the purged table's data
files that no other table refers to, a bounded number of parts at once. The driver deletes the other files, such as
manifests. The driver's memory holds the names of tables and the locations of the purged table's manifests, and no names
of data files.
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
    DamagedFile,
    Fact,
    Facts,
    Manifest,
    MissingFile,
    MissingManifest,
    OutsideFiles,
    Owner,
    OwnFile,
    PurgeJob,
    Row,
    SharedFile,
    UnchangedTable,
    add_counts,
    delete_part,
    part_of,
    read_manifests,
    read_manifests_of_others,
    read_others,
    sum_counts,
)
from reconciler.spark_jobs import SparkJobs
from storage_backends import StoreUnavailable

T = TypeVar("T")

ITEMS_IN_A_SLICE = 50
"""How many tables or manifests one Spark task reads, if there are enough of them."""
MANIFESTS_IN_A_PART = 20
"""How many manifests of the table have their data files in one part, on average."""
MAX_PARTS = 4_096
NAMES_AT_ONCE = 10_000
"""How many files other than data files are compared with other tables' files by one Spark job."""
MAX_KEEPERS = 20
"""How many other tables the result of a purge names with the number of files that are not deleted because of them;
further tables count under `OTHERS`."""
OTHERS = "others"


@dataclass(frozen=True, slots=True)
class SparkAntiJoin:
    """Opens the deletion of a dropped table's files. The executors of a Spark application find the files to which other
    tables of the catalog `config` refer, by an anti-join; such files are not deleted."""

    spark: SparkContext
    config: CatalogConfig

    @asynccontextmanager
    async def deletion(self, execution: Execution, tombstone: Tombstone) -> AsyncIterator[Deletion]:
        """Reads which files all other tables of the catalog refer to, and opens a deletion of the dropped table's
        files, which leaves out the files that another table refers to. `execution` must hold the lease of the purge's
        task. On exit, executors drop the rows that they have read. Raises `TaskFailed` for a table of another format,
        or one that follows another catalog's, at an overlapping location, and `StoreError`; unless the settings trust
        locations, also `NotYet` if a missing file of another table may still be restored, and `TaskFailed` for a table
        with a name and no pointer."""
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
            shared.unpersist()


class SharedFiles:
    """The files at the purged table's locations that other tables refer to, persisted on executors. `any` is true if
    there is one."""

    def __init__(self, spark: SparkContext, jobs: SparkJobs, job: PurgeJob) -> None:
        self.spark = spark
        self.jobs = jobs
        self.job = job
        self.any = False
        self.missing: dict[str, str] = {}
        """Descriptions of missing files to which other tables' present states refer, one for a table, by the text "NAME
        (entity ENTITY)". Tables without a name in HEAD are left out."""
        self.unread: dict[str, str] = {}
        """Why a file of another table could not be read, for at most `MAX_UNREAD` tables: a damaged file by the table's
        name, a missing one by the key that `missing` has for the table."""
        self._parts: list[RDD[Row]] = []

    @property
    def rows(self) -> "RDD[Row]":
        """The rows about files that other tables refer to: a file occurs at least once for every such table, and more
        often if that table names it in more than one place."""
        return self.spark.union([part.filter(_is_shared) for part in self._parts])

    async def read(self, execution: Execution, tables: Sequence[Owner]) -> None:
        """Reads which files these tables refer to, adds them to `rows`, and sets `any`. A table with a missing file is
        read again if its pointer has changed since, in at most `MAX_ROUNDS` rounds with the first. Files that cannot be
        read are noted in `unread`. Unless the settings trust locations, missing files of a table's present state are
        noted in `missing` and in `unread`.

        Raises `NotYet` if a file of a table's present state is missing and may still be restored, and `TaskFailed` for
        a table that has a name and no pointer, both unless the settings trust locations; and `StoreUnavailable` if a
        table with a missing file changes during each reading."""
        lost: dict[Owner, str] = {}
        trusts = execution.session().settings.purge.trust_locations
        for _ in range(MAX_ROUNDS):
            if not tables:
                break
            rows = self._read(tables)
            facts = await self.jobs.run(rows.mapPartitions(_for_driver).collect)
            for fact in facts:
                if isinstance(fact, DamagedFile) and len(self.unread) < MAX_UNREAD:
                    self.unread.setdefault(fact.name, fact.why)
            self.any = self.any or any(isinstance(fact, SharedFile) for fact in facts)
            for fact in facts:
                if isinstance(fact, UnchangedTable) and fact.owner in lost and not trusts:
                    await self._note_missing(execution.session(), fact.owner, lost[fact.owner])
            lost = {fact.owner: fact.file for fact in facts if isinstance(fact, MissingFile) and fact.present}
            tables = sorted({fact.owner for fact in facts if isinstance(fact, MissingFile)})
        if tables:
            raise StoreUnavailable(
                f"the table {tables[0].name} changed during each of {MAX_ROUNDS} readings of its files, in all of "
                "which a file did not exist, so it is not known which files of the dropped table it uses: this attempt "
                "deleted nothing, and the purge is retried as long as the task has attempts left"
            )
        await wait_for_missing(execution, self.missing)

    async def _note_missing(self, session: Session, owner: Owner, file: str) -> None:
        """Notes in `missing`, and in `unread` up to `MAX_UNREAD` tables, that a table refers to a missing file, unless
        the table has no name in HEAD. Raises `TaskFailed` if the file is the table's pointer."""
        if await has_name(session, owner.entity):
            name = f"{owner.name} (entity {owner.entity})"
            self.missing[name] = describe_missing(session, owner.entity, file)
            if len(self.unread) < MAX_UNREAD:
                self.unread.setdefault(name, self.missing[name])

    async def find(self, keys: Iterable[str]) -> Mapping[str, set[str]]:
        """Returns the names of the other tables that refer to files, by the file's key; a key is the normal form of a
        location. A file to which no other table refers is absent. Runs a Spark job, and raises the errors of Spark."""
        searched, found = frozenset(keys), dict[str, set[str]]()
        for key, name in await self.jobs.run(self.rows.mapPartitions(partial(_shared_among, searched)).collect):
            found.setdefault(key, set()).add(name)
        return found

    def unpersist(self) -> None:
        """Allows executors to drop the rows that they keep."""
        for part in self._parts:
            part.unpersist()

    def _read(self, tables: Sequence[Owner]) -> "RDD[Row]":
        """Returns the rows about these tables' files and manifests, and about the files in the manifests. Executors
        compute them, and persist them, in the first Spark job that uses them."""
        rows_of_tables = _slices(self.spark, tables).mapPartitions(partial(read_others, self.job))
        manifests = self._persist(rows_of_tables).filter(_is_manifest)
        # Tables may share manifests: grouping lets one be read once.
        grouped = manifests.groupByKey(max(_parallel_tasks(self.spark), manifests.getNumPartitions()), part_of)
        rows_of_manifests = self._persist(grouped.mapPartitions(partial(read_manifests_of_others, self.job)))
        return rows_of_tables.union(rows_of_manifests)

    def _persist(self, rows: "RDD[Row]") -> "RDD[Row]":
        """Has executors store these rows on their disks once they are computed, until `unpersist`, and returns them."""
        self._parts.append(rows.persist(StorageLevel.DISK_ONLY))
        return rows


class SparkDeletion(Deletion):
    """Deletes the dropped table's files that no other table refers to: data files and delete files on executors, other
    files (manifests, manifest lists, metadata files and statistics) in the driver."""

    def __init__(self, execution: Execution, locations: Sequence[str], shared: SharedFiles) -> None:
        progress = Progress.parse(execution.checkpoint)
        unread = {**progress.unread, **shared.unread}
        super().__init__(execution, locations, replace(progress, shared=progress.shared or shared.any, unread=unread))
        self._shared = shared

    async def _unshared(self, files: Sequence[ReachedFile]) -> Sequence[ReachedFile]:
        """Returns these files without the ones to which another table refers, which it counts as not deleted; all of
        them, without a Spark job, if no file is shared. Files outside of the table's locations, or in a catalog's own
        state, are left out of that search, and are in the result: the caller deletes none of them."""
        if not files or not self._shared.any:
            return files
        left: list[ReachedFile] = []
        for batch in batches(files, NAMES_AT_ONCE):
            keys = [self._key(file) for file in batch]
            found = await self._shared.find(key for key in keys if key)
            left += [file for file, key in zip(batch, keys, strict=True) if key not in found]
            self._keep(len(found), Counter(name for names in found.values() for name in names))
        return left

    async def _data(self, inventory: Inventory) -> None:
        """Deletes the data files and delete files in the manifests of the inventory on executors, without the ones to
        which other tables refer, and adds missing manifests to the progress. The first lease chooses the number of
        parts and saves it in the checkpoint. Raises `TaskFailed`, before it deletes anything, if a manifest can't be
        read."""
        shared = self._shared
        async with aclosing(inventory.chunks()) as chunks:
            manifests = [manifest.location async for chunk in chunks for manifest in chunk.manifests]
        if not manifests:
            return
        rows = _slices(shared.spark, manifests).mapPartitions(partial(read_manifests, shared.job))
        rows.persist(StorageLevel.DISK_ONLY)
        try:
            facts = await shared.jobs.run(rows.mapPartitions(_for_driver).collect)
            _require_readable(facts)
            if self.progress.parts == 0:  # no lease before chose the number of parts, which must not change
                outside = self.progress.outside + sum(fact.files for fact in facts if isinstance(fact, OutsideFiles))
                parts = min(MAX_PARTS, max(_parallel_tasks(shared.spark), len(manifests) // MANIFESTS_IN_A_PART))
                await self._save(replace(self.progress, outside=outside, parts=parts))
            files = rows.filter(_is_file)
            if shared.any:
                files = files.union(shared.rows)
            await self._delete_parts(files.groupByKey(self.progress.parts, part_of))
            self.progress = self.progress.with_missing(
                sorted(fact.manifest for fact in facts if isinstance(fact, MissingManifest))
            )
        finally:
            rows.unpersist()

    async def _delete_parts(self, files: "RDD[Facts]") -> None:
        """Deletes the files to which no other table refers, in the parts that are not done yet, and counts the others
        as not deleted. One Spark job works on two parts for every core of the executors, and the checkpoint is saved
        after it. A file is in the same part under every lease of the task."""
        shared, parts = self._shared, self.progress.parts
        while self.progress.done < parts:
            now = range(self.progress.done, min(parts, self.progress.done + _parallel_tasks(shared.spark)))
            action = partial(shared.spark.runJob, files, partial(delete_part, shared.job), [*now])
            done = sum_counts(await shared.jobs.run(action))
            self._keep(done.kept, done.kept_for)
            self.progress = replace(add_counts(self.progress, done), done=now.stop)
            await self._execution.progress(self.progress.to_json(), done.files)

    def _key(self, file: ReachedFile) -> str:
        """Returns the normal form of the file's location; empty if the file is outside of the table's locations, or
        in a catalog's own state."""
        location = self.own(file.location)
        return "" if location is None else location.normal

    def _keep(self, files: int, names: Mapping[str, int]) -> None:
        """Counts files that are not deleted since other tables refer to them: in all (`files`), and by the name of such
        a table (`names`); under `OTHERS` for more than `MAX_KEEPERS` tables."""
        kept_for = dict(self.progress.kept_for)
        for name, count in sorted(names.items()):
            keeper = name if name in kept_for or len(kept_for) < MAX_KEEPERS else OTHERS
            kept_for[keeper] = kept_for.get(keeper, 0) + count
        self.progress = replace(self.progress, kept=self.progress.kept + files, kept_for=kept_for)


def _parallel_tasks(spark: SparkContext) -> int:
    """Returns how many tasks a Spark job should have at least: two for every core of the executors, so that no core
    waits for the next task."""
    return 2 * spark.defaultParallelism


def _slices(spark: SparkContext, items: Sequence[T]) -> "RDD[T]":
    """Returns an RDD of these items: in slices of about `ITEMS_IN_A_SLICE` items if there are many, or else in
    `_parallel_tasks` smaller ones, so that no core is idle. No slice is empty unless there are no items."""
    slices = min(len(items), max(_parallel_tasks(spark), len(items) // ITEMS_IN_A_SLICE))
    return spark.parallelize(items, max(1, slices))


def _require_readable(facts: Iterable[Fact]) -> None:
    """Raises `TaskFailed`, with the reason, if one of the facts is that a file can't be read."""
    for fact in facts:
        if isinstance(fact, DamagedFile):
            raise TaskFailed(fact.why)


def _for_driver(rows: Iterable[Row]) -> Iterator[Fact]:
    """Iterates over those facts in some rows that the driver needs: the facts about what can't be read, is missing or
    has not changed, each once; one `SharedFile` if there is any; and the sum of all `OutsideFiles`."""
    outside, shares, facts = 0, False, set[Fact]()
    for _, fact in rows:
        if isinstance(fact, OutsideFiles):
            outside += fact.files
        elif isinstance(fact, DamagedFile | MissingFile | MissingManifest | UnchangedTable):
            facts.add(fact)
        elif isinstance(fact, SharedFile) and not shares:
            shares = True
            facts.add(fact)
    yield from facts
    if outside:
        yield OutsideFiles(outside)


def _shared_among(keys: frozenset[str], rows: Iterable[Row]) -> Iterator[tuple[str, str]]:
    """Iterates over pairs of a key in `keys` (normal forms of locations) and the name of another table that refers to
    the file at that location, by these rows. No pair occurs twice."""
    return iter({(key, fact.name) for key, fact in rows if isinstance(fact, SharedFile) and key in keys})


def _is_manifest(row: Row) -> bool:
    """Whether the row's fact is that another table refers to a manifest."""
    return isinstance(row[1], Manifest)


def _is_shared(row: Row) -> bool:
    """Whether the row's fact is that another table refers to the file."""
    return isinstance(row[1], SharedFile)


def _is_file(row: Row) -> bool:
    """Whether the row's fact is that the purged table refers to the file."""
    return isinstance(row[1], OwnFile)
