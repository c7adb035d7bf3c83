"""The filter of a scan, bound to the scan's schema, and its tests for each partition spec of the table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from arco_catalog.iceberg.content_files import FileStatistics, Partition
from arco_catalog.iceberg.expressions.binding import Binder, BoundFilter, BoundPredicate, folded, predicates_in
from arco_catalog.iceberg.expressions.expression import FALSE, TRUE, Expression, without_not
from arco_catalog.iceberg.expressions.expression_json import expression_json
from arco_catalog.iceberg.expressions.partition_fields import PartitionFields, Summaries, SummariesTest
from arco_catalog.iceberg.expressions.projections import Projections
from arco_catalog.iceberg.expressions.residuals import Residuals
from arco_catalog.iceberg.expressions.statistics import StatisticsTest, statistics_test
from arco_catalog.iceberg.expressions.wide_filters import weakened
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.iceberg.schema import Schema, columns_by_id

S = TypeVar("S")


class SpecFilter:
    """The tests of a filter for manifests and files of one partition spec. Each is false only if certainly no row of
    the manifest, partition or file matches. `partition_types` are the types of the partition fields: `unknown` if the
    scan's schema lacks the source, `string` if the transform is unknown."""

    def __init__(
        self,
        bound: BoundFilter,
        tested: BoundFilter,
        fields: PartitionFields,
        file_test: Callable[[FileStatistics], bool],
    ) -> None:
        self.partition_types: Sequence[str] = fields.types
        self.file_may_match = file_test
        """Whether a file with these statistics may have matching rows."""
        self._bound, self._tested, self._fields = bound, tested, fields
        self._last: tuple[Expression, JsonValue] = TRUE, True

    def manifest_may_match(self, partitions: Summaries | None) -> bool:
        """Whether a manifest with these summaries of its partition fields may have files with matching rows. True for
        None, and for summaries of another number of fields, unless no file of the table can match."""
        test = self._summaries_test
        if isinstance(test, bool):
            return test
        return partitions is None or len(partitions) != len(self.partition_types) or test(partitions)

    def partition_may_match(self, partition: Partition) -> bool:
        """Whether a file with these partition values may have rows that match the filter, only by the partition."""
        return self._residuals.of(partition) is not FALSE

    def residual(self, partition: Partition) -> Expression:
        """Returns the filter that rows of a file with these partition values must yet match: `FALSE` if by the values
        no row can, `TRUE` if by them all do; where a weaker filter is tested, `FALSE` or the whole filter."""
        return self._residuals.of(partition)

    def residual_json(self, partition: Partition) -> JsonValue:
        """Returns the residual of a partition as JSON: the object of the last call if the residual is the same one."""
        residual, last = self._residuals.of(partition), self._last
        if last[0] is not residual:
            last = self._last = residual, expression_json(residual)
        return last[1]

    @cached_property
    def _residuals(self) -> Residuals:
        """The residuals of this filter by partition. One is determined when it is needed, and remembered, while there
        is room, unless a field is floating or the values are long."""
        return Residuals(self._bound, self._tested, self._fields)

    @cached_property
    def _summaries_test(self) -> SummariesTest | bool:
        """Returns a test whether the summaries of a manifest allow matching files; a constant if all have one
        result."""
        return folded(self._tested, self._of_summaries, _all_or_any)

    def _of_summaries(self, predicate: BoundPredicate) -> SummariesTest | bool:
        """Returns the test of summaries for one predicate; True if they have nothing about it."""
        tests = [*self._fields.summary_tests(predicate)]
        return _all_or_any(tests, True) if len(tests) > 1 else tests[0] if tests else True


class ScanFilter:
    """A filter, bound to the schema of a scan. Raises `BadRequest` for a column that the schema lacks or that is inside
    a list or map, a name that fits several columns, a transform or test that the column's type does not have, and a
    literal that can't be converted to the type. `column_ids` are the columns whose statistics `file_may_match` may
    read."""

    def __init__(
        self, expression: Expression, schema: Schema, specs: Mapping[int, PartitionSpec], case_sensitive: bool
    ) -> None:
        self.expression = expression
        self._columns = columns_by_id(schema)
        self._specs = specs
        self._bound = Binder(self._columns, case_sensitive=case_sensitive).bind(expression)
        self._tested = weakened(self._bound)
        self.column_ids = frozenset(predicate.column.id for predicate in predicates_in(self._tested))
        self._file_test = _file_test(self._tested, is_filtered=without_not(expression) != TRUE)
        self._projections = Projections()
        self._filters: dict[int, SpecFilter] = {}

    @property
    def predicates(self) -> Iterable[BoundPredicate]:
        """The conditions of single columns in the filter, without those that hold for all values or for none, and
        without the parts that these decide."""
        return predicates_in(self._bound)

    def for_spec(self, spec_id: int) -> SpecFilter:
        """Returns the tests for files of the spec with this id, made at the first call. Raises `KeyError` if there is
        none."""
        found = self._filters.get(spec_id)
        if found is None:
            fields = PartitionFields(self._specs[spec_id], self._columns, self._projections)
            found = self._filters[spec_id] = SpecFilter(self._bound, self._tested, fields, self._file_test)
        return found

    def types_of(self, spec_id: int) -> Sequence[str]:
        """Returns the types of the partition fields of the spec with this id. Raises as `for_spec` does."""
        return self.for_spec(spec_id).partition_types


def _file_test(bound: BoundFilter, *, is_filtered: bool) -> Callable[[FileStatistics], bool]:
    """Returns the test whether a file may match a bound filter, by its statistics. Unless `is_filtered`, all files
    match, also empty ones; otherwise an empty file does not. A number of rows below 0 stands for an unknown one: such
    a file matches unless no file can."""
    if not is_filtered:
        return lambda statistics: True
    test: StatisticsTest | bool = folded(bound, statistics_test, _all_or_any)
    if isinstance(test, bool):
        return lambda statistics: test and statistics.record_count != 0

    def may_match(statistics: FileStatistics) -> bool:
        rows = statistics.record_count
        return test(statistics) if rows > 0 else rows < 0

    return may_match


def _all_or_any(tests: list[Callable[[S], bool]], is_all: bool) -> Callable[[S], bool]:
    """Returns a test that a subject passes if it passes all of these tests (`is_all`), or one of them."""
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
