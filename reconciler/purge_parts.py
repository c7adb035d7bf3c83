"""The work of executors in a purge (docs/design/purge.md#rule-19): they read which files tables refer to, and delete
files.

A row has a key, the normal form of a file at the purged table's locations, by which rows are joined, and a fact about
the file. The key of a `Manifest` is the location of the manifest as another table has it, wherever that is. A row with
an empty key has a fact for the driver.
"""

import asyncio
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.purge_progress import Progress
from arco_catalog.tasks.execution import TaskFailed, task_session
from arco_catalog.tasks.followed_lease import FollowedLease
from arco_catalog.upkeep.purge.corruption import Corruption
from arco_catalog.upkeep.purge.reach import Reached, ReachedFile, entries_of, manifests_of, named_by, reached_by
from arco_catalog.upkeep.purge.removal import AT_ONCE, Removal
from reconciler.catalog_config import CatalogConfig

A = TypeVar("A")
B = TypeVar("B")

NO_POINTER = -1
CALL_MS = 120_000
"""How long the read of one file may take."""


@dataclass(frozen=True, slots=True)
class PurgeJob:
    """The purge of one table, as executors receive it: the catalog's configuration, the ids of the task and of the
    driver's lease, and the table's locations in normal form."""

    config: CatalogConfig
    task: str
    lease: str
    locations: tuple[str, ...]


class Owner(NamedTuple):
    """A table other than the purged one, which may own files at the purged table's locations. `sequence` is the
    sequence number of its pointer when the table was read: 0 if it was not read yet, `NO_POINTER` if it had no
    pointer."""

    name: str
    entity: str
    sequence: int


class OwnFile(NamedTuple):
    """A fact in a row of a purge: the purged table refers to this file."""

    location: str
    size: int


class SharedFile(NamedTuple):
    """A fact in a row of a purge: another table, called `name`, refers to the file."""

    name: str


class Manifest(NamedTuple):
    """A fact in a row of a purge: another table refers to the manifest at the location in the row's key. `present` is
    true if the fact is about the table's present state, or the state that an undecided transaction would give the
    table; false if it is about a former state. A manifest of both has a fact of each kind."""

    owner: Owner
    present: bool = True


class OutsideFiles(NamedTuple):
    """A fact for the driver of a purge: one manifest of the dropped table refers to so many files outside of the
    table's locations, which the purge does not delete."""

    files: int


class MissingFile(NamedTuple):
    """A fact for the driver of a purge: a manifest, manifest list, metadata file or pointer of another table is
    missing. `present` is true if the table's present state refers to it, or the state that an undecided transaction
    would give the table. Files of former states may be missing, since their snapshots have expired."""

    owner: Owner
    file: str
    present: bool


class UnchangedTable(NamedTuple):
    """A fact for the driver of a purge: the pointer of another table is the one that the previous round of the purge
    found when it read the table, or is still missing. So a file that was missing in the table's present state then
    (`MissingFile.present`) will not appear."""

    owner: Owner


class MissingManifest(NamedTuple):
    """A fact for the driver of a purge: a manifest of the dropped table is missing."""

    manifest: str


class DamagedFile(NamedTuple):
    """A fact for the driver of a purge: a manifest, manifest list or metadata file, or the record that names the one
    before, cannot be read, for the reason `why`. `name` is the name of a table that refers to it, empty for the dropped
    table."""

    why: str
    name: str = ""


Fact = OwnFile | SharedFile | Manifest | OutsideFiles | MissingFile | UnchangedTable | MissingManifest | DamagedFile
Row = tuple[str, Fact]
Facts = tuple[str, Iterable[Fact]]


class Reading:
    """Opens sessions in which an executor of a purge reads files of tables: a new session for every file, with the
    deadline `CALL_MS`."""

    def __init__(self, catalog: Catalog, task: str) -> None:
        self._catalog = catalog
        self._task = task

    def session(self) -> Session:
        """Returns a new session, whose time of `CALL_MS` starts now."""
        return task_session(self._catalog, self._task, self._catalog.runtime.now_ms() + CALL_MS)


def part_of(key: str) -> int:
    """Returns the CRC-32 of a file's key; Spark takes the remainder by the number of parts as the number of the file's
    part. It is the same in every process, unlike Python's `hash`."""
    return zlib.crc32(key.encode())


def read_others(job: PurgeJob, tables: Iterable[Owner]) -> Iterator[Row]:
    """Yields a row for every manifest that these other tables refer to, also in the state that an undecided transaction
    would give a table, for every metadata file, manifest list and statistics file of theirs at the dropped table's
    locations, and, for the driver, for a missing pointer and every metadata file and manifest list that is missing or
    cannot be read; but a metadata file of a former state may be missing without a row. Manifests and the files in them
    are left to `read_manifests_of_others`, which finds out if one is missing or cannot be read. An `Owner` has
    the sequence number of the pointer when the table was read before: if the pointer still has it, the table is not
    read, and the only row about it is an `UnchangedTable`."""

    async def read(catalog: Catalog, rest: Iterator[Owner]) -> AsyncGenerator[Row, None]:
        reading = Reading(catalog, job.task)
        own = _keys(job, reading)
        for table in rest:
            state = reading.session().state
            pointer = await state.pointer(table.entity)
            owner = table._replace(sequence=NO_POINTER if pointer is None else pointer.sequence)
            if owner == table:
                yield "", UnchangedTable(table)
                continue
            if pointer is None:
                yield "", MissingFile(owner, state.paths.pointer(table.entity), present=True)
                continue
            for each in _states(pointer):
                async with aclosing(_rows_of(reading, own, owner, each)) as rows:
                    async for row in rows:
                        yield row

    return _run_with_catalog(job.config, tables, read)


async def _rows_of(
    reading: Reading, own: Callable[[str], str], owner: Owner, pointer: Pointer
) -> AsyncGenerator[Row, None]:
    """Yields rows for the metadata files, manifest lists, statistics files and manifests of another table, in the state
    of this pointer and in all states before that can be found; the files in manifests have none. `own` returns the key
    of a file, which is empty outside of the dropped table's locations; such files have no row, unless they are
    manifests. A metadata file or manifest list that is missing is a `MissingFile` row (a former metadata file has
    none), one that cannot be read a `DamagedFile` row; neither ends the reading."""
    corrupt: list[Corruption] = []
    damage: list[str] = []
    try:
        reached = await reached_by(reading, pointer, corrupt)
    except TaskFailed as failed:  # former states are unknown: the present one is read nevertheless
        damage.append(str(failed))
        reached = await named_by(reading, [pointer.metadata.location], corrupt)
    for file in (*reached.files, *reached.lists, *reached.statistics):
        if key := own(file):
            yield key, SharedFile(owner.name)
    now = await named_by(reading, [pointer.metadata.location], corrupt)
    before = Reached(
        lists={each: None for each in reached.lists if each not in now.lists},
        direct={each: None for each in reached.direct if each not in now.direct},
    )
    for file in now.gone:
        yield "", MissingFile(owner, file, present=True)
    for part, present in ((now, True), (before, False)):
        gone: list[str] = []
        async with aclosing(manifests_of(reading, part, gone=gone, corrupt=corrupt)) as manifests:
            async for manifest in manifests:
                yield manifest.location, Manifest(owner, present)
        for file in gone:
            yield "", MissingFile(owner, file, present)
    for why in dict.fromkeys((*damage, *(each.reason for each in corrupt))):
        yield "", DamagedFile(why, owner.name)


def read_manifests_of_others(job: PurgeJob, manifests: Iterable[Facts]) -> Iterator[Row]:
    """Yields a row for every file in these manifests that lies at the dropped table's locations, and for every
    manifest there, and this for every other table that refers to the manifest. `manifests` has pairs of a location and
    the facts about it, so that every manifest is read once. A missing manifest is a `MissingFile` row for every such
    table; one that cannot be read is a `DamagedFile` row for only one of them."""

    async def read(catalog: Catalog, rest: Iterator[Facts]) -> AsyncGenerator[Row, None]:
        reading = Reading(catalog, job.task)
        own = _keys(job, reading)
        for location, facts in rest:
            references, gone = {fact for fact in facts if isinstance(fact, Manifest)}, list[str]()
            owners = {fact.owner for fact in references}
            try:
                async for key, _ in _files_in(reading, own, location, gone):
                    for owner in owners if key else ():
                        yield key, SharedFile(owner.name)
            except TaskFailed as failed:
                yield "", DamagedFile(str(failed), min(owners).name)
            for owner in owners:
                if key := own(location):
                    yield key, SharedFile(owner.name)
                if gone:
                    yield "", MissingFile(owner, location, present=Manifest(owner, present=True) in references)

    return _run_with_catalog(job.config, manifests, read)


def read_manifests(job: PurgeJob, manifests: Iterable[str]) -> Iterator[Row]:
    """Iterates over a row for each file in these manifests of the purged table that lies at the table's locations, and
    over rows for the driver: how many files lie outside, which manifests are missing, and which cannot be read.
    `manifests` are locations."""

    async def read(catalog: Catalog, rest: Iterator[str]) -> AsyncGenerator[Row, None]:
        reading = Reading(catalog, job.task)
        own = _keys(job, reading)
        for location in rest:
            outside, gone = 0, list[str]()
            try:
                async for key, file in _files_in(reading, own, location, gone):
                    if key:
                        yield key, OwnFile(file.location, file.size)
                    else:
                        outside += 1
            except TaskFailed as failed:
                yield "", DamagedFile(str(failed))
            if outside:
                yield "", OutsideFiles(outside)
            if gone:
                yield "", MissingManifest(location)

    return _run_with_catalog(job.config, manifests, read)


def delete_part(job: PurgeJob, files: Iterable[Facts]) -> Iterator[Progress]:
    """Deletes the files that, by these facts, the dropped table and no other table refers to, for as long as the
    driver's lease holds (docs/design/purge.md#rule-21). Yields once, but nothing without facts: the counts of deleted
    files, and of files that are not deleted because of other tables. Raises `LeaseLost` when that lease is over, and
    `StoreError`."""

    async def delete(catalog: Catalog, rest: Iterator[Facts]) -> AsyncGenerator[Progress, None]:
        lease = FollowedLease(catalog, job.task, job.lease)
        removal = Removal(lease, job.locations, Progress())
        kept, kept_for = 0, Counter[str]()
        while batch := await asyncio.to_thread(_next_files, rest):
            await lease.keep_up()
            await removal.delete(ReachedFile(*own) for own, others in batch if not others)
            kept += sum(1 for _, others in batch if others)
            kept_for.update(name for _, others in batch for name in others)
        yield replace(removal.progress, kept=kept, kept_for=kept_for)

    return _run_with_catalog(job.config, files, delete)


def sum_counts(parts: Iterable[Progress]) -> Progress:
    """Returns the sums of what the deletions of parts have counted: the counts of `add_counts`, and files that are not
    deleted because of other tables, in all and by table."""
    total, kept_for = Progress(), Counter[str]()
    for part in parts:
        total = replace(add_counts(total, part), kept=total.kept + part.kept)
        kept_for.update(part.kept_for)
    return replace(total, kept_for=kept_for)


def add_counts(progress: Progress, part: Progress) -> Progress:
    """Returns a purge's progress with the counts of a part's deletion added: deleted files and bytes, files outside of
    the locations, and files that cannot be addressed. Files that are not deleted because of other tables are left
    out."""
    return replace(
        progress.with_unaddressable(part.unaddressable, part.unaddressable_examples),
        files=progress.files + part.files,
        bytes=progress.bytes + part.bytes,
        outside=progress.outside + part.outside,
    )


def _next_files(files: Iterator[Facts]) -> Sequence[tuple[OwnFile, Sequence[str]]]:
    """Returns the next files of the purged table, at least `AT_ONCE`, each with the names of the other tables that
    refer to it; fewer at the end of `files`, and empty after it. Passes over files of other tables alone."""
    found: list[tuple[OwnFile, Sequence[str]]] = []
    for _, facts in files:
        own: dict[str, OwnFile] = {}  # two objects may have one normal form
        others: set[str] = set()
        for fact in facts:
            if isinstance(fact, OwnFile):
                own[fact.location] = fact
            elif isinstance(fact, SharedFile):
                others.add(fact.name)
        found += ((each, sorted(others)) for each in own.values())
        if len(found) >= AT_ONCE:
            break
    return found


def _states(pointer: Pointer) -> list[Pointer]:
    """Returns a pointer, and, if it has an intent, also the pointer that it becomes if the intent's transaction
    commits."""
    return [pointer] if pointer.intent is None else [pointer, pointer.resolved(committed=True)]


def _keys(job: PurgeJob, reading: Reading) -> Callable[[str], str]:
    """Returns a function that maps a file's location to the key of its rows: the normal form of the location if it is
    inside one of the purged table's locations and in no catalog's own state, else an empty text."""
    removal = Removal(reading, job.locations, Progress())

    def key(file: str) -> str:
        location = removal.own(file)
        return "" if location is None else location.normal

    return key


async def _files_in(
    reading: Reading, own: Callable[[str], str], manifest: str, gone: list[str]
) -> AsyncGenerator[tuple[str, ReachedFile], None]:
    """Iterates over pairs of the key that `own` returns and the file, for every file in a manifest. A manifest that
    does not exist is added to `gone`. Raises `TaskFailed` if it can't be read."""
    async with aclosing(entries_of(reading, manifest, gone)) as blocks:
        async for entries in blocks:
            for file in entries:
                yield own(file.location), file


def _run_with_catalog(
    config: CatalogConfig, items: Iterable[A], make: Callable[[Catalog, Iterator[A]], AsyncGenerator[B, None]]
) -> Iterator[B]:
    """Iterates over the results of an asynchronous generator over items, which gets a catalog opened in this process.
    Spark takes a synchronous iterator: `AT_ONCE` results at a time are computed. Without items, no catalog is
    opened."""
    rest = iter(items)
    first = [*islice(rest, 1)]
    if not first:
        return

    async def opened() -> AsyncGenerator[B, None]:
        async with config.catalog() as catalog, aclosing(make(catalog, chain(first, rest))) as made:
            async for item in made:
                yield item

    with asyncio.Runner() as runner:
        results = opened()

        async def next_results() -> list[B]:
            found: list[B] = []
            async for item in results:
                found.append(item)
                if len(found) == AT_ONCE:
                    break
            return found

        try:
            while found := runner.run(next_results()):
                yield from found
        finally:
            runner.run(_close(results))


async def _close(results: AsyncGenerator[B, None]) -> None:
    """Closes the generator of results, so that it cleans up, and returns once it is closed."""
    # `Runner.run` takes a coroutine, which `aclose()` does not return.
    await results.aclose()
