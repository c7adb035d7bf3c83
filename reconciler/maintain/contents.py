"""Reads the contents of a table's snapshot: the manifests, the data files by partition, and the deletes that apply to
each."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from arco_catalog.iceberg import table
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.avro import Composite, Fields
from reconciler.compact.values import long_of, object_of, objects_of, text_of
from reconciler.live_files import live_entries, manifests_in
from reconciler.maintain.deletes import EQUALITY_DELETES, POSITION_DELETES, AppliedDeletes, DeleteFile, DeleteIndex
from reconciler.maintain.files_elsewhere import FilesElsewhere

FILE_FIELDS: Fields = {
    **dict.fromkeys(("content", "file_path", "file_format", "record_count", "file_size_in_bytes")),
    "partition": Composite.RECORD,
}
DATA_FIELDS: Fields = {"status": None, "sequence_number": None, "data_file": FILE_FIELDS}
DELETE_FIELDS: Fields = {
    **DATA_FIELDS,
    "data_file": {
        **FILE_FIELDS,
        "referenced_data_file": None,
        **dict.fromkeys(("lower_bounds", "upper_bounds"), Composite.RECORDS),
    },
}
PATH_ID = 2**31 - 1 - 101
"""The id of the column `file_path` in files of position deletes (Iceberg specification, "Reserved Field IDs")."""

NO_DELETES = AppliedDeletes()


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file of a snapshot: the size in bytes, the number of rows, and the deletes that apply to it. Where
    files of position deletes are selected for a rewrite, it stands for one of them, with only the size."""

    size: int
    records: int = 0
    deletes: AppliedDeletes = NO_DELETES


@dataclass(frozen=True, slots=True)
class Group:
    """The files of one partition of a snapshot, which may be rewritten together: the data files, and the size in bytes
    of each file of position deletes. All data files of other partition specs than the table's are in one group."""

    data: tuple[DataFile, ...] = ()
    position_deletes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifests:
    """The sizes in bytes of a snapshot's manifests: those of data files, and those of delete files."""

    data: tuple[int, ...] = ()
    deletes: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.data) + len(self.deletes)


NO_MANIFESTS = Manifests()


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a table's snapshot. `delete_files` counts files of position deletes and of equality deletes, and
    deletion vectors; `records` counts the rows of all data files, deleted ones included. `elsewhere` has one file (of
    any kind: manifest list, manifest, data file or delete file) for each folder outside of the table's location, and
    any path with `.` or `..`."""

    manifests: Manifests = NO_MANIFESTS
    groups: Sequence[Group] = ()
    delete_files: int = 0
    records: int = 0
    elsewhere: Sequence[str] = ()


async def read_contents(session: Session, document: JsonObject, snapshot: JsonObject) -> Contents:
    """Reads the manifest list and all manifests of a table's snapshot, and returns what they contain. `document` is the
    table's metadata. Manifests of deletes are read first, so that each data file is known with the deletes that apply
    to it. Raises `Refusal`, `Unreadable` or `StoreError` if one can't be read."""
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
    """A read of a snapshot's manifests: the files that were found so far, in groups by partition, and the delete files.
    `spec` is the table's default partition spec, `unpartitioned` the ones without fields or with only void ones, and
    `records` the number of rows in the data files."""

    session: Session
    spec: int
    unpartitioned: frozenset[int]
    elsewhere: FilesElsewhere
    groups: dict[str, tuple[list[DataFile], list[int]]] = field(default_factory=dict)
    deletes: list[DeleteFile] = field(default_factory=list)
    records: int = 0

    async def read_deletes(self, manifest: JsonObject) -> None:
        """Reads a manifest of deletes, and adds its live delete files to `deletes`; the sizes of files of position
        deletes, but not of deletion vectors, also to the groups of their partitions; files outside of the table's
        location also to `elsewhere`."""
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
        """Reads a manifest of data files, and adds its live data files, with the deletes that apply to them by `index`,
        to the groups of their partitions, and their rows to `records`; files outside of the table's location also to
        `elsewhere`. Files of another partition spec than the table's form one group: Iceberg rewrites them together,
        since they may hold rows of any partition."""
        spec = self._spec(manifest)
        async with aclosing(live_entries(self.session, str(manifest.get("manifest_path")), DATA_FIELDS)) as entries:
            async for entry in entries:
                file = object_of(entry.get("data_file"))
                self.elsewhere.add(str(file.get("file_path")))
                partition, records = repr(file.get("partition")), long_of(file.get("record_count")) or 0
                applied = index.deletes_of(
                    str(file.get("file_path")), f"{spec} {partition}", _sequence(entry, manifest)
                )
                found = DataFile(long_of(file.get("file_size_in_bytes")) or 0, records, applied)
                self._group(partition if spec == self.spec else repr({}))[0].append(found)
                self.records += records

    def _group(self, partition: str) -> tuple[list[DataFile], list[int]]:
        """Returns the lists of data files and of position deletes of a partition, new empty ones if it has none."""
        return self.groups.setdefault(partition, ([], []))

    def _spec(self, manifest: JsonObject) -> int:
        """Returns the id of a manifest's partition spec; the table's default spec if the manifest names none."""
        spec_id = long_of(manifest.get("partition_spec_id"))
        return self.spec if spec_id is None else spec_id


def _unpartitioned(document: JsonObject) -> frozenset[int]:
    """Returns the ids of the partition specs without partition fields, or with only void ones."""
    return frozenset(
        long_of(spec.get("spec-id")) or 0
        for spec in objects_of(document.get("partition-specs"))
        if all(each.get("transform") == "void" for each in objects_of(spec.get("fields")))
    )


def _sequence(entry: JsonObject, manifest: JsonObject) -> int:
    """Returns the sequence number of a manifest entry: its own, or that of the manifest; 0 in format v1, which has
    none."""
    number = long_of(entry.get("sequence_number"))
    return (long_of(manifest.get("sequence_number")) or 0) if number is None else number


def _data_file_of(deletes: JsonObject) -> str | None:
    """Returns the path of the only data file that a file of position deletes refers to, by `referenced_data_file`, or
    by equal bounds of the column of paths; None if it may refer to more than one."""
    referenced = text_of(deletes.get("referenced_data_file"))
    if referenced is not None:
        return referenced
    lower, upper = _bound(deletes.get("lower_bounds")), _bound(deletes.get("upper_bounds"))
    return lower.decode(errors="replace") if lower is not None and lower == upper else None


def _bound(bounds: object) -> bytes | None:
    """Returns the bound of the column of paths in a manifest entry's bounds; None if there is none. Avro has no maps
    with integer keys, so Iceberg writes a list of pairs."""
    pairs = bounds if isinstance(bounds, list) else []
    return next((each["value"] for each in pairs if each.get("key") == PATH_ID), None)


def _lengths(manifests: Sequence[JsonObject]) -> tuple[int, ...]:
    """Returns the lengths of manifests in bytes; 0 for one that states none."""
    return tuple(long_of(each.get("manifest_length")) or 0 for each in manifests)
