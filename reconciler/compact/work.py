"""The work of executors in the job `compact`: they read objects of the store, a bounded number concurrently, and write
the rows made from them.

Each function takes plain values that the driver sends, opens the catalog in the executor's process, and returns what
the driver needs for a commit. An object that cannot be read is reported and left out; a store that does not respond
fails the part."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pyiceberg.manifest import DataFile

from arco_catalog.iceberg.errors import InternalError, NotFound, Refusal
from arco_catalog.iceberg.json import MalformedJson
from arco_catalog.iceberg.parsing import UnreadableMetadata
from arco_catalog.planning.lineage_names import digest_in
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state import receipt
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.fields import parse_record
from arco_catalog.state.lineage import decode_event
from arco_catalog.state.task_log import read_task
from arco_catalog.state.watermarks import NAMESPACE
from reconciler.catalog_config import CatalogConfig
from reconciler.compact.commits import commit_row, needs_metadata
from reconciler.compact.events import event_rows
from reconciler.compact.health import SnapshotManifests, find_snapshot_manifests, health_row
from reconciler.compact.projection import project
from reconciler.compact.reports import report_row
from reconciler.compact.runs import event_rows as lineage_event_rows
from reconciler.compact.tasks import task_row
from reconciler.compact.values import text_of, texts_of
from reconciler.compact.version import Metadata, MissingMetadata, Version
from reconciler.system.definition import Row
from reconciler.system.tables import CATALOG_EVENTS, COMMITS, FILES_HEALTH, LINEAGE_EVENTS, REPORTS, TASKS
from reconciler.system.writing import Target, Writer

T = TypeVar("T")

AT_ONCE = 32
"""How many objects one executor reads concurrently."""


@dataclass(frozen=True, slots=True)
class PartResult:
    """What an executor returns for a part of the job `compact`: the files that it wrote, by table; how many objects it
    read; and a message for each object that could not be read."""

    files: Mapping[str, Sequence[DataFile]] = field(default_factory=dict)
    read: int = 0
    unreadable: Sequence[str] = ()


class _Part:
    """The state of a part of the job `compact` while an executor works on it: the session, the rows, and the counts of
    objects that were read or could not be."""

    def __init__(self, session: Session, targets: Sequence[Target]) -> None:
        self.session = session
        self.writer = Writer(targets, session.runtime.uuid)
        self.unreadable: list[str] = []
        self.read = 0

    async def each(self, items: Sequence[T], work: Callable[["_Part", T], Awaitable[None]]) -> None:
        """Calls `work` with this part and each item, `AT_ONCE` items concurrently. If `work` raises `InternalError` or
        `MalformedJson`, the message is added to `unreadable`; any other error is raised."""

        async def attempt(item: T) -> None:
            try:
                await work(self, item)
            except (InternalError, MalformedJson) as error:
                self.unreadable.append(str(error))

        for batch in batches(items, AT_ONCE):
            await gather(*(attempt(item) for item in batch))

    async def metadata(self, location: str, use: Callable[[Metadata], T]) -> T:
        """Calls `use` with the document of a metadata file, which is freed afterwards (`Files.extract`), or with the
        reason why there is none, and returns the result. A file that cannot be read, because it is corrupt, too large,
        or in no store of the catalog, is reported."""
        self.read += 1
        missing = MissingMetadata.UNREADABLE
        try:
            return await self.session.files.extract(location, use)
        except NotFound as error:
            if await self.session.files.exists(location):
                self.unreadable.append(error.message)  # the file is compressed, and corrupt
            else:
                missing = MissingMetadata.GONE
        except (Refusal, UnreadableMetadata) as error:
            self.unreadable.append(error.message)
        finally:
            self.session.files.forget(location)
        return use(missing)

    async def record(self, key: str) -> bytes | None:
        """Reads the object of the catalog at this key, and counts it as read. Returns its bytes; None if it does not
        exist."""
        self.read += 1
        found = await self.session.state.read(key)
        return None if found is None else found.body

    def finish(self) -> PartResult:
        """Writes the rows that are not written yet to files, and returns the result of the part."""
        return PartResult(self.writer.finish(), self.read, self.unreadable)


WriteDated = Callable[[CatalogConfig, Target, int, Sequence[str]], PartResult]
"""A function that reads the objects with these keys, and writes their rows with the number of their batch."""


def write_commits(
    own: frozenset[str], config: CatalogConfig, target: Target, batch: int, keys: Sequence[str]
) -> PartResult:
    """Reads the committed receipts with these keys, and the metadata files of the ones that added snapshots, and writes
    rows of `commits`. Receipts of entities in `own`, or in the namespace `system`, and receipts that were deleted since
    they were listed, are left out. Returns the new data files, the number of objects that were read, and a message
    for every one that could not be."""

    async def one(part: _Part, key: str) -> None:
        body = await part.record(key)
        if body is None:
            return  # it was deleted after it was listed
        fields = receipt.with_current_names(receipt.parse(body, key), receipt.COMMITTED)
        if fields.get("entity") in own or texts_of(fields.get("namespace"))[:1] == [NAMESPACE]:
            return
        location = text_of(fields.get("metadata_location"))
        if location is not None and needs_metadata(fields):
            row = await part.metadata(location, lambda metadata: commit_row(fields, metadata, batch))
        else:
            row = commit_row(fields, None, batch)
        part.writer.add(COMMITS.name, row)

    return _run(config, [target], keys, one)


def write_lineage_events(config: CatalogConfig, target: Target, batch: int, keys: Sequence[str]) -> PartResult:
    """Reads the OpenLineage events with these keys, and writes rows of `lineage_events`; ones that were deleted since
    have none. Returns the new data files, the number of objects that were read, and a message for every one that could
    not be."""

    async def one(part: _Part, key: str) -> None:
        body, day = await part.record(key), part.session.state.paths.read_lineage_day(key)
        if body is None or day is None:
            return
        for row in lineage_event_rows(decode_event(body, key), digest_in(_name(key)), day, batch):
            part.writer.add(LINEAGE_EVENTS.name, row)

    return _run(config, [target], keys, one)


def write_reports(config: CatalogConfig, target: Target, batch: int, keys: Sequence[str]) -> PartResult:
    """Reads the reports of scans and commits with these keys, and writes rows of `reports`; ones that were deleted
    since have none. Returns the new data files, the number of objects that were read, and a message for every one that
    could not be."""

    async def one(part: _Part, key: str) -> None:
        body = await part.record(key)
        if body is not None:
            part.writer.add(REPORTS.name, report_row(parse_record(body, key), _name(key), batch))

    return _run(config, [target], keys, one)


def write_events(config: CatalogConfig, target: Target, commits: Sequence[str]) -> PartResult:
    """Reads the registry commits with these ids, and writes rows of `catalog_events`; ones that were deleted since have
    none. Returns the new data files, the number of objects that were read, and a message for every one that could not
    be."""

    async def one(part: _Part, commit: str) -> None:
        key = part.session.state.paths.registry_commit(commit)
        body = await part.record(key)
        for row in event_rows(CommitRecord.read(body, key).document) if body is not None else ():
            part.writer.add(CATALOG_EVENTS.name, row)

    return _run(config, [target], commits, one)


def write_tasks(config: CatalogConfig, target: Target, tasks: Sequence[str]) -> PartResult:
    """Reads the last versions of the tasks with these ids, and writes rows of `tasks` for those that have ended.
    Returns the new data files, the number of objects that were read, and a message for every one that could not be."""

    async def one(part: _Part, task: str) -> None:
        part.read += 1
        stored = await read_task(part.session.state, task)
        row = None if stored is None else task_row(stored.task)
        if row is not None:
            part.writer.add(TASKS.name, row)

    return _run(config, [target], tasks, one)


def write_versions(config: CatalogConfig, targets: Sequence[Target], versions: Sequence[Version]) -> PartResult:
    """Reads the metadata files of versions, and writes their rows to data files of the target tables; rows of other
    tables are dropped. If `files_health` is a target, the manifests of each table's newest version are read, too,
    unless the metadata is missing. Returns the new data files, the number of objects that were read, and a message for
    every one that could not be."""
    reads_manifests = any(target.table.name == FILES_HEALTH.name for target in targets)

    async def one(part: _Part, version: Version) -> None:
        def use(metadata: Metadata) -> tuple[list[tuple[str, Row]], SnapshotManifests | None]:
            rows = [*project(version, metadata)]
            if not reads_manifests or not version.newest or version.is_view or isinstance(metadata, MissingMetadata):
                return rows, None
            return rows, find_snapshot_manifests(version, metadata)

        rows, manifests = await part.metadata(version.metadata_location, use)
        for table, row in rows:
            part.writer.add(table, row)
        if manifests is not None:
            part.writer.add(FILES_HEALTH.name, await health_row(part.session, version, manifests))

    return _run(config, targets, versions, one)


def _name(key: str) -> str:
    """Returns the name of an object without its folder and ending."""
    return key.rpartition("/")[2].removesuffix(".json")


def _run(
    config: CatalogConfig, targets: Sequence[Target], items: Sequence[T], work: Callable[[_Part, T], Awaitable[None]]
) -> PartResult:
    """Opens the catalog in an executor, works on the items of a part, and returns the new files, the number of objects
    that were read, and a message for every one that could not be."""

    async def run() -> PartResult:
        async with config.session() as session:
            part = _Part(session, targets)
            await part.each(items, work)
            return part.finish()

    return asyncio.run(run())
