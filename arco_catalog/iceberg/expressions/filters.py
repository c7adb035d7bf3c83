"""The filter of a scan, bound to the scan's schema, and its tests for each partition spec of the table."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from arco_catalog.iceberg.content_files import FileStatistics, Partition
from arco_catalog.iceberg.expressions.binding import (
    Binder,
    BoundFilter,
    BoundPredicate,
    folded,
)
from arco_catalog.iceberg.expressions.expression import FALSE, TRUE, Constant, Expression
from arco_catalog.iceberg.expressions.projections import inclusive
from arco_catalog.iceberg.expressions.residuals import Residuals
from arco_catalog.iceberg.expressions.statistics import StatisticsTest, statistics_test
from arco_catalog.iceberg.expressions.summaries import SummaryTest, summary_test
from arco_catalog.iceberg.expressions.transform_values import result_type
from arco_catalog.iceberg.manifests import FieldSummary
from arco_catalog.iceberg.partition import PartitionField, PartitionSpec
from arco_catalog.iceberg.schema import Columns, Schema, columns_by_id, type_name

S = TypeVar("S")
Summaries = Sequence[FieldSummary]
SummariesTest = Callable[[Summaries], bool]


class SpecFilter:
    """The tests of a filter for manifests and files of one partition spec. Each is true unless no row of the manifest,
    partition or file can match. `partition_types` are the types of the partition fields: `unknown` if the scan's schema
    lacks the source, `string` if the transform is unknown."""

    def __init__(
        self, bound: BoundFilter, spec: PartitionSpec, columns: Columns, file_test: Callable[[FileStatistics], bool]
    ) -> None:
        self.partition_types: Sequence[str] = [_field_type(field, columns) for field in spec["fields"]]
        self.file_may_match = file_test
        """Whether a file with these statistics may have matching rows."""
        self._residuals = Residuals(bound, spec["fields"], self.partition_types)
        self._summary_test: SummariesTest | bool = folded(bound, self._of_summaries(spec["fields"]), _all_or_any)

    def manifest_may_match(self, partitions: Summaries | None) -> bool:
        """Whether a manifest with these summaries of its partition fields may have files with matching rows."""
        test = self._summary_test
        if isinstance(test, bool):
            return test
        return partitions is None or len(partitions) != len(self.partition_types) or test(partitions)

    def partition_may_match(self, partition: Partition) -> bool:
        """Whether a file with these partition values may have matching rows."""
        return self._residuals.of(partition) is not FALSE

    def residual(self, partition: Partition) -> Expression:
        """Returns the filter that rows of a file with these partition values must yet match."""
        return self._residuals.of(partition)

    def _of_summaries(self, fields: Sequence[PartitionField]) -> Callable[[BoundPredicate], SummariesTest | bool]:
        def test_of(predicate: BoundPredicate) -> SummariesTest | bool:
            tests = [
                _at(position, summary_test(condition, of_field))
                for position, (field, of_field) in enumerate(zip(fields, self.partition_types, strict=True))
                if field["source-id"] == predicate.column.id
                and (condition := inclusive(predicate, field["transform"])) is not None
            ]
            if not tests:
                return True
            return tests[0] if len(tests) == 1 else _all_or_any(tests, True)

        return test_of


class ScanFilter:
    """A filter, bound to the schema of a scan. Raises `BadRequest` for a column that the schema lacks, and for a
    literal that is no value of its column's type. `column_ids` are the columns whose statistics `file_may_match`
    reads."""

    def __init__(
        self, expression: Expression, schema: Schema, specs: Mapping[int, PartitionSpec], case_sensitive: bool
    ) -> None:
        self.expression = expression
        self._columns = columns_by_id(schema)
        self._specs = specs
        self._bound = Binder(self._columns, case_sensitive=case_sensitive).bind(expression)
        self.column_ids = frozenset(_column_ids(self._bound))
        self._file_test = _file_test(self._bound, is_filtered=expression != TRUE)
        self._filters: dict[int, SpecFilter] = {}

    def for_spec(self, spec_id: int) -> SpecFilter:
        """Returns the tests for files of the spec with this id. Raises `KeyError` if there is none."""
        found = self._filters.get(spec_id)
        if found is None:
            found = SpecFilter(self._bound, self._specs[spec_id], self._columns, self._file_test)
            self._filters[spec_id] = found
        return found


def _field_type(field: PartitionField, columns: Columns) -> str:
    column = columns.get(field["source-id"])
    return "unknown" if column is None else result_type(field["transform"], type_name(column.type))


def _column_ids(bound: BoundFilter) -> set[int]:
    if isinstance(bound, BoundPredicate):
        return {bound.column.id}
    if isinstance(bound, Constant):
        return set()
    return set[int]().union(*(_column_ids(part) for part in bound.parts))


def _file_test(bound: BoundFilter, *, is_filtered: bool) -> Callable[[FileStatistics], bool]:
    """Returns the test of files. Without a filter all files match, also empty ones. A number of rows below 0 is one
    that its writer did not know."""
    if not is_filtered:
        return lambda statistics: True
    test: StatisticsTest | bool = folded(bound, statistics_test, _all_or_any)
    if isinstance(test, bool):
        return lambda statistics: test and statistics.record_count != 0

    def may_match(statistics: FileStatistics) -> bool:
        rows = statistics.record_count
        return test(statistics) if rows > 0 else rows < 0

    return may_match


def _at(position: int, test: SummaryTest) -> SummariesTest:
    return lambda summaries: test(summaries[position])


def _all_or_any(tests: list[Callable[[S], bool]], is_all: bool) -> Callable[[S], bool]:
    if len(tests) == 2:
        first, second = tests
        if is_all:
            return lambda subject: first(subject) and second(subject)
        return lambda subject: first(subject) or second(subject)

    def test_each(subject: S) -> bool:
        for test in tests:
            if test(subject) is not is_all:
                return not is_all
        return is_all

    return test_each
