"""The files of live tables, as `--data` looks at them: whatever any snapshot names that the current metadata has.

Manifests are read a block at a time, and of each data file no more than its last byte: that tells its size, too. What
is remembered of a table are its manifests, and its data files up to a bound.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, InternalError, MetadataTooLarge, NotFound
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.parsing import UnreadableMetadata, parse_metadata
from arco_catalog.operations.fsck.codes import Code
from arco_catalog.operations.fsck.examination import LIVE, Examination, Findings, Relation
from arco_catalog.operations.fsck.findings import Finding
from arco_catalog.operations.purge.avro import Fields, Unreadable, read_blocks
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.decisions import resolve_for_read
from arco_catalog.state.locations import Location
from arco_catalog.state.pointer import Pointer

AT_ONCE = 64
"""Files looked at beside each other."""
MANIFESTS_AT_ONCE = 4
REMEMBERED = 1_000_000
"""Data files of a table of which it is remembered that they were looked at: others may be looked at again."""
MOST = 100
"""Findings of one code that are told of one table; all are counted."""
LOOKS = 3
"""How often a table is looked at anew because it was changed while it was looked at."""

DELETED = 2
"""The status of a manifest's entry whose file the snapshot no longer has."""
LIST_FIELDS: Fields = {"manifest_path": None, "manifest_length": None}
ENTRY_FIELDS: Fields = {"status": None, "data_file": {"file_path": None, "file_size_in_bytes": None}}


@dataclass(frozen=True, slots=True)
class Scope:
    """Which tables' files are looked at, by their names in order: these, or all; only those behind `after`."""

    tables: frozenset[str] = frozenset()
    after: str = ""

    def has(self, relation: Relation) -> bool:
        """Whether this one is looked at."""
        wanted = not self.tables or relation.name in self.tables
        return relation.kind == "table" and relation.state == LIVE and wanted and relation.name > self.after


async def examine_files(examination: Examination, scope: Scope) -> Findings:
    """All findings about them, a table after the other."""
    for relation in sorted(filter(scope.has, examination.relations.values()), key=lambda each: each.name):
        examination.at = relation.name
        for finding in await _settled_findings(examination, relation):
            yield finding
    examination.at = ""


async def _settled_findings(examination: Examination, relation: Relation) -> Sequence[Finding]:
    """What is wrong with the files of a table that nobody changed meanwhile: snapshots expire beside us, and their
    files go."""
    state = examination.session.state
    found: Sequence[Finding] = []
    for _ in range(LOOKS):
        try:
            pointer = await state.pointer(relation.entity)
            if pointer is None or pointer.entity != relation.entity:
                return []  # told where pointers are looked at
            found = await _Files(examination, relation).look(await resolve_for_read(state, pointer))
            again = await state.pointer(relation.entity)
        except InternalError:
            return []
        if not found or (again is not None and again.version == pointer.version):
            break
    return found if not found or await examination.is_still(relation) else []


class _Files:
    """One look at the files of one table."""

    def __init__(self, examination: Examination, relation: Relation) -> None:
        self._examination = examination
        self._relation = relation
        self._files = examination.session.files
        self._known = frozenset(folder.rstrip("/") for folder in (*relation.locations, *relation.borrowed))
        self._found: list[Finding] = []
        self._counts: Counter[Code] = Counter()
        self._elsewhere: Counter[str] = Counter()
        self._unreachable: Counter[str] = Counter()
        self._seen: set[int] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def look(self, pointer: Pointer) -> Sequence[Finding]:
        document = await self._document(pointer.metadata.location)
        if document is None:
            return []  # told where metadata files are looked at
        await self._all(self._logged(entry, document) for entry in _own_log(document, pointer.registered_from))
        await self._all(self._statistics(entry) for entry in _statistics(document))
        seen: set[str] = set()
        for snapshot in _objects(document, "snapshots"):
            async with aclosing(self._manifests(snapshot)) as manifests:
                batch: list[tuple[str, int | None]] = []
                async for manifest in manifests:
                    if manifest[0] not in seen:
                        seen.add(manifest[0])
                        batch.append(manifest)
                    if len(batch) == MANIFESTS_AT_ONCE:
                        await gather(*(self._manifest(*each) for each in batch))
                        batch.clear()
                await gather(*(self._manifest(*each) for each in batch))
        return self._told()

    def _told(self) -> Sequence[Finding]:
        called = self._relation.called
        more = [
            Finding(code, self._relation.name, f"{called}: and {count - MOST:,} more")
            for code, count in self._counts.items()
            if count > MOST
        ]
        elsewhere = [
            Finding(code, folder, f"{called}: {count:,} files")
            for code, folders in (
                (Code.FILES_ELSEWHERE, self._elsewhere),
                (Code.FILES_OUT_OF_REACH, self._unreachable),
            )
            for folder, count in folders.most_common(MOST)
        ]
        return [*self._found, *more, *elsewhere]

    def _tell(self, code: Code, where: str, found: str = "") -> None:
        self._counts[code] += 1
        if self._counts[code] <= MOST:
            self._found.append(Finding(code, where, f"{self._relation.called}{': ' if found else ''}{found}"))

    async def _document(self, file: str) -> JsonObject | None:
        try:
            return parse_metadata(await self._files.read(file), file)
        except (UnreadableMetadata, NotFound, BadRequest, MetadataTooLarge):
            return None
        finally:
            self._files.forget(file)

    async def _all(self, looks: Iterable[Coroutine[None, None, None]]) -> None:
        for batch in batches(looks, AT_ONCE):
            await gather(*batch)

    async def _logged(self, entry: JsonObject, now: JsonObject) -> None:
        """Looks at an earlier metadata file: it has the time that the log tells, and is of the same table."""
        file = str(entry["metadata-file"])
        self._note_place(file)
        async with self._slots:
            self._examination.look_at_one()
            try:
                document = parse_metadata(await self._files.read(file), file)
            except NotFound as error:
                there = await self._files.exists(file)  # one that is packed may be damaged
                self._tell(Code.LOGGED_FILE_UNREADABLE if there else Code.LOGGED_FILE_MISSING, file, error.message)
            except UnreadableMetadata as error:
                self._tell(Code.LOGGED_FILE_UNREADABLE, file, error.message)
            except (BadRequest, MetadataTooLarge):
                self._unreachable[_folder(file)] += 1
            else:
                told = document.get("last-updated-ms"), document.get("table-uuid")
                if told != (entry.get("timestamp-ms"), now.get("table-uuid")):
                    self._tell(Code.LOGGED_FILE_FOREIGN, file, f"it says that it is of {told[0]}, of table {told[1]}")
            finally:
                self._files.forget(file)

    async def _statistics(self, entry: JsonObject) -> None:
        file, size = str(entry["statistics-path"]), entry.get("file-size-in-bytes")
        differs = await self._size_differs(file, size)
        if differs is None:
            self._tell(Code.STATISTICS_MISSING, file)
        elif differs:
            self._tell(Code.STATISTICS_FOREIGN, file, f"it does not have {size} bytes")

    async def _manifests(self, snapshot: JsonObject) -> AsyncGenerator[tuple[str, int | None], None]:
        """The manifests of a snapshot, with the lengths that its list tells of them."""
        listed, direct = snapshot.get("manifest-list"), snapshot.get("manifests")
        if isinstance(listed, str):
            self._note_place(listed)
            async with aclosing(
                self._records(listed, LIST_FIELDS, Code.MANIFEST_LIST_UNREADABLE, None, _Reading())
            ) as blocks:
                async for records in blocks:
                    for record in records:
                        length = record.get("manifest_length")
                        if isinstance(manifest := record.get("manifest_path"), str):
                            yield manifest, length if isinstance(length, int) else None
                        else:
                            self._tell(Code.MANIFEST_LIST_UNREADABLE, listed, "an entry has no path")
        elif isinstance(direct, list):
            for each in direct:
                if isinstance(each, str):
                    yield each, None

    async def _manifest(self, manifest: str, length: int | None) -> None:
        """Looks at a manifest, and at the files that it names."""
        self._note_place(manifest)
        reading = _Reading()
        records = self._records(
            manifest, ENTRY_FIELDS, Code.MANIFEST_FILE_UNREADABLE, Code.MANIFEST_FILE_MISSING, reading
        )
        async with aclosing(records) as blocks:
            async for block in blocks:
                await self._all(self._entry(manifest, record) for record in block)
        if reading.whole and length not in (None, reading.length):
            told = f"it has {reading.length:,} bytes; its manifest list says {length:,}"
            self._tell(Code.MANIFEST_FILE_FOREIGN, manifest, told)

    async def _entry(self, manifest: str, record: JsonObject) -> None:
        named = record.get("data_file")
        file = named.get("file_path") if isinstance(named, dict) else None
        if not isinstance(named, dict) or not isinstance(file, str):
            self._tell(Code.MANIFEST_FILE_UNREADABLE, manifest, "an entry has no file")
            return
        digest = hash(file)
        if record.get("status") == DELETED or digest in self._seen:
            return
        if len(self._seen) < REMEMBERED:
            self._seen.add(digest)
        size = named.get("file_size_in_bytes")
        differs = await self._size_differs(file, size)
        if differs is None:
            self._tell(Code.DATA_FILE_MISSING, file, f"named by {manifest}")
        elif differs:
            self._tell(Code.DATA_FILE_FOREIGN, file, f"it does not have {size} bytes, as {manifest} says")

    async def _size_differs(self, file: str, size: JsonValue) -> bool | None:
        """Whether a file has another size than it is said to have; None if it is gone. One that can't be reached is
        counted, and taken for sound."""
        self._note_place(file)
        location = Location.of_file(file)
        async with self._slots:
            self._examination.look_at_one()
            try:
                if location is None:
                    raise BadRequest(f"{file} is no location")
                there = await self._files.has_size(location, size if isinstance(size, int) else None)
            except BadRequest:
                self._unreachable[_folder(file)] += 1
                return False
        return None if there is None else not there

    def _note_place(self, file: str) -> None:
        location = Location.of_file(file)
        if location is not None and not location.inside_any(self._known):
            self._elsewhere[_folder(file)] += 1

    async def _records(
        self, file: str, fields: Fields, unreadable: Code, missing: Code | None, reading: "_Reading"
    ) -> AsyncGenerator[Sequence[JsonObject], None]:
        """The records of an Avro file, until one can't be read. A manifest list that is gone is told elsewhere."""

        async def read_range(start: int, length: int) -> bytes:
            body = await self._files.read_range(file, start, length)
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
                self._tell(missing, file)
        except BadRequest:
            self._unreachable[_folder(file)] += 1
        except Unreadable as error:
            self._tell(unreadable, file, str(error))


@dataclass(slots=True)
class _Reading:
    """What the reading of a file has told of it: its length, once it was `whole`."""

    length: int = 0
    whole: bool = False


def _own_log(document: JsonObject, registered_from: str | None) -> Sequence[JsonObject]:
    """The earlier files that a table has itself made: what stands before the one that it was registered from, and that
    one, are somebody else's."""
    files = table.logged_files(document)
    first = files.index(registered_from) + 1 if registered_from in files else 0
    return _objects(document, "metadata-log")[first:]


def _statistics(document: JsonObject) -> Sequence[JsonObject]:
    entries = [*_objects(document, "statistics"), *_objects(document, "partition-statistics")]
    return [entry for entry in entries if isinstance(entry.get("statistics-path"), str)]


def _objects(document: JsonObject, name: str) -> Sequence[JsonObject]:
    listed = document.get(name)
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _folder(file: str) -> str:
    """The table's folder that a file lies in, as tables are laid out; else the file's own."""
    for part in ("/data/", "/metadata/"):
        before, found, _ = file.rpartition(part)
        if found:
            return before
    return file.rpartition("/")[0]
