"""What a snapshot holds: its manifests, its data files by partition, and what is deleted of each."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from arco_catalog.iceberg import table
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.upkeep.purge.avro import Fields
from reconciler.compact.values import long_of, object_of, objects_of, text_of
from reconciler.live_files import live_entries, manifests_in
from reconciler.maintain.deletes import EQUALITY_DELETES, POSITION_DELETES, Applied, DeleteFile, DeleteIndex
from reconciler.maintain.files_elsewhere import FilesElsewhere

FILE_FIELDS: Fields = dict.fromkeys(
    ("content", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes")
)
DATA_FIELDS: Fields = {"status": None, "sequence_number": None, "data_file": FILE_FIELDS}
DELETE_FIELDS: Fields = {
    **DATA_FIELDS,
    "data_file": {**FILE_FIELDS, **dict.fromkeys(("referenced_data_file", "lower_bounds", "upper_bounds"))},
}
PATH_ID = 2**31 - 1 - 101
"""The id of the column `file_path` in files of position deletes (Iceberg specification, "Reserved Field IDs")."""

UNDELETED = Applied()


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file: its bytes, its rows, and what is deleted of it."""

    size: int
    records: int = 0
    deletes: Applied = UNDELETED


@dataclass(frozen=True, slots=True)
class Group:
    """The files of one partition that may be rewritten together; of position deletes the bytes of each."""

    data: tuple[DataFile, ...] = ()
    position_deletes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifests:
    """The sizes of a snapshot's manifests: of data files, and of delete files."""

    data: tuple[int, ...] = ()
    deletes: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.data) + len(self.deletes)


NO_MANIFESTS = Manifests()


@dataclass(frozen=True, slots=True)
class Contents:
    """All of it; `delete_files` counts deletion vectors and equality deletes, too, and `records` deleted rows.
    `elsewhere` has the files that do not lie below the table's location, one for each folder."""

    manifests: Manifests = NO_MANIFESTS
    groups: Sequence[Group] = ()
    delete_files: int = 0
    records: int = 0
    elsewhere: Sequence[str] = ()


async def read_contents(session: Session, document: JsonObject, snapshot: JsonObject) -> Contents:
    """What a snapshot of a table holds. Deletes are read first, then which of them apply to each data file. Raises
    `Refusal`, `Unreadable` and `StoreError`."""
    listed = await manifests_in(session, snapshot)
    data = [each for each in listed if not each.get("content")]  # v1 has none
    deletes = [each for each in listed if each.get("content")]
    reading = _Reading(
        session,
        long_of(document.get("default-spec-id")) or 0,
        _unpartitioned(document),
        FilesElsewhere(table.location(document)),
    )
    for file in (snapshot.get("manifest-list"), *(each.get("manifest_path") for each in listed)):
        if isinstance(file, str):
            reading.elsewhere.add(file)
    for manifest in deletes:
        await reading.read_deletes(manifest)
    index = DeleteIndex.of(reading.deletes)
    for manifest in data:
        await reading.read_data(manifest, index)
    return Contents(
        Manifests(_lengths(data), _lengths(deletes)),
        [Group(tuple(files), tuple(sizes)) for files, sizes in reading.groups.values()],
        len(reading.deletes),
        reading.records,
        reading.elsewhere.files,
    )


@dataclass(slots=True)
class _Reading:
    session: Session
    spec: int
    unpartitioned: frozenset[int]
    elsewhere: FilesElsewhere
    groups: dict[str, tuple[list[DataFile], list[int]]] = field(default_factory=dict)
    deletes: list[DeleteFile] = field(default_factory=list)
    records: int = 0

    async def read_deletes(self, manifest: JsonObject) -> None:
        """Takes note of delete files."""
        spec = self._spec(manifest)
        async with aclosing(live_entries(self.session, str(manifest.get("manifest_path")), DELETE_FIELDS)) as entries:
            async for entry in entries:
                file = object_of(entry.get("data_file"))
                self.elsewhere.add(str(file.get("file_path")))
                content, vector = long_of(file.get("content")), str(file.get("file_format")).lower() == "puffin"
                partition: str | None = repr(file.get("partition"))
                if content == POSITION_DELETES and not vector:
                    self._group(str(partition))[1].append(long_of(file.get("file_size_in_bytes")) or 0)
                if content == EQUALITY_DELETES and spec in self.unpartitioned:
                    partition = None
                self.deletes.append(
                    DeleteFile(
                        content or 0,
                        _sequence(entry, manifest),
                        long_of(file.get("record_count")) or 0,
                        None if partition is None else f"{spec} {partition}",
                        _data_file_of(file) if content == POSITION_DELETES else None,
                        vector,
                    )
                )

    async def read_data(self, manifest: JsonObject, index: DeleteIndex) -> None:
        """Takes note of data files. Those of another spec than the table's may hold rows of any partition: Iceberg
        rewrites them together."""
        spec = self._spec(manifest)
        async with aclosing(live_entries(self.session, str(manifest.get("manifest_path")), DATA_FIELDS)) as entries:
            async for entry in entries:
                file = object_of(entry.get("data_file"))
                self.elsewhere.add(str(file.get("file_path")))
                partition, records = repr(file.get("partition")), long_of(file.get("record_count")) or 0
                applied = index.to(str(file.get("file_path")), f"{spec} {partition}", _sequence(entry, manifest))
                found = DataFile(long_of(file.get("file_size_in_bytes")) or 0, records, applied)
                self._group(partition if spec == self.spec else repr({}))[0].append(found)
                self.records += records

    def _group(self, partition: str) -> tuple[list[DataFile], list[int]]:
        return self.groups.setdefault(partition, ([], []))

    def _spec(self, manifest: JsonObject) -> int:
        said = long_of(manifest.get("partition_spec_id"))
        return self.spec if said is None else said


def _unpartitioned(document: JsonObject) -> frozenset[int]:
    """The specs by which a table has no partitions."""
    return frozenset(
        long_of(spec.get("spec-id")) or 0
        for spec in objects_of(document.get("partition-specs"))
        if all(each.get("transform") == "void" for each in objects_of(spec.get("fields")))
    )


def _sequence(entry: JsonObject, manifest: JsonObject) -> int:
    """An entry's sequence number: without one it has its manifest's, and in v1 there is none."""
    said = long_of(entry.get("sequence_number"))
    return (long_of(manifest.get("sequence_number")) or 0) if said is None else said


def _data_file_of(deletes: JsonObject) -> str | None:
    """The only data file that position deletes are of, where they say so, or where the bounds of their paths do."""
    said = text_of(deletes.get("referenced_data_file"))
    if said is not None:
        return said
    lower, upper = _bound(deletes.get("lower_bounds")), _bound(deletes.get("upper_bounds"))
    return lower.decode(errors="replace") if lower is not None and lower == upper else None


def _bound(bounds: object) -> bytes | None:
    """Of the column of paths: writers make a list of pairs of the map."""
    pairs = bounds if isinstance(bounds, list) else []
    return next((each["value"] for each in pairs if each.get("key") == PATH_ID), None)


def _lengths(manifests: Sequence[JsonObject]) -> tuple[int, ...]:
    return tuple(long_of(each.get("manifest_length")) or 0 for each in manifests)
