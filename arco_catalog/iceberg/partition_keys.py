"""Whether delete files are of the partition of a data file.

Iceberg's Java library loses a value of a partition when it rewrites a manifest after the field's source column was
dropped: it writes null. So two files of one partition may have the value and null, and two files with null may have
been of two partitions.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from arco_catalog.iceberg.content_files import ContentFile, Partition, PartitionValue
from arco_catalog.iceberg.partition import PartitionField, PartitionSpec
from arco_catalog.iceberg.schema import Schema, columns_of
from arco_catalog.iceberg.transforms import is_void

K = TypeVar("K")


class _LastKey(NamedTuple, Generic[K]):
    """The key of the partition of a file, which the next file of a manifest mostly shares."""

    spec_id: int
    partition: Partition
    key: K

    def is_of(self, file: ContentFile) -> bool:
        """Whether this is the key of a file of the same spec with the same partition object; False also for an equal
        one."""
        return file.partition is self.partition and file.spec_id == self.spec_id


class PartitionKeys:
    """The keys of partitions by which delete files are found: equal for all that may be one partition. `specs` are the
    partition specs of a table, each read when a file has it, and `dropped` the ids of columns that a
    schema does not have any more."""

    def __init__(self, specs: Mapping[int, PartitionSpec], dropped: frozenset[int] = frozenset()) -> None:
        self._specs = specs
        self._dropped = dropped
        self._partitioned: dict[int, bool] = {}
        self._lost: dict[int, frozenset[int]] = {}
        self._last: _LastKey[Hashable] | None = None
        self._last_text: _LastKey[str] | None = None

    def is_partitioned(self, spec_id: int) -> bool:
        """Whether a partition spec has a field other than void ones, so that its files are of parts of the table. False
        for an unknown spec."""
        found = self._partitioned.get(spec_id)
        if found is None:
            fields = self._fields(spec_id)
            found = self._partitioned[spec_id] = not all(is_void(field["transform"]) for field in fields)
        return found

    def lost(self, spec_id: int) -> frozenset[int]:
        """Returns the places of the fields of a spec that may have lost values, as their source columns were dropped;
        none for an unknown spec."""
        found = self._lost.get(spec_id)
        if found is None:
            fields = enumerate(self._fields(spec_id))
            found = frozenset(place for place, field in fields if field["source-id"] in self._dropped)
            self._lost[spec_id] = found
        return found

    def _fields(self, spec_id: int) -> Sequence[PartitionField]:
        """Returns the fields of a partition spec; none if the spec is unknown."""
        return self._specs[spec_id]["fields"] if spec_id in self._specs else ()

    def of(self, file: ContentFile) -> Hashable:
        """Returns the key of a file: the spec, and the partition values, with None in place of ones that may be lost. A
        float is in it as text: NaN is one value, and -0.0 another than 0.0."""
        last = self._last
        if last is None or not last.is_of(file):
            key = file.spec_id, tuple(map(_comparable, self._kept(file)))
            last = self._last = _LastKey(file.spec_id, file.partition, key)
        return last.key

    def text_of(self, file: ContentFile) -> str:
        """Returns the key of a file as text, with None in place of the values of fields whose source column was
        dropped, also where the file still has them."""
        last = self._last_text
        if last is None or not last.is_of(file):
            text = f"partition {file.spec_id} {tuple(self._kept(file))!r}"
            last = self._last_text = _LastKey(file.spec_id, file.partition, text)
        return last.key

    def _kept(self, file: ContentFile) -> Iterable[PartitionValue]:
        """Returns the partition values of a file, with None for fields of which the source column was dropped."""
        lost = self.lost(file.spec_id)
        return (
            (None if place in lost else value for place, value in enumerate(file.partition)) if lost else file.partition
        )


def are_equal(one: Partition, other: Partition) -> bool | None:
    """Whether two partitions with equal keys are one; None if that can't be known, because one has null where the other
    has a value, which may be lost. Two nulls are equal, as they are for Java."""
    pairs = zip(map(_comparable, one), map(_comparable, other), strict=False)
    unequal = [each for each in pairs if each[0] != each[1]]
    if not unequal:
        return True
    return None if all(None in each for each in unequal) else False


def dropped_columns(schemas: Mapping[int, Schema]) -> frozenset[int]:
    """Returns the ids of the columns that a schema of a table has, and one with a higher id does not have."""
    seen: set[int] = set()
    dropped: set[int] = set()
    for _, schema in sorted(schemas.items()):
        present = {column.id for column in columns_of(schema)}
        dropped |= seen - present
        seen |= present
    return frozenset(dropped)


def _comparable(value: PartitionValue) -> Hashable:
    """Returns a value by which equal partitions have equal keys: a float as text, because NaN equals nothing."""
    return repr(value) if isinstance(value, float) else value
