"""Selects the delete files that apply to a data file (table spec, "Scan Planning").

A delete file applies to older data files: one of positions, and a deletion vector, also to files of its own sequence
number, one of equality to files before it. It applies within its partition, unless it is of equality and its partition
spec has no fields. A file of positions may name the one data file that it is for: by a field, or by bounds of the
column of paths that are equal. A deletion vector replaces all files of positions for its data file.

Where a partition may have lost a value (`partition_keys`), more files of positions apply than are meant, which names of
data files in them make up for. Equality deletes would delete rows of another partition, so there is no answer.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Final, Generic, NamedTuple, TypeVar, cast

from arco_catalog.iceberg.content_files import ContentFile, FileContent, FileStatistics
from arco_catalog.iceberg.errors import BadRequest, Unsupported
from arco_catalog.iceberg.expressions.conditions import is_floating
from arco_catalog.iceberg.expressions.statistics import may_be_nan, null_test
from arco_catalog.iceberg.expressions.values import Value, decode_bound
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.iceberg.partition_keys import PartitionKeys, are_equal
from arco_catalog.iceberg.schema import Column

FILE_PATH_ID: Final = 2_147_483_546
"""The id of the column of a file of positions that has the paths of data files."""

MAX_COMPARED: Final = 100
"""Columns of a file of equality deletes whose values are compared with those of data files: each takes memory."""

T = TypeVar("T")


class DeleteIndex:
    """The delete files of a snapshot, or some of them, by the data files to which they apply. `specs` are the table's
    partition specs by id; `columns` are the columns of all its schemas by id, of the newest schema that
    has the id, and `dropped` those that a later schema does not have. `column_ids` are the columns whose statistics of
    data files it reads, and `comparisons` counts the comparisons of data files with delete files and their columns. The
    constructor raises an error for a deletion vector without a data file, and for two of one file."""

    def __init__(
        self,
        deletes: Iterable[ContentFile],
        specs: Mapping[int, PartitionSpec],
        columns: Mapping[int, Column],
        dropped: frozenset[int] = frozenset(),
    ) -> None:
        self.comparisons = 0
        self._columns = columns
        self._keys = keys = PartitionKeys(specs, dropped)
        self._vectors: dict[str, ContentFile] = {}
        by_path: dict[str, list[ContentFile]] = {}
        by_partition: dict[Hashable, list[ContentFile]] = {}
        equality: dict[Hashable, list[_EqualityDeletes]] = {}
        column_ids: set[int] = set()
        for file in deletes:
            if file.content == FileContent.EQUALITY_DELETES:
                found = _EqualityDeletes.of(file, columns)
                key = keys.of(file) if keys.is_partitioned(file.spec_id) else None
                equality.setdefault(key, []).append(found)
                column_ids.update(column.id for column, _ in found.values)
            elif file.is_deletion_vector:
                self._add_vector(file)
            elif (path := referenced_path(file)) is not None:
                by_path.setdefault(path, []).append(file)
            else:
                by_partition.setdefault(keys.of(file), []).append(file)
        self._by_path = {path: _positions(files) for path, files in by_path.items()}
        self._by_partition = {key: _positions(files) for key, files in by_partition.items()}
        self._equality = {key: _equalities(files) for key, files in equality.items()}
        self.column_ids = frozenset(column_ids)

    @property
    def is_empty(self) -> bool:
        """Whether there are no delete files."""
        return not (self._vectors or self._by_path or self._by_partition or self._equality)

    def _add_vector(self, vector: ContentFile) -> None:
        """Adds a deletion vector to the index under its data file. Raises `BadRequest` if it names none, or there is
        another vector of the file."""
        path = vector.referenced_data_file
        if path is None:
            raise BadRequest(f"The table can't be read: the deletion vector {vector.path[:200]} names no data file")
        if self._vectors.setdefault(path, vector) is not vector:
            raise BadRequest(f"The table can't be read: the data file {path[:200]} has two deletion vectors")

    def deletes_of(self, file: ContentFile) -> Sequence[ContentFile]:
        """Returns the delete files that may delete rows of a data file: equality deletes, and its deletion vector, or
        without one the files of positions. Raises `BadRequest` for a deletion vector that is older than its data file,
        and for one, or a file of positions, of another partition or partition spec; `Unsupported` if it can't be known
        whether equality deletes are of the file's partition."""
        key = self._keys.of(file)
        found = self._equality_deletes_of(file, key) if self._equality else []
        vector = self._vectors.get(file.path)
        if vector is not None:
            _check_vector(vector, file)
            return [*found, vector]
        if (of_partition := self._by_partition.get(key)) is not None:
            found += self._of_partition(of_partition.since(file), file)
        if (of_path := self._by_path.get(file.path)) is not None:
            for each in of_path.since(file):
                _check_partition(each, file)
                found.append(each)
        return found

    def _equality_deletes_of(self, file: ContentFile, key: Hashable) -> list[ContentFile]:
        """Returns the equality deletes that may delete rows of a data file whose partition has this key. Counts the
        comparisons. Raises `Unsupported` if a dropped column hides whether one is of the partition."""
        found: list[ContentFile] = []
        values = _DataValues(file.statistics)
        for group in (None, key):
            if (equality := self._equality.get(group)) is not None:
                matching = [deletes.file for deletes in equality.since(file) if values.may_match(deletes)]
                found += matching if group is None else self._equal_deletes(matching, file)
        self.comparisons += values.comparisons
        return found

    def _of_partition(self, deletes: Sequence[ContentFile], file: ContentFile) -> Sequence[ContentFile]:
        """Returns the deletes with the key of a file's partition that may be of the partition: all of them unless the
        file's spec has a field of a dropped column."""
        if not self._keys.lost(file.spec_id):
            return deletes
        self.comparisons += len(deletes)
        return [each for each in deletes if are_equal(each.partition, file.partition) is not False]

    def _equal_deletes(self, deletes: Sequence[ContentFile], file: ContentFile) -> Sequence[ContentFile]:
        """Returns the equality deletes with the key of a file's partition that are of the partition. Raises
        `Unsupported` if a dropped column hides whether one is."""
        found = self._of_partition(deletes, file)
        is_lossy = bool(found) and bool(self._keys.lost(file.spec_id))
        if is_lossy and any(are_equal(each.partition, file.partition) is None for each in found):
            raise Unsupported(
                f"The partition of the data file {file.path[:200]}, or of equality deletes that may be for it, may "
                "have lost the value of a dropped column, so it can't be known which of them are for the file. "
                "Iceberg's Java library leaves them out, so where a client plans by it (scan-planning-mode=client), "
                "delete the rows again, and then rewrite the data files (rewrite_data_files)"
            )
        return found


def referenced_path(deletes: ContentFile) -> str | None:
    """Returns the path of the one data file that a file of positions is for, by its field for that, or by equal bounds
    of the column of paths; None if there may be others."""
    if deletes.referenced_data_file is not None:
        return deletes.referenced_data_file
    lower = (deletes.statistics.lower_bounds or {}).get(FILE_PATH_ID)
    upper = (deletes.statistics.upper_bounds or {}).get(FILE_PATH_ID)
    if lower is None or lower != upper:
        return None
    path = decode_bound("string", lower)
    return path if isinstance(path, str) else None


EVERYWHERE: Final = "*"
"""The lookup key of equality deletes that apply to all partitions."""


def lookup_key(deletes: ContentFile, keys: PartitionKeys) -> str:
    """Returns the key by which a delete file is found: of the data file that it is for, or else of its partition;
    `EVERYWHERE` for equality deletes of an unpartitioned spec."""
    if deletes.content == FileContent.EQUALITY_DELETES:
        return keys.text_of(deletes) if keys.is_partitioned(deletes.spec_id) else EVERYWHERE
    path = referenced_path(deletes)
    return keys.text_of(deletes) if path is None else f"file {path}"


def lookup_keys(data: Iterable[ContentFile], keys: PartitionKeys) -> Set[str]:
    """Returns the keys of all delete files that may apply to one of these data files; the key of `EVERYWHERE` also for
    no files."""
    found = {EVERYWHERE}
    for file in data:
        found.add(keys.text_of(file))
        found.add(f"file {file.path}")
    return found


class _BySequence(NamedTuple, Generic[T]):
    """Delete files in the order of the last sequence numbers of data files to which they apply."""

    numbers: Sequence[int]
    files: Sequence[T]

    def since(self, file: ContentFile) -> Sequence[T]:
        """Returns the delete files that apply to a data file by its sequence number."""
        return self.files[bisect_left(self.numbers, file.sequence_number) :]


def _positions(files: Sequence[ContentFile]) -> _BySequence[ContentFile]:
    """Orders files of position deletes by sequence number: each applies to data files up to its own."""
    ordered = files if len(files) == 1 else sorted(files, key=lambda file: file.sequence_number)
    return _BySequence([file.sequence_number for file in ordered], ordered)


def _equalities(files: "Iterable[_EqualityDeletes]") -> "_BySequence[_EqualityDeletes]":
    """Orders equality deletes by sequence number: each applies to data files with a lower one."""
    ordered = sorted(files, key=lambda deletes: deletes.file.sequence_number)
    return _BySequence([deletes.file.sequence_number - 1 for deletes in ordered], ordered)


class _Values(NamedTuple):
    """What is known of the values of a column of a primitive type in a file."""

    may_be_null: bool
    are_all_null: bool
    may_be_nan: bool
    """Bounds say nothing of NaN."""
    bounds: tuple[Value, Value] | None

    @classmethod
    def of(cls, column: Column, statistics: FileStatistics) -> "_Values":
        """Returns what the statistics of a file show of the values of a column: whether one may be null or NaN, whether
        all are null, and the bounds. A column that is never null has no null, whatever the statistics."""
        bounds = _bounds(column, statistics)
        has_nan = is_floating(str(column.type)) and may_be_nan(statistics, column.id)
        if column.is_never_null:
            return cls(False, False, has_nan, bounds)
        nulls = (statistics.null_value_counts or {}).get(column.id)
        values = (statistics.value_counts or {}).get(column.id)
        return cls(null_test(column)(statistics), nulls is not None and nulls == values, has_nan, bounds)

    def may_have_one_of(self, deleted: "_Values") -> bool:
        """Whether one of these values may be one of the deleted ones. Null equals null and NaN equals NaN; ranges that
        are not known count as overlapping, unless one side is all null and the other has none."""
        if self.may_be_null and deleted.may_be_null:
            return True
        if (self.are_all_null and not deleted.may_be_null) or (deleted.are_all_null and not self.may_be_null):
            return False
        if self.bounds is None or deleted.bounds is None or (self.may_be_nan and deleted.may_be_nan):
            return True
        low, high = self.bounds
        lowest, highest = deleted.bounds
        return low <= highest and lowest <= high  # type: ignore[operator]  # values of one type


class _EqualityDeletes(NamedTuple):
    """A file of equality deletes, and the values in the first `MAX_COMPARED` columns of primitive types by which it
    deletes."""

    file: ContentFile
    values: Sequence[tuple[Column, _Values]]

    @classmethod
    def of(cls, file: ContentFile, columns: Mapping[int, Column]) -> "_EqualityDeletes":
        """Returns a file of equality deletes with the values of the columns that it compares, of at most the first
        `MAX_COMPARED` of these that are in `columns` and have a primitive type."""
        known = [columns[number] for number in dict.fromkeys(file.equality_ids or ()) if number in columns]
        compared = [column for column in known if column.is_primitive][:MAX_COMPARED]
        return cls(file, [(column, _Values.of(column, file.statistics)) for column in compared])


class _DataValues:
    """The values in a data file, by column; the bounds of a column are decoded once for all delete files.
    `comparisons` counts the comparisons with delete files and their columns."""

    def __init__(self, statistics: FileStatistics) -> None:
        self.comparisons = 0
        self._statistics = statistics
        self._known: dict[int, _Values] = {}

    def may_match(self, deletes: _EqualityDeletes) -> bool:
        """Whether a row of the data file may be deleted by a file of equality deletes, by the statistics of both.
        Counts the comparisons."""
        self.comparisons += 1
        for column, deleted in deletes.values:
            self.comparisons += 1
            if not self._of(column).may_have_one_of(deleted):
                return False
        return True

    def _of(self, column: Column) -> _Values:
        """Returns the summary of the values of a column of the data file, which is computed at the first call."""
        found = self._known.get(column.id)
        if found is None:
            found = self._known[column.id] = _Values.of(column, self._statistics)
        return found


def _bounds(column: Column, statistics: FileStatistics) -> tuple[Value, Value] | None:
    """Returns the bounds of a column of a primitive type, None unless both are known; of UUIDs, the bounds of the first
    halves, as `_bounds_of_first_halves` does."""
    lower = (statistics.lower_bounds or {}).get(column.id)
    upper = (statistics.upper_bounds or {}).get(column.id)
    if lower is None or upper is None:
        return None
    low, high = decode_bound(str(column.type), lower), decode_bound(str(column.type), upper)
    if low is None or high is None:
        return None
    return _bounds_of_first_halves(cast(bytes, low), cast(bytes, high)) if column.type == "uuid" else (low, high)


def _bounds_of_first_halves(low: bytes, high: bytes) -> tuple[bytes, bytes] | None:
    """Returns the bounds of the first halves of UUIDs, None unless both have one first bit. Writers order UUIDs by
    unsigned bytes or by two signed numbers (`conditions`), and the orders agree on first halves with equal first bits
    alone."""
    return (low[:8], high[:8]) if low[0] >> 7 == high[0] >> 7 else None


def _check_vector(vector: ContentFile, file: ContentFile) -> None:
    """Raises `BadRequest` for a deletion vector that is older than its data file, or of another partition or partition
    spec."""
    if vector.sequence_number < file.sequence_number:
        raise BadRequest(f"The table can't be read: the deletion vector of {file.path[:200]} is older than the file")
    _check_partition(vector, file)


def _check_partition(deletes: ContentFile, file: ContentFile) -> None:
    """Raises `BadRequest` for deletes of a data file that are of another partition or partition spec. Null agrees
    with any value."""
    if deletes.spec_id != file.spec_id or are_equal(deletes.partition, file.partition) is False:
        raise BadRequest(
            f"The table can't be read: deletes of the data file {file.path[:200]} are of another partition, or of "
            "another partition spec"
        )
