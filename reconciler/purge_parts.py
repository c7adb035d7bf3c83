"""What executors do of a purge (docs/design/purge.md#rule-19): they read what tables lead to, and delete.

A row is the normal form of a file at the purged table's locations, by which rows are joined, and what is known of it. A
row without a file tells the driver something.
"""

import asyncio
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
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
"""What reading one file may take."""


@dataclass(frozen=True, slots=True)
class PurgeJob:
    """The purge of one table, as executors are told of it."""

    config: CatalogConfig
    task: str
    lease: str
    locations: tuple[str, ...]


class Owner(NamedTuple):
    """Another table, and the sequence number that its pointer had when it was read: 0 before that, and `NO_POINTER`
    where it had none."""

    name: str
    entity: str
    sequence: int


class Own(NamedTuple):
    """A file that the purged table leads to."""

    location: str
    size: int


class Shared(NamedTuple):
    """A file that another table leads to."""

    name: str


class Manifest(NamedTuple):
    """A manifest that another table leads to: its location stands for the file. `present` if the table's present state
    does, or the one that an undecided transaction would give it."""

    owner: Owner
    present: bool = True


class Outside(NamedTuple):
    """So many files that lie elsewhere."""

    files: int


class Gone(NamedTuple):
    """A file of another table was not there any more. `present` as that of `Manifest`: of what was current once, files
    are gone whose snapshots have expired."""

    owner: Owner
    file: str
    present: bool


class Unmoved(NamedTuple):
    """Another table has the state still in which it was read."""

    owner: Owner


class Missing(NamedTuple):
    """A manifest of the purged table was not there any more."""

    manifest: str


class Damaged(NamedTuple):
    """A file can't be read: of the purged table, or of another, whose name is given."""

    why: str
    name: str = ""


Fact = Own | Shared | Manifest | Outside | Gone | Unmoved | Missing | Damaged
Row = tuple[str, Fact]
Facts = tuple[str, Iterable[Fact]]


@dataclass(frozen=True, slots=True)
class Deleted:
    """What came of some files. `kept_for` counts them by the names of those who lead to them, too."""

    files: int = 0
    bytes: int = 0
    kept: int = 0
    kept_for: Mapping[str, int] = field(default_factory=dict)
    unaddressable: int = 0
    unaddressable_examples: tuple[str, ...] = ()

    @classmethod
    def sum(cls, parts: Iterable["Deleted"]) -> "Deleted":
        """All of them together."""
        progress, kept, kept_for = Progress(), 0, Counter[str]()
        for part in parts:
            files, size = progress.files + part.files, progress.bytes + part.bytes
            progress = replace(progress, files=files, bytes=size)
            progress = progress.with_unaddressable(part.unaddressable, part.unaddressable_examples)
            kept += part.kept
            kept_for.update(part.kept_for)
        return cls.of(progress, kept, kept_for)

    @classmethod
    def of(cls, progress: Progress, kept: int, kept_for: Mapping[str, int]) -> "Deleted":
        """Counts of a removal, and of the files that stay for others."""
        examples = progress.unaddressable_examples
        return cls(progress.files, progress.bytes, kept, kept_for, progress.unaddressable, examples)


class Reading:
    """Sessions that read, with a time for each."""

    def __init__(self, catalog: Catalog, task: str) -> None:
        self._catalog = catalog
        self._task = task

    def session(self) -> Session:
        """See `Sessions.session`."""
        return task_session(self._catalog, self._task, self._catalog.runtime.now_ms() + CALL_MS)


def part_of(key: str) -> int:
    """A number by which files are dealt out to parts, which is the same wherever and whenever it is asked for."""
    return zlib.crc32(key.encode())


def read_others(job: PurgeJob, tables: Iterable[Owner]) -> Iterator[Row]:
    """What other tables lead to: files, and manifests that are still to be read. A table whose pointer still has the
    sequence number that is told of it was read before, and leads to nothing else: that is told."""

    async def read(catalog: Catalog, rest: Iterator[Owner]) -> AsyncGenerator[Row, None]:
        reading = Reading(catalog, job.task)
        own = _keys(job, reading)
        for table in rest:
            state = reading.session().state
            pointer = await state.pointer(table.entity)
            owner = table._replace(sequence=NO_POINTER if pointer is None else pointer.sequence)
            if owner == table:
                yield "", Unmoved(table)
                continue
            if pointer is None:
                yield "", Gone(owner, state.paths.pointer(table.entity), present=True)
                continue
            for each in _states(pointer):
                async with aclosing(_led_to(reading, own, owner, each)) as rows:
                    async for row in rows:
                        yield row

    return _driven(job.config, tables, read)


async def _led_to(
    reading: Reading, own: Callable[[str], str], owner: Owner, pointer: Pointer
) -> AsyncGenerator[Row, None]:
    """What a table leads to by one of its states, and by all before it. What can't be read is reported beside the
    rest."""
    corrupt: list[Corruption] = []
    damage: list[str] = []
    try:
        reached = await reached_by(reading, pointer, corrupt)
    except TaskFailed as failed:  # how the log goes on is unknown: the state itself is read nevertheless
        damage.append(str(failed))
        reached = await named_by(reading, [pointer.metadata.location], corrupt)
    for file in (*reached.files, *reached.lists, *reached.statistics):
        if key := own(file):
            yield key, Shared(owner.name)
    now = await named_by(reading, [pointer.metadata.location], corrupt)
    before = Reached(
        lists={each: None for each in reached.lists if each not in now.lists},
        direct={each: None for each in reached.direct if each not in now.direct},
    )
    for file in now.gone:
        yield "", Gone(owner, file, present=True)
    for part, present in ((now, True), (before, False)):
        gone: list[str] = []
        async with aclosing(manifests_of(reading, part, gone=gone, corrupt=corrupt)) as manifests:
            async for manifest in manifests:
                yield manifest.location, Manifest(owner, present)
        for file in gone:
            yield "", Gone(owner, file, present)
    for why in dict.fromkeys((*damage, *(each.reason for each in corrupt))):
        yield "", Damaged(why, owner.name)


def read_manifests_of_others(job: PurgeJob, manifests: Iterable[Facts]) -> Iterator[Row]:
    """The files that these manifests lead to, and the manifests themselves, for all tables that lead to them."""

    async def read(catalog: Catalog, rest: Iterator[Facts]) -> AsyncGenerator[Row, None]:
        reading = Reading(catalog, job.task)
        own = _keys(job, reading)
        for location, facts in rest:
            told, gone = {fact for fact in facts if isinstance(fact, Manifest)}, list[str]()
            owners = {fact.owner for fact in told}
            try:
                async for key, _ in _files_in(reading, own, location, gone):
                    for owner in owners:
                        yield key, Shared(owner.name)
            except TaskFailed as failed:
                yield "", Damaged(str(failed), min(owners).name)
            for owner in owners:
                if key := own(location):
                    yield key, Shared(owner.name)
                if gone:
                    yield "", Gone(owner, location, present=Manifest(owner, present=True) in told)

    return _driven(job.config, manifests, read)


def read_manifests(job: PurgeJob, manifests: Iterable[str]) -> Iterator[Row]:
    """The files that manifests of the purged table lead to."""

    async def read(catalog: Catalog, rest: Iterator[str]) -> AsyncGenerator[Row, None]:
        reading = Reading(catalog, job.task)
        own = _keys(job, reading)
        for location in rest:
            outside, gone = 0, list[str]()
            try:
                async for key, file in _files_in(reading, own, location, gone):
                    if key:
                        yield key, Own(file.location, file.size)
                    else:
                        outside += 1
            except TaskFailed as failed:
                yield "", Damaged(str(failed))
            if outside:
                yield "", Outside(outside)
            if gone:
                yield "", Missing(location)

    return _driven(job.config, manifests, read)


def delete_part(job: PurgeJob, files: Iterable[Facts]) -> Iterator[Deleted]:
    """Deletes those of these files that the purged table leads to and nobody else does, for as long as the driver's
    lease holds (docs/design/purge.md#rule-21). Raises `LeaseLost`, and `StoreError`."""

    async def delete(catalog: Catalog, rest: Iterator[Facts]) -> AsyncGenerator[Deleted, None]:
        lease = FollowedLease(catalog, job.task, job.lease)
        removal = Removal(lease, job.locations, Progress())
        kept, kept_for = 0, Counter[str]()
        while batch := await asyncio.to_thread(_judged, rest):
            await lease.keep_up()
            await removal.delete(ReachedFile(*own) for own, others in batch if not others)
            kept += sum(1 for _, others in batch if others)
            kept_for.update(name for _, others in batch for name in others)
        yield Deleted.of(removal.progress, kept, kept_for)

    return _driven(job.config, files, delete)


def _judged(files: Iterator[Facts]) -> Sequence[tuple[Own, Sequence[str]]]:
    """The next files of the purged table, each with the names of those who lead to it, too."""
    found: list[tuple[Own, Sequence[str]]] = []
    for _, facts in files:
        own: dict[str, Own] = {}  # several objects may have one normal form
        others: set[str] = set()
        for fact in facts:
            if isinstance(fact, Own):
                own[fact.location] = fact
            elif isinstance(fact, Shared):
                others.add(fact.name)
        found += ((each, sorted(others)) for each in own.values())
        if len(found) >= AT_ONCE:
            break
    return found


def _states(pointer: Pointer) -> list[Pointer]:
    """A pointer as it is, and as it will be if the transaction commits that has laid an intent there."""
    return [pointer] if pointer.intent is None else [pointer, pointer.resolved(committed=True)]


def _keys(job: PurgeJob, reading: Reading) -> Callable[[str], str]:
    """By which key files are joined that lie at the purged table's locations; none for others."""
    removal = Removal(reading, job.locations, Progress())

    def key(file: str) -> str:
        location = removal.own(file)
        return "" if location is None else location.normal

    return key


async def _files_in(
    reading: Reading, own: Callable[[str], str], manifest: str, gone: list[str]
) -> AsyncGenerator[tuple[str, ReachedFile], None]:
    async with aclosing(entries_of(reading, manifest, gone)) as blocks:
        async for entries in blocks:
            for file in entries:
                yield own(file.location), file


def _driven(
    config: CatalogConfig, items: Iterable[A], make: Callable[[Catalog, Iterator[A]], AsyncGenerator[B, None]]
) -> Iterator[B]:
    """What is made of items with a catalog that is opened here, as Spark takes it: so many at a time. For nothing, none
    is opened."""
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

        async def some() -> list[B]:
            found: list[B] = []
            async for item in results:
                found.append(item)
                if len(found) == AT_ONCE:
                    break
            return found

        try:
            while found := runner.run(some()):
                yield from found
        finally:
            runner.run(_closed(results))


async def _closed(results: AsyncGenerator[B, None]) -> None:
    await results.aclose()
