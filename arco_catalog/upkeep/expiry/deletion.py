"""Deletes the files that only expired snapshots need (docs/design/expiry.md#rule-6).

The rule is that of Iceberg's `ReachableFileCleanup`. What the table needs is read again before each step, unless the
table has not changed.
"""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from zlib import crc32

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.concurrency import batches, for_each
from arco_catalog.state.expiry_record import ExpiryRecord, read_expiry_records
from arco_catalog.state.fields import mapping, optional_text
from arco_catalog.state.locations import Location
from arco_catalog.state.purge_progress import Progress, count_in
from arco_catalog.tasks.execution import Execution, TaskFailed
from arco_catalog.upkeep.purge.other_table import metadata_files
from arco_catalog.upkeep.purge.reach import ReachedFile, entries_of, manifests_in, named_by
from arco_catalog.upkeep.purge.removal import AT_ONCE, Removal
from storage_backends import StoreUnavailable

READ_AT_ONCE = 8
"""Manifests or manifest lists that are read concurrently."""
MAX_MANIFESTS = 500_000
"""Manifests of the table, and as many that only expired snapshots name: some 200 MB of names."""
MAX_NAMES = 200_000
"""Files in memory that are candidates for deletion. More are dealt with in parts, by a digest of their names."""
MAX_PARTS = 4_096
SLOW_COMMIT_MS = 60 * 60_000
"""By how much a commit may follow the record that is written before it."""
DATA, STATISTICS, MANIFESTS, LISTS, DONE = "data", "statistics", "manifests", "lists", "done"
_NEXT = {DATA: STATISTICS, STATISTICS: MANIFESTS, MANIFESTS: LISTS, LISTS: DONE}
"""The steps in their order: what names other files is deleted after these (docs/design/purge.md#rule-9)."""


@dataclass(frozen=True, slots=True)
class DeletionProgress:
    """How far the deletion is: its step, and in the first step how many of the `parts` are finished. `removed` has the
    counts of deleted files."""

    step: str = DATA
    part: int = 0
    parts: int = 1
    removed: Progress = field(default_factory=Progress)

    @classmethod
    def parse(cls, checkpoint: JsonObject) -> "DeletionProgress":
        """Reads the progress in a task's checkpoint; at the first step of one part if it has none."""
        stored = mapping(checkpoint, "deletion")
        step, parts = optional_text(stored, "step") or DATA, max(1, count_in(stored, "parts"))
        return cls(step, count_in(stored, "part"), parts, Progress.parse(mapping(stored, "removed")))

    def to_json(self) -> JsonObject:
        """Returns the progress as a task's checkpoint stores it."""
        removed = self.removed.to_json()
        return {"step": self.step, "part": self.part, "parts": self.parts, "removed": removed}


@dataclass
class _Files:
    """The files of one kind inside the table's locations, by location, so that two spellings of one location are one
    file; with the last spelling and the size."""

    own: Callable[[str], Location | None]
    names: dict[Location, ReachedFile] = field(default_factory=dict)

    def add(self, name: str, size: int = 0) -> None:
        """Adds a file to the set, of files to delete or to keep, unless it is outside of the table's locations."""
        location = self.own(name)
        if location is not None:
            self.names[location] = ReachedFile(name, size)

    def remove(self, name: str) -> None:
        """Takes the file with this name out of the set, if it is the table's own; deletes nothing."""
        location = self.own(name)
        if location is not None:
            self.names.pop(location, None)


@dataclass(frozen=True, slots=True)
class _Look:
    """What a table names at one time, by its `metadata` files: all `manifests`. And what only expired snapshots name:
    manifests, manifest lists and statistics. `young` are the manifests of snapshots that were removed not long ago,
    which may be missing."""

    metadata: tuple[str, ...]
    manifests: Sequence[str]
    young: Sequence[str]
    expired_manifests: Sequence[ReachedFile]
    expired_lists: Sequence[ReachedFile]
    expired_statistics: Sequence[ReachedFile]


class FileDeletion:
    """Deletes the files inside the table's locations to which the task's records of removed snapshots lead and neither
    the table does, nor a record of another task that is younger than `age_ms` and `SLOW_COMMIT_MS` together."""

    def __init__(self, execution: Execution, entity: str, locations: Sequence[str], age_ms: int) -> None:
        self._execution = execution
        self._entity = entity
        self._age_ms = age_ms
        self.progress = DeletionProgress.parse(execution.checkpoint)
        self._removal = Removal(execution, locations, self.progress.removed)
        self._last: _Look | None = None

    async def delete(self) -> DeletionProgress:
        """Deletes the files step by step from the position in the checkpoint, and returns the progress at the end, with
        the counts of all leases. Raises `TaskFailed` if a file that names others can't be read or there are too many
        files or manifests, `LeaseLost`, and `StoreError`."""
        while self.progress.step == DATA and self.progress.part < self.progress.parts:
            await self._delete_part()
        while self.progress.step != DONE:
            look = await self._look()
            files = {
                DATA: (),
                STATISTICS: look.expired_statistics,
                MANIFESTS: look.expired_manifests,
                LISTS: look.expired_lists,
            }[self.progress.step]
            for batch in batches(files, AT_ONCE):
                await self._removal.delete(batch)
                await self._note(len(batch))
            await self._save(replace(self.progress, step=_NEXT[self.progress.step]))
        return self.progress

    async def _delete_part(self) -> None:
        """Deletes the present part of the data files and delete files that live entries of expired manifests name,
        except files that the table still needs, and moves to the next part. If the part has more names than fit into
        memory, deletes nothing, divides the files into four times as many parts, and begins with the first. Raises
        `TaskFailed` if there would be more than `MAX_PARTS`, and as `_look` and `_keep_live` do."""
        part, parts = self.progress.part, self.progress.parts
        look = await self._look()
        found = _Files(self._removal.own)

        async def collect(manifest: ReachedFile) -> None:
            async with aclosing(entries_of(self._execution, manifest.location, [], live_only=True)) as blocks:
                async for files in blocks:
                    for file in files:
                        if part_of(self._removal.own(file.location), parts) == part:
                            found.add(file.location, file.size)
                    if len(found.names) > MAX_NAMES:
                        raise _TooMany

        try:
            await for_each(look.expired_manifests, READ_AT_ONCE, collect)
        except _TooMany:
            if parts >= MAX_PARTS:
                raise TaskFailed(
                    f"the expired snapshots name more files than {MAX_PARTS:,} parts of {MAX_NAMES:,} can hold, so the "
                    "remaining ones are not deleted"
                ) from None
            await self._save(replace(self.progress, part=0, parts=parts * 4))
            return
        if found.names:
            await self._keep_live(look, found)
        for batch in batches(found.names.values(), AT_ONCE):
            await self._removal.delete(batch)
            await self._note(len(batch))
        await self._save(replace(self.progress, part=part + 1))

    async def _keep_live(self, look: _Look, found: _Files) -> None:
        """Takes the files out of `found` that a live entry names, in a manifest of the table or of snapshots that were
        removed not long ago. Missing manifests of the latter are passed over. A missing one of the table might name
        them: raises `StoreUnavailable` if the table has changed since, else `TaskFailed`."""

        async def keep_young(manifest: str, gone: list[str] | None = None) -> None:
            async with aclosing(entries_of(self._execution, manifest, gone, live_only=True)) as blocks:
                async for files in blocks:
                    for file in files:
                        found.remove(file.location)

        async def keep(manifest: str) -> None:
            gone: list[str] = []
            await keep_young(manifest, gone)
            await self._require_there(look.metadata, gone)

        await for_each(look.manifests, READ_AT_ONCE, keep)
        await for_each(look.young, READ_AT_ONCE, keep_young)

    async def _look(self) -> _Look:
        """Reads what the table and the records of expiries name now; if the table has the metadata files of the last
        look, returns that one. Raises `TaskFailed` for a missing manifest list, a file that can't be read or too many
        manifests, and `StoreUnavailable` if the table changes meanwhile, or the pointer or a metadata file is
        missing."""
        session = self._execution.session()
        metadata = (*await metadata_files(session, await session.state.pointer(self._entity)),)
        if self._last is None or self._last.metadata != metadata:
            self._last = await self._read(metadata)
        return self._last

    async def _read(self, metadata: tuple[str, ...]) -> _Look:
        """Reads what the table names now, and what the records of expiries name. Returns the table's manifests, further
        ones of snapshots that other tasks removed not long ago, and the manifests, manifest lists and statistics files
        that expired snapshots alone need. Raises `StoreUnavailable` if the pointer or a metadata file is missing, or
        the table changes while it is read, and `TaskFailed` if one of the manifest lists that the table names is
        missing, if one of all these lists can't be read, or for too many manifests."""
        reached = await named_by(self._execution, metadata)
        if reached.gone or not metadata:
            raise StoreUnavailable(
                "the snapshots are expired, and their files are not all deleted yet: the table's pointer or metadata "
                "file is missing, perhaps since the file was replaced while it was read. Another attempt, "
                "if one is left, goes on"
            )
        own = self._removal.own
        lists, statistics, needed, only = _Files(own), _Files(own), _Files(own), _Files(own)
        removed, young = await self._records()  # after the pointer was read: a record is written before its commit
        for record in removed:
            for each in record.lists:
                lists.add(each)
            for each in record.statistics:
                statistics.add(each)
        for each in (*reached.lists, *(name for record in young for name in record.lists)):
            lists.remove(each)
        for each in (*reached.statistics, *(name for record in young for name in record.statistics)):
            statistics.remove(each)
        named, gone = dict.fromkeys(reached.direct), list[str]()
        await self._manifests_of([*reached.lists], named, gone)
        await self._require_there(metadata, gone)
        also = dict.fromkeys(each for record in young for each in record.manifests)
        await self._manifests_of([each for record in young for each in record.lists], also, [])
        for each in (*named, *also):
            needed.add(each)
        expired = dict.fromkeys(each for record in removed for each in record.manifests)
        await self._manifests_of([each.location for each in lists.names.values()], expired, [])
        for each in expired:
            location = own(each)
            if location is not None and location not in needed.names:
                only.add(each)
        files = ([*each.names.values()] for each in (only, lists, statistics))
        return _Look(metadata, [*named], [each for each in also if each not in named], *files)

    async def _records(self) -> tuple[Sequence[ExpiryRecord], Sequence[ExpiryRecord]]:
        """Returns the task's records, and the young ones of other tasks: their snapshots were removed not long ago, so
        plans of scans may name their files."""
        removed, young = list[ExpiryRecord](), list[ExpiryRecord]()
        async for each in read_expiry_records(self._execution.session().state, self._entity):
            if each.task == self._execution.task.id:
                removed.append(each.record)
            elif each.age_ms < self._age_ms + SLOW_COMMIT_MS:
                young.append(each.record)
        return removed, young

    async def _manifests_of(self, lists: Sequence[str], named: dict[str, None], gone: list[str]) -> None:
        """Adds the manifests in these manifest lists to `named`, and the lists that do not exist to `gone`. Raises
        `TaskFailed` for a list that can't be read, and if `named` gets more than `MAX_MANIFESTS`."""

        async def read(location: str) -> None:
            named.update(dict.fromkeys(await manifests_in(self._execution, location, gone)))
            if len(named) > MAX_MANIFESTS:
                raise TaskFailed(
                    f"the snapshots of the table, or the expired ones, have more than {MAX_MANIFESTS:,} manifests, too "
                    "many to find which files only expired snapshots need, so no more files are deleted: if it is the "
                    "table, rewrite the manifests, and retry this task"
                )

        await for_each(lists, READ_AT_ONCE, read)

    async def _require_there(self, metadata: tuple[str, ...], gone: Sequence[str]) -> None:
        """Returns if `gone`, the missing files that the table names, is empty. Else raises `StoreUnavailable` if the
        table no longer has these `metadata` files, as another program may have expired the snapshots that named the
        files, and otherwise `TaskFailed`."""
        if not gone:
            return
        session = self._execution.session()
        if (*await metadata_files(session, await session.state.pointer(self._entity)),) != metadata:
            raise StoreUnavailable(
                f"{gone[0]} is missing, and the table changed while it was read, so this attempt deletes no more "
                "files: another one, if one is left, goes on"
            )
        raise TaskFailed(
            f"{gone[0]} is missing, and which files of the table it names is unknown, so no more files of expired "
            "snapshots are deleted: restore it, and retry this task"
        )

    async def _note(self, files: int) -> None:
        """Takes the counts of deleted files into the progress, and saves it in the task if some time has passed since
        the last time, or many files were deleted. `files` is how many were dealt with since the last call."""
        self.progress = replace(self.progress, removed=self._removal.progress)
        await self._execution.progress({**self._execution.checkpoint, "deletion": self.progress.to_json()}, files)

    async def _save(self, progress: DeletionProgress) -> None:
        """Makes `progress` the present one, with the counts of files deleted up to now, and saves it as one field of
        the task's checkpoint, which keeps the others."""
        self.progress = replace(progress, removed=self._removal.progress)
        await self._execution.save({**self._execution.checkpoint, "deletion": self.progress.to_json()})


class _TooMany(Exception):
    """A part of the files that an expiry is to delete has more names than fit into memory."""


def part_of(location: Location | None, parts: int) -> int:
    """Returns the part to which a file belongs, the same in every process; -1 for no location."""
    return -1 if location is None else crc32(location.uri.encode()) % parts
