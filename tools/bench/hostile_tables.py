"""Makes tables whose plans cost the most that the bounds of docs/bounds.md let through, for
tools/bench/hostile_plans.py."""

import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from struct import pack

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.iceberg.manifests import DATA, ManifestFile
from arco_catalog.state.manifest_lists import encode_manifest_list
from tools.bench.plan_tables import DELETES, SNAPSHOT, metadata
from tools.support.entry_files import entry, entry_file, entry_schema, optional

ID = 2
"""The id of the column that filters test and equality deletes compare."""
ALL: JsonObject = {"type": "not-null", "term": "id"}
"""A filter that no file is left out by."""
BLOCK = 64_000

Entry = Mapping[str, object]


@dataclass
class TableFiles:
    """Writes the manifests of a table into a folder. Partitions have one field, of the type `partition`."""

    folder: Path
    partition: str = "int"
    listed: list[ManifestFile] = field(default_factory=list)

    def add(self, entries: Iterable[Entry], *, content: int = DATA, copies: int = 1) -> None:
        """Writes a manifest, which is in the list under so many names."""
        written = [*entries]
        schema = entry_schema([optional(1000, "part", self.partition)], 2)
        first = self._place()
        first.write_bytes(entry_file(written, schema, block=BLOCK))
        self._list(first, content, len(written))
        for _ in range(copies - 1):
            os.link(first, place := self._place())
            self._list(place, content, len(written))

    def _place(self) -> Path:
        return self.folder / "metadata" / f"{len(self.listed)}.avro"

    def _list(self, place: Path, content: int, files: int) -> None:
        counts = (files, 0, 0, 10 * files, 0, 0)
        sequence_number = 1 if content == DATA else 2
        size = place.stat().st_size
        self.listed.append(ManifestFile(f"file://{place}", size, 0, content, sequence_number, 1, SNAPSHOT, *counts))

    def finish(self, columns: Sequence[JsonValue] = (), partition_type: str = "int") -> Path:
        """Writes the manifest list and the metadata file, with more columns. Returns the latter."""
        manifest_list = self.folder / "metadata" / f"snap-{SNAPSHOT}.avro"
        manifest_list.write_bytes(encode_manifest_list(self.listed, 2, (SNAPSHOT, None, 2)))
        document = {**metadata(self.folder, manifest_list), "last-sequence-number": 2}
        schema = _schema(partition_type, columns)
        last = 2 + len(columns)
        place = self.folder / "metadata" / "00000-0.metadata.json"
        place.write_bytes(dumps({**document, "schemas": [schema], "last-column-id": last}))
        return place


def _schema(partition_type: str, columns: Sequence[JsonValue]) -> JsonObject:
    fields: list[JsonValue] = [_column(1, "part", partition_type), _column(ID, "id", "long"), *columns]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def _column(number: int, name: str, type_name: str) -> JsonObject:
    return {"id": number, "name": name, "type": type_name, "required": False}


def _ids(low: int = 0, high: int = 9, columns: int = 0) -> dict[str, object]:
    """The statistics of a file whose ids are between two numbers, and as many columns besides."""
    numbers = range(ID, ID + 1 + columns)
    return {
        "value_counts": dict.fromkeys(numbers, 10),
        "null_value_counts": dict.fromkeys(numbers, 0),
        "lower_bounds": dict.fromkeys(numbers, pack("<q", low)),
        "upper_bounds": dict.fromkeys(numbers, pack("<q", high)),
    }


@dataclass(frozen=True)
class HostileTable:
    """A table, by what it has, with the request for a plan of it. `write` writes it by the given files, and returns its
    metadata file."""

    name: str
    write: Callable[[Path], Path]
    request: JsonObject = field(default_factory=lambda: {"filter": ALL})


def _names(manifests: int, files: int, name: Callable[[random.Random], str]) -> Callable[[Path], Path]:
    """A table whose files have such names."""

    def write(folder: Path) -> Path:
        made, drawn = TableFiles(folder), random.Random(1)
        for manifest in range(manifests):
            made.add(
                entry(file_path=f"file://{folder}/{manifest}-{number}-{name(drawn)}", partition={"part": 1}, **_ids())
                for number in range(files)
            )
        return made.finish()

    return write


def _partitions(manifests: int, files: int, size: int) -> Callable[[Path], Path]:
    """A table whose files have partitions of their own, texts of as many bytes."""

    def write(folder: Path) -> Path:
        made, drawn = TableFiles(folder, "string"), random.Random(1)
        for manifest in range(manifests):
            made.add(
                entry(1_000 * manifest + number, partition={"part": drawn.randbytes(size // 2).hex()}, **_ids())
                for number in range(files)
            )
        return made.finish(partition_type="string")

    return write


def _statistics(manifests: int, files: int, columns: int) -> Callable[[Path], Path]:
    """A table whose files have statistics of many columns."""

    def write(folder: Path) -> Path:
        made = TableFiles(folder)
        made.add(
            (entry(each, partition={"part": 1}, **_ids(columns=columns)) for each in range(files)), copies=manifests
        )
        return made.finish([_column(number, f"c{number}", "long") for number in range(ID + 1, ID + 1 + columns)])

    return write


def _many_manifests(folder: Path) -> Path:
    """A table of 50,000 manifests, each of one file."""
    made = TableFiles(folder)
    made.add([entry(partition={"part": 1}, **_ids())], copies=50_000)
    return made.finish()


def _wide_schema(folder: Path) -> Path:
    """A table of 20,000 columns with long names, whose files have no statistics of them."""
    made = TableFiles(folder)
    made.add((entry(each, partition={"part": 1}, **_ids()) for each in range(1_000)), copies=10)
    return made.finish([_column(number, f"c{number}-{'x' * 200}", "long") for number in range(ID + 1, 20_000)])


def _deletes(count: int, manifests: int, files: int, of: Callable[[Path, int], Entry]) -> Callable[[Path], Path]:
    """A table with so many delete files, in so many manifests, and data files."""

    def write(folder: Path) -> Path:
        made = TableFiles(folder)
        made.add(entry(file_path=_data(folder, each), partition={"part": 1}, **_ids()) for each in range(files))
        each = count // manifests
        for manifest in range(manifests):
            made.add((of(folder, each * manifest + number) for number in range(each)), content=DELETES)
        return made.finish()

    return write


def _data(folder: Path, number: int) -> str:
    return f"file://{folder}/{number}.parquet"


def _equality(low: int) -> Callable[[Path, int], Entry]:
    """Equality deletes of ids from a number on."""

    def of(folder: Path, number: int) -> Entry:
        path = f"file://{folder}/e{number}.parquet"
        statistics = _ids(low + number, low + number + 9) if low else _ids()
        return entry(content=2, file_path=path, partition={"part": 1}, equality_ids=[ID], **statistics)

    return of


def _positions(named: bool) -> Callable[[Path, int], Entry]:
    """Files of positions, for the first data file or for a partition."""

    def of(folder: Path, number: int) -> Entry:
        path = f"file://{folder}/p{number}.parquet"
        of_file = {"referenced_data_file": _data(folder, 0)} if named else {}
        return entry(content=DELETES, file_path=path, partition={"part": 1}, **of_file)

    return of


def _values(count: int, size: int) -> list[JsonValue]:
    return [f"{number:0{size}}" for number in range(count)]


def _pairs(count: int) -> JsonObject:
    """A balanced filter of so many comparisons of the id."""
    parts: list[JsonValue] = [{"type": "eq", "term": "id", "value": 3 * number} for number in range(count)]
    while len(parts) > 1:
        parts = [_or(parts[at : at + 2]) for at in range(0, len(parts), 2)]
    return {"filter": parts[0]}


def _or(parts: Sequence[JsonValue]) -> JsonValue:
    return parts[0] if len(parts) == 1 else {"type": "or", "left": parts[0], "right": parts[1]}


def _nested(levels: int) -> JsonObject:
    found: JsonValue = ALL
    for number in range(levels):
        found = {"type": "and", "left": found, "right": {"type": "gt-eq", "term": "id", "value": -number}}
    return {"filter": found}


_PLAIN = _statistics(10, 5_000, 0)
_TEXT = _partitions(4, 1_000, 36)
_STATS: JsonObject = {"filter": ALL, "stats-fields": [f"c{number}" for number in range(3, 103)]}

TABLES: Sequence[HostileTable] = (
    HostileTable("32 x 1,000 files, names of 3 KB", _names(32, 1_000, lambda drawn: drawn.randbytes(1_500).hex())),
    HostileTable(
        "8 x 1,000 files, names of 4,000 characters of 4 bytes",
        _names(8, 1_000, lambda drawn: "".join(map(chr, drawn.choices(range(0x1F300, 0x1F5FF), k=4_000)))),
    ),
    HostileTable("4 x 100 files, partitions of 200 KB each", _partitions(4, 100, 200_000)),
    HostileTable("4 x 12 files, partitions of 1.9 MB each", _partitions(4, 12, 1_900_000)),
    HostileTable("20 x 500 files, statistics of 100 columns, requested", _statistics(20, 500, 100), _STATS),
    HostileTable("10 x 40 files, statistics of 9,000 columns", _statistics(10, 40, 9_000)),
    HostileTable("10 x 1,000 files, a schema of 20,000 columns", _wide_schema),
    HostileTable("50,000 manifests of one file", _many_manifests),
    HostileTable("100,000 equality deletes for each file", _deletes(100_000, 10, 100, _equality(0))),
    HostileTable("100,000 equality deletes for no file", _deletes(100_000, 10, 5_000, _equality(1_000))),
    HostileTable("100,000 files of positions for one file", _deletes(100_000, 10, 100, _positions(named=True))),
    HostileTable("100,000 files of positions for each file", _deletes(100_000, 10, 100, _positions(named=False))),
    HostileTable("400,000 files of positions in one manifest", _deletes(400_000, 1, 100, _positions(named=True))),
    HostileTable("a filter of 5,000 comparisons, 10 x 5,000 files", _PLAIN, _pairs(5_000)),
    HostileTable("a filter of 95 levels, 10 x 5,000 files", _PLAIN, _nested(95)),
    HostileTable(
        "a filter of 20,000 texts, 4 x 1,000 partitions",
        _TEXT,
        {"filter": {"type": "in", "term": "part", "values": _values(20_000, 36)}},
    ),
)
