"""Rebases an append that lost the requirement on its branch: reads its manifests and the lists of the branch, within
bounds, and plans it on the branch's present snapshot (docs/design/appends.md). Few processes import this module."""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, TypeVar, cast

from arco_catalog.iceberg.appends import Append, AppendTarget, NotRebasable, append_of
from arco_catalog.iceberg.commit import Commit
from arco_catalog.iceberg.errors import BadRequest, NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.manifests import (
    MAX_ADDED_MANIFESTS,
    AddedFiles,
    AvroRecord,
    ManifestFile,
    added_manifests,
    check_list_fields,
    check_row_ids,
)
from arco_catalog.planning.append_rebase import AppendOnTarget, read_target, rebase
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.relation_change import CurrentRelation, RelationCommit
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.avro import AvroHeader, AvroLimits, Fields, Unreadable, read_blocks
from arco_catalog.state.locations import Location
from arco_catalog.state.memory import Allocation
from arco_catalog.state.worker_threads import off_loop
from storage_backends import InvalidKey, StoreDenied

T = TypeVar("T")

MAX_LIST_BYTES: Final = 2 << 20
"""Maximum bytes of a manifest list, as stored."""
MAX_LISTED: Final = 5_000
"""Maximum manifests in a list. The catalog copies the list for each append, so a table with more of them needs a
compaction of its manifests first."""
MAX_MANIFEST_BYTES: Final = 8 << 20
"""Maximum bytes of a manifest that an append adds, as stored."""
MAX_ADDED_FILES: Final = 10_000
"""Maximum data files that one append adds."""
MAX_UNPACKED: Final = 16 << 20
"""Maximum bytes of a list or manifest, unpacked."""
UNPACKED_WEIGHT: Final = 32
"""Bytes of memory for each stored byte of a list or manifest: they are compressed, and decoded one slice at a time."""
SPARE_BYTES: Final = 16 << 10
ENTRY_BYTES: Final = 2 << 10
"""Bytes of memory of a list's entry, decoded."""

_LIST_FIELDS: Final[Fields] = dict.fromkeys(
    (*ManifestFile._fields, *(f"{what}_data_files_count" for what in ("added", "existing", "deleted")))
)
_ENTRY_FIELDS: Final[Fields] = {
    **dict.fromkeys(("status", "snapshot_id", "sequence_number", "file_sequence_number")),
    "data_file": dict.fromkeys(("content", "record_count", "file_size_in_bytes", "first_row_id")),
}


class _ReadList(NamedTuple):
    """The entries of a manifest list, and the memory that was taken for them."""

    entries: Sequence[ManifestFile]
    taken: Allocation


class AppendRebaser:
    """Rebases the append of one request, as often as it loses. Each file of the client is read once."""

    def __init__(self, session: Session, wanted: RelationCommit) -> None:
        assert isinstance(wanted.commit, Commit)
        self._session = session
        self._wanted = wanted
        self._commit = wanted.commit
        self._lists: dict[str, _ReadList] = {}
        self._files: dict[str, AddedFiles] = {}

    async def rebase(self, base: CurrentRelation, attempt: Attempt) -> RelationCommit:
        """Returns the commit as it is on the present snapshot of its branch in `base`, with its new manifest list.
        Raises `NotRebasable` if it must be refused, and `StoreError` if the store does not answer."""
        append, target, added, files = await self.read(base)
        await self._read_list(target.head_list)
        present = self._lists[target.head_list].entries
        entity, where = base.pointer.entity, base.pointer.metadata.location
        read = AppendOnTarget(append, target, present, added, files)
        uuid = attempt.uuid("manifest list", entity, where)
        plan = partial(rebase, self._commit, read, now_ms=attempt.now_ms, uuid=uuid)
        planned = await off_loop(ENTRY_BYTES * len(present), plan)
        self._session.files.forget(target.head_list)
        return replace(self._wanted, commit=planned.commit, manifest_list=planned.manifest_list)

    async def read(
        self, base: CurrentRelation
    ) -> tuple[Append, AppendTarget, Sequence[ManifestFile], Sequence[AddedFiles]]:
        """Reads what a rebase needs of the append and of the snapshot on which the client built, unless it was read for
        this request, and checks it. Returns it with the manifests that the append adds, and the files in them. Raises
        as `rebase` does."""
        append = append_of(self._commit)
        read = partial(read_target, append, base.body, base.pointer.metadata.location)
        target = await off_loop(len(base.body), read)
        lists = [append.manifest_list, *filter(None, [target.parent_list]), target.head_list]
        self._check_places(base, [*lists, f"{target.folder}/list"])
        for gone in self._lists.keys() - {*lists}:
            self._lists.pop(gone).taken.shrink(0)
        await gather(*(self._read_list(each) for each in dict.fromkeys(lists[:-1])))
        parent = () if target.parent_list is None else self._lists[target.parent_list].entries
        client = self._lists[append.manifest_list].entries
        compare = partial(added_manifests, append, target, client, parent)
        added = await off_loop(ENTRY_BYTES * (len(client) + len(parent)), compare)
        if target.first_row_id is not None:
            check_row_ids(parent)
        files = await self._read_added(base, append, added)
        for each in files:
            each.check(target)
        return append, target, added, files

    def _check_places(self, base: CurrentRelation, files: Sequence[str]) -> None:
        """Raises `NotRebasable` if a file is outside of the table's own locations: the catalog copies what it reads
        into a list that all readers of the table may read."""
        held = {*base.entry.locations}
        for file in files:
            try:
                place = Location.parse(file)
            except BadRequest as error:
                raise NotRebasable(f"a file has an invalid location: {error.message}") from error
            if place.has_dots or place.collapsed or not place.inside_any(held):
                raise NotRebasable(f"the file {file[:200]} is outside of the table's locations")

    async def _read_list(self, location: str) -> None:
        """Reads a manifest list, unless that was done for this request. One that this process wrote may be cached."""
        if location in self._lists:
            return
        body = self._session.files.cached(location)
        if body is None:
            body = await _readable(location, self._read_file(location, MAX_LIST_BYTES))
        entries: list[ManifestFile] = []

        def parse(records: Sequence[JsonObject]) -> None:
            entries.extend(map(ManifestFile.parse, cast("Sequence[AvroRecord]", records)))

        def check_header(header: AvroHeader) -> None:
            check_list_fields(header.fields)

        await _readable(location, self._read_records(body, _LIST_FIELDS, MAX_LISTED, check_header, parse))
        self._lists[location] = _ReadList(entries, await self._session.hold.take(ENTRY_BYTES * len(entries)))

    async def _read_added(
        self, base: CurrentRelation, append: Append, added: Sequence[ManifestFile]
    ) -> Sequence[AddedFiles]:
        """Reads the manifests that an append adds, and returns the files in each, checked."""
        left = MAX_ADDED_FILES - sum(each.added_files_count for each in added)
        if left < 0 or len(added) > MAX_ADDED_MANIFESTS:
            raise NotRebasable(f"it adds more than {MAX_ADDED_FILES:,} data files")
        self._check_places(base, [each.manifest_path for each in added])
        for each in added:
            if each.manifest_path not in self._files:
                self._files[each.manifest_path] = await self._read_manifest(each, append)
        return [self._files[each.manifest_path] for each in added]

    async def _read_manifest(self, manifest: ManifestFile, append: Append) -> AddedFiles:
        files = AddedFiles(manifest, append.snapshot["snapshot-id"])
        location, size = manifest.manifest_path, manifest.manifest_length
        if size > MAX_MANIFEST_BYTES:
            raise NotRebasable(f"the manifest {location[:200]} has more than {MAX_MANIFEST_BYTES:,} bytes")
        body = await _readable(location, self._read_file(location, size))
        check = lambda header: files.read_header(header.metadata)  # noqa: E731
        await _readable(location, self._read_records(body, _ENTRY_FIELDS, manifest.added_files_count, check, files.add))
        return files

    async def _read_file(self, location: str, max_bytes: int) -> bytes:
        """Returns the bytes of a file, as stored. Raises `NotRebasable` if it has more than `max_bytes`."""
        taken = await self._session.hold.take(max_bytes)
        found = await self._session.files.read_range(location, 0, max_bytes + 1)
        if len(found.body) > max_bytes:
            raise NotRebasable(f"the file {location[:200]} has more than {max_bytes:,} bytes")
        taken.shrink(len(found.body))
        return found.body

    async def _read_records(
        self,
        body: bytes,
        fields: Fields,
        max_records: int,
        check_header: Callable[[AvroHeader], None],
        use: Callable[[Sequence[JsonObject]], None],
    ) -> None:
        """Calls `check_header` with the header of an Avro file, and `use` with its records, some thousands at a time.
        Raises what these and `read_blocks` raise."""
        unpacked = min(MAX_UNPACKED, SPARE_BYTES + UNPACKED_WEIGHT * len(body))
        taken = await self._session.hold.take(unpacked)

        async def read_range(start: int, length: int) -> bytes:
            return body[start : start + length]

        limits = AvroLimits(unpacked, unpacked, max_records)
        async with aclosing(read_blocks(read_range, fields, limits, check_header)) as blocks:
            async for records in blocks:
                self._session.check_deadline()
                await off_loop(ENTRY_BYTES * len(records), partial(use, records))
        taken.shrink(0)


async def _readable(location: str, reading: Coroutine[object, object, T]) -> T:
    """Awaits a step that reads a file. Raises `NotRebasable` if the file does not exist, or can't be read."""
    try:
        return await reading
    except (Unreadable, NotFound, BadRequest, InvalidKey, StoreDenied) as error:
        raise NotRebasable(f"the file {location[:200]} can't be read: {error}") from error.with_traceback(None)
    except ImportError as error:
        raise NotRebasable(f"the package {error.name} is not installed") from error
