"""The entries of manifest lists, and of the manifests of an append, as values (table spec, "Manifest Lists",
"Manifests"). What a client wrote there is checked before it is used."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

from arco_catalog.iceberg.appends import Append, AppendTarget, NotRebasable
from arco_catalog.iceberg.json import JsonObject, MalformedJson, loads
from arco_catalog.iceberg.shapes import MAX_LONG

AvroValue: TypeAlias = "bool | int | float | str | bytes | list[AvroValue] | dict[str, AvroValue] | None"
AvroRecord: TypeAlias = Mapping[str, AvroValue]

DATA = 0
"""The content of manifests and files that have rows, and no deletes."""
ADDED = 1
"""The status of an entry whose file its snapshot adds."""
MAX_COUNT = (1 << 31) - 1
MAX_ADDED_MANIFESTS = 16
"""Maximum manifests that one append may add: an engine writes a new one after 8 MB."""
MAX_SUMMARIES = 1_000
"""Maximum summaries of partition fields in an entry of a manifest list."""
MAX_LIST_SUMMARIES = 50_000
"""Maximum summaries of partition fields in a manifest list. One takes up to a hundred times its bytes in the file."""
MAX_SCHEMA_BYTES = 512 << 10
"""Maximum bytes of the table's schema in the header of a manifest."""
_READ_ENTRY = "an entry of a manifest list, read for a rebase or the plan of a scan,"
"""The beginning of the errors of `ManifestFile.parse`."""
_OLDER_NAMES = {
    "added_data_files_count": "added_files_count",
    "existing_data_files_count": "existing_files_count",
    "deleted_data_files_count": "deleted_files_count",
}


class FieldSummary(NamedTuple):
    """The values of one partition field in all files of a manifest, as an entry of a manifest list has them: whether
    there are nulls or NaN, and the bounds of the others. None stands for an unknown field, or for the bound of no
    values."""

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None

    @classmethod
    def parse(cls, value: AvroValue) -> "FieldSummary":
        """Reads a summary as it was decoded. Raises `NotRebasable` if `contains_null` is missing, and for an unknown
        field, or one of a wrong type; the other fields are None if they are missing."""
        if not isinstance(value, dict) or not value.keys() <= {*cls._fields}:
            raise _invalid_partitions()
        null, nan, lower, upper = (value.get(name) for name in cls._fields)
        if not isinstance(null, bool) or not isinstance(nan, bool | None):
            raise _invalid_partitions()
        if not isinstance(lower, bytes | None) or not isinstance(upper, bytes | None):
            raise _invalid_partitions()
        return cls(null, nan, lower, upper)


class ManifestFile(NamedTuple):
    """An entry of a manifest list: a manifest, with the numbers that a reader needs before it reads the manifest. The
    fields have the names and meanings of the table specification; `partitions` is None also for an empty list."""

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: int
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int
    added_files_count: int
    existing_files_count: int
    deleted_files_count: int
    added_rows_count: int
    existing_rows_count: int
    deleted_rows_count: int
    partitions: Sequence[FieldSummary] | None = None
    key_metadata: bytes | None = None
    first_row_id: int | None = None

    @property
    def live_files_count(self) -> int:
        """How many files of the manifest are not deleted, by the counts of its writer."""
        return self.added_files_count + self.existing_files_count

    @property
    def entries_count(self) -> int:
        """How many entries the manifest has, also of deleted files, by the counts of its writer."""
        return self.added_files_count + self.existing_files_count + self.deleted_files_count

    @classmethod
    def parse(cls, record: AvroRecord) -> "ManifestFile":
        """Reads an entry of a manifest list as it was decoded. A missing `content`, `sequence_number` or
        `min_sequence_number` counts as 0; `partitions`, `key_metadata` and `first_row_id` may be missing. Raises
        `NotRebasable` for another field that is missing, or for one that has a wrong type or an impossible value."""
        if not _OLDER_NAMES.keys().isdisjoint(record):
            record = {_OLDER_NAMES.get(name, name): value for name, value in record.items()}
        return cls(
            _text(record, "manifest_path"),
            _number(record, "manifest_length"),
            _number(record, "partition_spec_id", MAX_COUNT),
            _number(record, "content", 1, DATA),
            _number(record, "sequence_number", MAX_LONG, 0),
            _number(record, "min_sequence_number", MAX_LONG, 0),
            _number(record, "added_snapshot_id"),
            _number(record, "added_files_count", MAX_COUNT),
            _number(record, "existing_files_count", MAX_COUNT),
            _number(record, "deleted_files_count", MAX_COUNT),
            _number(record, "added_rows_count"),
            _number(record, "existing_rows_count"),
            _number(record, "deleted_rows_count"),
            _partitions(record.get("partitions")),
            _bytes(record, "key_metadata"),
            None if record.get("first_row_id") is None else _number(record, "first_row_id"),
        )


class ManifestListParser:
    """Reads the entries of one manifest list, one after the other; together they may have `max_summaries` summaries of
    partition fields."""

    def __init__(self, max_summaries: int = MAX_LIST_SUMMARIES) -> None:
        self._max_summaries = max_summaries
        self._summaries = 0

    def parse(self, record: JsonObject) -> ManifestFile:
        """Reads the next entry of a manifest list. Raises `NotRebasable` as `ManifestFile.parse` does, and if the list
        has more summaries of partition fields than a list may have."""
        entry = ManifestFile.parse(cast(AvroRecord, record))
        self._summaries += len(entry.partitions or ())
        if self._summaries > self._max_summaries:
            raise NotRebasable(
                f"a manifest list has more than {self._max_summaries:,} summaries of partition fields, so it serves "
                "no scan and no rebase of an append"
            )
        return entry


LIST_FIELDS = frozenset({*ManifestFile._fields, *_OLDER_NAMES})
"""The fields of an entry that the catalog knows. It copies no list that has others, because it would lose them."""


def check_list_fields(names: Collection[str]) -> None:
    """Raises `NotRebasable` if the entries of a manifest list have a field that the catalog does not know."""
    unknown = sorted(set(names) - LIST_FIELDS)
    if unknown:
        raise NotRebasable(f"a manifest list has fields that the catalog does not know: {', '.join(unknown)[:200]}")


def added_manifests(client: Sequence[ManifestFile], parent: Sequence[ManifestFile]) -> Sequence[ManifestFile]:
    """Returns the manifests that an append adds, in order: those in the `client`'s list that are not in the list of its
    parent. Raises `NotRebasable` if an entry of the parent is missing or differs, if the parent's list has one twice,
    or if the append adds no manifests, too many, or one twice."""
    left = {each.manifest_path: each for each in parent}
    if len(left) != len(parent):
        raise NotRebasable("the manifest list of the parent snapshot names a manifest twice")
    added: list[ManifestFile] = []
    for each in client:
        if each.manifest_path not in left:
            added.append(each)
        elif left.pop(each.manifest_path) != each:
            raise NotRebasable(f"the commit's manifest list changes the entry of {each.manifest_path[:200]}")
    if left:
        raise NotRebasable(f"the commit's manifest list lacks manifests of the parent snapshot: {min(left)[:200]}")
    if not 0 < len(added) <= MAX_ADDED_MANIFESTS:
        raise NotRebasable(f"the commit adds {len(added):,} manifests, expected 1 to {MAX_ADDED_MANIFESTS}")
    if len({each.manifest_path for each in added}) != len(added):
        raise NotRebasable("the commit's manifest list names a new manifest twice")
    return added


def check_row_ids(manifests: Iterable[ManifestFile]) -> None:
    """Raises `NotRebasable` if a data manifest has no first row id. The caller calls it only for a table of format
    version 3: such a table was upgraded, and the next commit of a client gives out the ids."""
    for each in manifests:
        if each.content == DATA and each.first_row_id is None:
            raise NotRebasable(f"the table's manifest {each.manifest_path[:200]} has no first_row_id")


def check_added(manifest: ManifestFile, append: Append, target: AppendTarget) -> None:
    """Raises `NotRebasable` if a manifest that an append adds has, by its entry in the manifest list, anything but new
    data files of its own, is encrypted, or has a partition spec that the table lacks."""
    where = manifest.manifest_path[:200]
    if manifest.content != DATA:
        raise NotRebasable(f"the manifest {where} has delete files")
    if manifest.added_snapshot_id != append.snapshot["snapshot-id"]:
        raise NotRebasable(f"the manifest {where} is of another snapshot")
    if manifest.existing_files_count or manifest.deleted_files_count:
        raise NotRebasable(f"the manifest {where} has files that are not new")
    if manifest.existing_rows_count or manifest.deleted_rows_count:
        raise NotRebasable(f"the manifest {where} has rows that are not new")
    if manifest.key_metadata is not None:
        raise NotRebasable(f"the manifest {where} is encrypted")
    if manifest.partition_spec_id not in target.spec_ids:
        raise NotRebasable(f"the table lacks the partition spec of the manifest {where}")


class AddedFiles:
    """The check of one manifest of an append, from its header and then its entries: every file must be a new data file
    of the append, without the sequence numbers and the row id that a commit assigns. Counts the files, their rows and
    bytes."""

    def __init__(self, manifest: ManifestFile, snapshot_id: int) -> None:
        self._manifest = manifest
        self._snapshot_id = snapshot_id
        self._where = manifest.manifest_path[:200]
        self._schema_id: int | None = None
        self._format_version = 0
        self.files = self.rows = self.size = 0

    def read_header(self, metadata: Mapping[str, bytes]) -> None:
        """Takes the metadata in the header of a manifest of an append. Raises `NotRebasable` unless it is of data files
        and of the partition spec that the manifest list names, and for a schema that is too long."""
        if metadata.get("content", b"data") != b"data":
            raise NotRebasable(f"the manifest {self._where} has delete files")
        if metadata.get("partition-spec-id") != str(self._manifest.partition_spec_id).encode():
            raise NotRebasable(
                f"the manifest {self._where} has no partition spec in the header, or another than the manifest list has"
            )
        version = metadata.get("format-version", b"")
        self._format_version = int(version) if version in (b"2", b"3") else 0
        self._schema_id = _schema_id(metadata, self._where)

    def check(self, target: AppendTarget) -> None:
        """Raises `NotRebasable` unless the table may have a manifest of this format version and schema, and the
        manifest list has the numbers of files and rows that the manifest has: row ids are given out by them."""
        manifest = self._manifest
        if not 2 <= self._format_version <= target.format_version:
            raise NotRebasable(
                f"the manifest {self._where} has no format version, or one below 2 or above that of the table, "
                f"{target.format_version}"
            )
        if self._schema_id not in target.schema_ids:
            raise NotRebasable(f"the table lacks the schema of the manifest {self._where}, or the manifest names none")
        if (self.files, self.rows) != (manifest.added_files_count, manifest.added_rows_count):
            raise NotRebasable(
                f"the manifest {self._where} has {self.files} files and {self.rows} rows, its list has other numbers"
            )

    def add(self, record: JsonObject) -> None:
        """Counts the next entry of a manifest of an append. Raises `NotRebasable` for one that is no new data file of
        this append, that has a sequence number or row id already, or that has no valid count of rows or bytes."""
        entry = cast(AvroRecord, record)
        file = entry.get("data_file")
        if not isinstance(file, dict):
            raise NotRebasable(f"an entry of the manifest {self._where} has no data file")
        if entry.get("status") != ADDED or entry.get("snapshot_id") not in (None, self._snapshot_id):
            raise NotRebasable(f"the manifest {self._where} has a file that this commit does not add")
        if (file.get("content") or DATA) != DATA:
            raise NotRebasable(f"the manifest {self._where} has delete files")
        assigned = entry.get("sequence_number"), entry.get("file_sequence_number"), file.get("first_row_id")
        if assigned != (None, None, None):
            raise NotRebasable(f"the manifest {self._where} has a sequence number or row id for a new file")
        self.files += 1
        self.rows += _number(file, "record_count")
        self.size += _number(file, "file_size_in_bytes")


def _schema_id(metadata: Mapping[str, bytes], where: str) -> int | None:
    """Returns the schema id in the header of the manifest at the location `where`; None without one, also if the schema
    is malformed. Raises `NotRebasable` for too long a schema."""
    stated = metadata.get("schema", b"")
    if len(stated) > MAX_SCHEMA_BYTES:
        raise NotRebasable(f"the manifest {where} has a schema of more than {MAX_SCHEMA_BYTES:,} bytes")
    try:
        schema = loads(stated)
    except MalformedJson:
        return None
    found = schema.get("schema-id") if isinstance(schema, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _text(values: AvroRecord, name: str) -> str:
    """Returns a field that must be a text of at least one character. Raises `NotRebasable` for any other value."""
    found = values.get(name)
    if not isinstance(found, str) or not found:
        raise NotRebasable(f"{_READ_ENTRY} has no valid {name}")
    return found


def _number(values: AvroRecord, name: str, highest: int = MAX_LONG, default: int | None = None) -> int:
    """Returns a field that must be a number from 0 to `highest`, or the `default` if it is missing. Raises
    `NotRebasable`, also for a missing one without a default."""
    found = values.get(name)
    if found is None:
        found = default
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= highest:
        raise NotRebasable(f"{_READ_ENTRY}, or of a manifest that a rebase reads, has no valid {name}")
    return found


def _bytes(values: AvroRecord, name: str) -> bytes | None:
    """Returns a field that may be bytes; None if it is missing. Raises `NotRebasable` for any other value."""
    found = values.get(name)
    if found is not None and not isinstance(found, bytes):
        raise NotRebasable(f"{_READ_ENTRY} has no valid {name}")
    return found


def _partitions(value: AvroValue) -> Sequence[FieldSummary] | None:
    """Returns the summaries of partition fields; None if there are none. Raises `NotRebasable` for malformed ones, and
    for more than `MAX_SUMMARIES`."""
    if value is None or value == []:
        return None
    if not isinstance(value, list):
        raise _invalid_partitions()
    if len(value) > MAX_SUMMARIES:
        raise NotRebasable(f"{_READ_ENTRY} has more than {MAX_SUMMARIES:,} summaries of partition fields")
    return [FieldSummary.parse(each) for each in value]


def _invalid_partitions() -> NotRebasable:
    """Returns the error for malformed summaries of partition fields."""
    return NotRebasable(f"{_READ_ENTRY} has no valid partitions")
