"""Examines the files of one table that the current metadata names: those of all snapshots, the statistics files, and
the earlier metadata files in the log.

Manifests are read a block at a time, and of each data file only its last byte, whose range also proves its size. The
memory for a table has the paths of its manifests, and hashes of its data files up to a bound.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, MetadataTooLarge, NotFound
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.parsing import UnreadableMetadata
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.avro import Fields, Unreadable, read_blocks
from arco_catalog.state.fields import objects
from arco_catalog.state.locations import Location
from arco_catalog.state.pointer import Pointer
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination, Relation
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.tally import Tally
from storage_backends import Version

AT_ONCE = 64
"""Files that are examined concurrently."""
MANIFESTS_AT_ONCE = 4
REMEMBERED = 1_000_000
"""Data files of a table that are remembered as examined: others may be examined again."""

DELETED = 2
"""The status of a manifest's entry whose file the snapshot no longer has."""
LIST_FIELDS: Fields = {"manifest_path": None, "manifest_length": None}
ENTRY_FIELDS: Fields = {"status": None, "data_file": {"file_path": None, "file_size_in_bytes": None}}


class Manifest(NamedTuple):
    """A manifest that a check is to examine, with the length in bytes by the manifest list; None if that is unknown."""

    path: str
    length: int | None


@dataclass(slots=True)
class Look:
    """The result of one examination of a table's files: the findings, the version of the pointer by then, and the
    manifests that are `left` for other executors."""

    tally: Tally = field(default_factory=Tally)
    version: Version | None = None
    left: Sequence[Manifest] = ()


class TableFiles:
    """Examines the files of one table once for a check, in the state of one pointer."""

    def __init__(self, examination: Examination, relation: Relation) -> None:
        self._examination = examination
        self._relation = relation
        self._files = examination.session.files
        self._known = frozenset(folder.rstrip("/") for folder in (*relation.locations, *relation.borrowed))
        self.tally = Tally()
        self._seen: set[int] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def look(self, pointer: Pointer, max_manifests: int | None = None) -> Look:
        """Examines the files that the current metadata of a table names, and the files that its manifests name. With
        `max_manifests` reads at most so many manifests; `left` in the result has the others. Returns a result without
        findings if the metadata file can't be read."""
        named = await self._read_names(pointer)
        if named is None:
            return Look(version=pointer.version)  # the examination of metadata files has the finding
        await self._all(self._logged(file, named.uuid) for file in named.logged)
        await self._all(self._statistics(*each) for each in named.statistics)
        seen: set[str] = set()
        left: list[Manifest] = []
        for manifest_list in named.manifest_lists:
            async with aclosing(self._manifests(manifest_list)) as manifests:
                batch: list[Manifest] = []
                async for manifest in manifests:
                    if manifest.path in seen:
                        continue
                    seen.add(manifest.path)
                    (batch if max_manifests is None or len(seen) <= max_manifests else left).append(manifest)
                    if len(batch) == MANIFESTS_AT_ONCE:
                        await self.look_at_manifests(batch)
                        batch.clear()
                await self.look_at_manifests(batch)
        return Look(self.tally, pointer.version, left)

    async def look_at_manifests(self, manifests: Iterable[Manifest]) -> None:
        """Examines these manifests, and the files that they name, a few at a time. Findings are added to the tally."""
        for batch in batches(manifests, MANIFESTS_AT_ONCE):
            await gather(*(self._manifest(*each) for each in batch))

    def _report(self, code: Code, where: str, found: str = "") -> None:
        """Adds a finding about this table, with the kind and name of the table in the description, to the tally."""
        self.tally.count(Finding(code, where, f"{self._relation.called}{': ' if found else ''}{found}"))

    async def _read_names(self, pointer: Pointer) -> "_NamedFiles | None":
        """Returns the files that the metadata file named by a table's pointer names; None if that file is missing, out
        of reach or corrupt. The cache does not keep it."""
        file = pointer.metadata.location
        try:
            return await self._files.extract(file, partial(_named_files, registered_from=pointer.registered_from))
        except (UnreadableMetadata, NotFound, BadRequest, MetadataTooLarge):
            return None
        finally:
            self._files.forget(file)

    async def _all(self, looks: Iterable[Coroutine[None, None, None]]) -> None:
        """Awaits the examinations of these files, `AT_ONCE` at a time."""
        for batch in batches(looks, AT_ONCE):
            await gather(*batch)

    async def _logged(self, logged: "_LoggedFile", uuid: JsonValue) -> None:
        """Adds a finding to the tally if an earlier metadata file in the log of the current one is missing, can't be
        read, or does not have the time in the log and the table's `uuid`. One that can't be reached is counted by its
        folder."""
        file = logged.location
        self._note_place(file)
        async with self._slots:
            self._examination.look_at_one()
            try:
                time_and_uuid = await self._files.extract(
                    file, lambda document: (document.get("last-updated-ms"), document.get("table-uuid"))
                )
            except NotFound as error:
                there = await self._files.exists(file)  # one that is packed may be corrupt
                self._report(Code.LOGGED_FILE_UNREADABLE if there else Code.LOGGED_FILE_MISSING, file, error.message)
            except UnreadableMetadata as error:
                self._report(Code.LOGGED_FILE_UNREADABLE, file, error.message)
            except (BadRequest, MetadataTooLarge):
                self.tally.unreachable[_folder(file)] += 1
            else:
                if time_and_uuid != (logged.ms, uuid):
                    self._report(
                        Code.LOGGED_FILE_FOREIGN,
                        file,
                        f"its time is {time_and_uuid[0]}, its table {time_and_uuid[1]}",
                    )
            finally:
                self._files.forget(file)

    async def _statistics(self, file: str, size: JsonValue) -> None:
        """Adds a finding to the tally if a statistics file does not exist or does not have `size` bytes."""
        differs = await self._size_differs(file, size)
        if differs is None:
            self._report(Code.STATISTICS_MISSING, file)
        elif differs:
            self._report(Code.STATISTICS_FOREIGN, file, f"it does not have {size} bytes")

    async def _manifests(self, listed: str | Sequence[str]) -> AsyncGenerator[Manifest, None]:
        """Yields the manifests of a snapshot with their lengths. `listed` is the location of a manifest list, or, for a
        v1 snapshot without a list, the locations of the manifests, with None as length."""
        if isinstance(listed, str):
            self._note_place(listed)
            async with aclosing(
                self._records(listed, LIST_FIELDS, Code.MANIFEST_LIST_UNREADABLE, None, _Reading())
            ) as blocks:
                async for records in blocks:
                    for record in records:
                        length = record.get("manifest_length")
                        if isinstance(manifest := record.get("manifest_path"), str):
                            yield Manifest(manifest, length if isinstance(length, int) else None)
                        else:
                            self._report(Code.MANIFEST_LIST_UNREADABLE, listed, "an entry has no path")
        else:
            for each in listed:
                yield Manifest(each, None)

    async def _manifest(self, manifest: str, length: int | None) -> None:
        """Examines a manifest, and the files that it names. `length` is its size in bytes by the manifest list; None if
        that is unknown."""
        self._note_place(manifest)
        reading = _Reading()
        records = self._records(
            manifest, ENTRY_FIELDS, Code.MANIFEST_FILE_UNREADABLE, Code.MANIFEST_FILE_MISSING, reading
        )
        async with aclosing(records) as blocks:
            async for block in blocks:
                await self._all(self._entry(manifest, record) for record in block)
        if reading.whole and length not in (None, reading.length):
            text = f"it has {reading.length:,} bytes; its manifest list has {length:,}"
            self._report(Code.MANIFEST_FILE_FOREIGN, manifest, text)

    async def _entry(self, manifest: str, record: JsonObject) -> None:
        """Adds a finding to the tally if an entry of a manifest, also a deleted one, names no file, or if its data or
        delete file does not exist or does not have this size. Does not look for the file of a deleted entry, nor for
        one that was checked before and is among the first `REMEMBERED`."""
        named = record.get("data_file")
        file = named.get("file_path") if isinstance(named, dict) else None
        if not isinstance(named, dict) or not isinstance(file, str):
            self._report(Code.MANIFEST_FILE_UNREADABLE, manifest, "an entry has no file")
            return
        digest = hash(file)
        if record.get("status") == DELETED or digest in self._seen:
            return
        if len(self._seen) < REMEMBERED:
            self._seen.add(digest)
        size = named.get("file_size_in_bytes")
        differs = await self._size_differs(file, size)
        if differs is None:
            self._report(Code.DATA_FILE_MISSING, file, f"named by {manifest}")
        elif differs:
            self._report(Code.DATA_FILE_FOREIGN, file, f"it does not have the {size} bytes that {manifest} records")

    async def _size_differs(self, file: str, size: JsonValue) -> bool | None:
        """Whether the size of a file in bytes differs from `size`, where only an integer can differ; None if the file
        does not exist. A file that can't be reached is counted as such, and does not differ."""
        self._note_place(file)
        location = Location.of_file(file)
        async with self._slots:
            self._examination.look_at_one()
            try:
                if location is None:
                    raise BadRequest(f"{file} is not the location of a file, and counts as out of reach")
                there = await self._files.has_size(location, size if isinstance(size, int) else None)
            except BadRequest:
                self.tally.unreachable[_folder(file)] += 1
                return False
        return None if there is None else not there

    def _note_place(self, file: str) -> None:
        """Counts the folder of a file that lies outside of the table's locations and of the folders from which it
        borrows files."""
        location = Location.of_file(file)
        if location is not None and not location.inside_any(self._known):
            self.tally.elsewhere[_folder(file)] += 1

    async def _records(
        self, file: str, fields: Fields, unreadable: Code, missing: Code | None, reading: "_Reading"
    ) -> AsyncGenerator[Sequence[JsonObject], None]:
        """Yields the records of an Avro file with these fields, in blocks, until one can't be read: that is a finding
        of the code `unreadable`. A file that does not exist is a finding of the code `missing`, or none if this is
        None: the examination of relations has the finding for a manifest list. A file out of reach is no finding, and
        adds to `unreachable` of the tally. Sets in `reading` how many bytes were read, and whether the
        file was read to the end."""

        async def read_range(start: int, length: int) -> bytes:
            body = (await self._files.read_range(file, start, length)).body
            reading.length = max(reading.length, start + len(body))
            return body

        self._examination.look_at_one()
        try:
            async with aclosing(read_blocks(read_range, fields)) as blocks:
                async for records in blocks:
                    yield records
            reading.whole = True
        except NotFound:
            if missing is not None:
                self._report(missing, file)
        except BadRequest:
            self.tally.unreachable[_folder(file)] += 1
        except Unreadable as error:
            self._report(unreadable, file, str(error))


@dataclass(slots=True)
class _Reading:
    """How many bytes of a file were read; `whole` is whether the file was read to its end, so that this is the
    length."""

    length: int = 0
    whole: bool = False


class _LoggedFile(NamedTuple):
    """An entry of a table's metadata log: a metadata file with its time."""

    location: str
    ms: JsonValue


@dataclass(frozen=True, slots=True)
class _NamedFiles:
    """The files that a table's metadata names, without any array or object of the document, which is freed once this is
    made. An element of `manifest_lists` is a manifest list, or the manifests of a v1 snapshot that has no list.
    `logged` are the earlier metadata files of the table itself: those up to the file from which it was registered are
    another table's."""

    uuid: JsonValue
    logged: Sequence[_LoggedFile]
    statistics: Sequence[tuple[str, JsonValue]]
    manifest_lists: Sequence[str | Sequence[str]]


def _named_files(document: JsonObject, *, registered_from: str | None) -> _NamedFiles:
    """Returns the files that a metadata file names, without log entries up to the file from which the table was
    registered, which is left out, too."""
    files = table.logged_files(document)
    first = files.index(registered_from) + 1 if registered_from in files else 0
    logged = [
        _LoggedFile(str(entry["metadata-file"]), _scalar(entry.get("timestamp-ms")))
        for entry in objects(document, "metadata-log")[first:]
    ]
    entries = [*objects(document, "statistics"), *objects(document, "partition-statistics")]
    statistics = [
        (path, _scalar(entry.get("file-size-in-bytes")))
        for entry in entries
        if isinstance(path := entry.get("statistics-path"), str)
    ]
    lists: list[str | Sequence[str]] = []
    for snapshot in objects(document, "snapshots"):
        listed, direct = snapshot.get("manifest-list"), snapshot.get("manifests")
        if isinstance(listed, str):
            lists.append(listed)
        elif isinstance(direct, list):
            lists.append([each for each in direct if isinstance(each, str)])
    return _NamedFiles(_scalar(document.get("table-uuid")), logged, statistics, lists)


def _scalar(value: JsonValue) -> JsonValue:
    """Returns a JSON value as it is; None for an array or object, which would take memory."""
    return None if isinstance(value, list | dict) else value


def _folder(file: str) -> str:
    """Returns the path of a file up to its last `/data/`, or else its last `/metadata/`: the folder of its table, as
    tables are laid out. Returns the folder of the file if the path has neither."""
    for part in ("/data/", "/metadata/"):
        before, found, _ = file.rpartition(part)
        if found:
            return before
    return file.rpartition("/")[0]
