"""Makes tables for scans: manifests with the statistics of twenty columns, of data files that exist in name only."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from struct import pack

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.iceberg.manifests import DATA, FieldSummary, ManifestFile
from arco_catalog.state.manifest_lists import encode_manifest_list
from tools.support.entry_files import entry, entry_file, entry_schema, optional

DELETES = 1
"""The content of delete manifests, and of position delete files."""
PARTITIONS = 1_000
IDS = 1_000
"""The number of ranges of ids, of which each data file has one."""
RANGE = 1_000_000
"""The ids of a range."""
DELETED_PATH = 2147483546
"""The id of the column of a position delete file that names a data file."""
TYPES = ("int", "long", *(["long", "string", "double"] * 6))
"""The types of the columns: the partition's, the ids', and eighteen others."""
DISTINCT_ENTRIES = 100_000
"""About how many entries are written. A table of more has each of its manifests under several names."""
SNAPSHOT = 1
BLOCK = 64_000


@dataclass(frozen=True)
class Shape:
    """The shape of a table: so many manifests of as many entries each, and delete manifests of ten files each."""

    manifests: int
    entries: int
    delete_manifests: int = 0

    @classmethod
    def parse(cls, text: str) -> "Shape":
        """Reads `1000x100`, or `1000x100+30` with delete manifests. Raises `ValueError` for anything else."""
        data, _, deletes = text.partition("+")
        manifests, _, entries = data.partition("x")
        return cls(int(manifests), int(entries), int(deletes or 0))

    def __str__(self) -> str:
        deletes = f" + {self.delete_manifests:,} with deletes" if self.delete_manifests else ""
        return f"{self.manifests:,} x {self.entries:,}{deletes}"

    @property
    def distinct(self) -> int:
        """The number of manifests that are written, of which the others are copies."""
        return min(self.manifests, max(1, DISTINCT_ENTRIES // self.entries))

    def partition(self, number: int) -> int:
        """The partition of an entry of the distinct manifests: sorted, as if a manifest had the files of some days."""
        return number * PARTITIONS // (self.distinct * self.entries)

    def entries_below(self, partition: int) -> int:
        """The number of entries in manifests that may have a file of a partition below this one."""
        distinct = sum(self.partition(each * self.entries) < partition for each in range(self.distinct))
        whole, rest = divmod(self.manifests, self.distinct)
        return self.entries * (distinct * whole + min(distinct, rest))


def write(shape: Shape, folder: Path) -> Path:
    """Writes a table into a folder. Returns its metadata file."""
    (folder / "metadata").mkdir(parents=True)
    listed = [*_data_manifests(shape, folder), *_delete_manifests(shape, folder)]
    manifest_list = folder / "metadata" / f"snap-{SNAPSHOT}.avro"
    manifest_list.write_bytes(encode_manifest_list(listed, 2, (SNAPSHOT, None, 1)))
    place = folder / "metadata" / "00000-0.metadata.json"
    place.write_bytes(dumps(metadata(folder, manifest_list)))
    return place


def _data_manifests(shape: Shape, folder: Path) -> Iterator[ManifestFile]:
    distinct: list[ManifestFile] = []
    for number in range(shape.manifests):
        place = folder / "metadata" / f"{number}-m0.avro"
        if number >= shape.distinct:
            copied = distinct[number % shape.distinct]
            os.link(copied.manifest_path.removeprefix("file://"), place)
            yield copied._replace(manifest_path=f"file://{place}")
            continue
        numbers = range(number * shape.entries, (number + 1) * shape.entries)
        place.write_bytes(_manifest(_data_entry(folder, shape, each) for each in numbers))
        ends = (shape.partition(numbers[0]), shape.partition(numbers[-1]))
        distinct.append(_listed(place, DATA, shape.entries, ends))
        yield distinct[-1]


def _delete_manifests(shape: Shape, folder: Path) -> Iterator[ManifestFile]:
    """The deletes of one manifest are of neighbouring partitions."""
    files = shape.distinct * shape.entries
    for number in range(shape.delete_manifests):
        first = number * files // shape.delete_manifests
        numbers = [(first + each) % files for each in range(10)]
        place = folder / "metadata" / f"{number}-d0.avro"
        place.write_bytes(_manifest(_delete_entry(folder, shape, each, number) for each in numbers))
        partitions = [shape.partition(each) for each in numbers]
        yield _listed(place, DELETES, len(numbers), (min(partitions), max(partitions)))


def _manifest(entries: Iterator[Mapping[str, object]]) -> bytes:
    return entry_file(entries, entry_schema([optional(1000, "part", "int")], 2), block=BLOCK)


def _listed(place: Path, content: int, files: int, partitions: tuple[int, int]) -> ManifestFile:
    summary = FieldSummary(False, None, pack("<i", partitions[0]), pack("<i", partitions[1]))
    counts = (files, 0, 0, 1_000 * files, 0, 0)
    return ManifestFile(f"file://{place}", place.stat().st_size, 0, content, 1, 1, SNAPSHOT, *counts, [summary])


def _path(folder: Path, shape: Shape, number: int) -> str:
    return f"file://{folder}/data/part={shape.partition(number)}/{number:08}-0123456789abcdef.parquet"


def _data_entry(folder: Path, shape: Shape, number: int) -> Mapping[str, object]:
    ids, rows = number % IDS * RANGE, 1_000
    bounds = [_bounds(type_name, column, number) for column, type_name in enumerate(TYPES)]
    bounds[0] = (pack("<i", shape.partition(number)),) * 2
    bounds[1] = (pack("<q", ids), pack("<q", ids + RANGE - 1))
    return entry(
        number,
        file_path=_path(folder, shape, number),
        partition={"part": shape.partition(number)},
        record_count=rows,
        file_size_in_bytes=4_000_000 + number,
        column_sizes=dict.fromkeys(range(1, len(TYPES) + 1), 20000 + number % 1000),
        value_counts=dict.fromkeys(range(1, len(TYPES) + 1), rows),
        null_value_counts={column: number % 7 if column > 2 else 0 for column in range(1, len(TYPES) + 1)},
        nan_value_counts={column: 0 for column, type_name in enumerate(TYPES, 1) if type_name == "double"},
        lower_bounds={column: each[0] for column, each in enumerate(bounds, 1)},
        upper_bounds={column: each[1] for column, each in enumerate(bounds, 1)},
        split_offsets=[4],
        sort_order_id=0,
    )


def _bounds(type_name: str, column: int, number: int) -> tuple[bytes, bytes]:
    if type_name == "string":
        return f"customer-{number % 997:05}".encode(), f"customer-{number % 997 + column:05}~".encode()
    if type_name == "double":
        return pack("<d", number / 7), pack("<d", number / 7 + column)
    return pack("<q", number * 31), pack("<q", number * 31 + 1_000)


def _delete_entry(folder: Path, shape: Shape, number: int, manifest: int) -> Mapping[str, object]:
    """The entry of a position delete file for one data file."""
    path = {DELETED_PATH: _path(folder, shape, number).encode()}
    return entry(
        number,
        content=DELETES,
        file_path=f"file://{folder}/data/{number:08}-{manifest:05}-deletes.parquet",
        partition={"part": shape.partition(number)},
        lower_bounds=path,
        upper_bounds=path,
    )


def metadata(folder: Path, manifest_list: Path) -> JsonObject:
    """Returns the metadata of a table in a folder, with one snapshot that has this manifest list."""
    fields: list[JsonValue] = [
        {"id": number, "name": name, "type": type_name, "required": False}
        for number, (name, type_name) in enumerate(zip(_names(), TYPES, strict=True), 1)
    ]
    partition: JsonObject = {"source-id": 1, "field-id": 1000, "name": "part", "transform": "identity"}
    time_ms = 1_764_000_000_000
    return {
        "format-version": 2,
        "table-uuid": "01234567-89ab-4def-8123-456789abcdef",
        "location": f"file://{folder}",
        "last-sequence-number": 1,
        "last-updated-ms": time_ms,
        "last-column-id": len(TYPES),
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": [partition]}],
        "last-partition-id": 1000,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": SNAPSHOT,
        "refs": {"main": {"snapshot-id": SNAPSHOT, "type": "branch"}},
        "snapshots": [
            {
                "snapshot-id": SNAPSHOT,
                "sequence-number": 1,
                "timestamp-ms": time_ms,
                "manifest-list": f"file://{manifest_list}",
                "summary": {"operation": "append"},
                "schema-id": 0,
            }
        ],
    }


def _names() -> list[str]:
    return ["part", "id", *(f"column_{number}" for number in range(3, len(TYPES) + 1))]
