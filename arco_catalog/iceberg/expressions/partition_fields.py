"""Whether a row of a manifest or file may match a predicate of a filter, or all rows do, by the values of partition
fields."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from arco_catalog.iceberg.expressions.binding import BoundPredicate
from arco_catalog.iceberg.expressions.conditions import Condition, Decision, decision
from arco_catalog.iceberg.expressions.expression import Operation
from arco_catalog.iceberg.expressions.projections import Projections
from arco_catalog.iceberg.expressions.summaries import SummaryTest, summary_test
from arco_catalog.iceberg.expressions.transform_values import result_type, wrapped_value
from arco_catalog.iceberg.manifests import FieldSummary
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.iceberg.schema import Columns, type_name

Summaries: TypeAlias = Sequence[FieldSummary]
SummariesTest: TypeAlias = Callable[[Summaries], bool]


class FieldDecisions(NamedTuple):
    """What the value at this place of a partition shows of a predicate: whether a row may match, and whether all rows
    do. Each is None if it shows nothing."""

    position: int
    one_may_match: Decision | None
    all_match: Decision | None


class PartitionFields:
    """The fields of one partition spec. `types` are the types of their values: `unknown` if the scan's schema lacks the
    source, `string` if the transform is unknown."""

    def __init__(self, spec: PartitionSpec, columns: Columns, projections: Projections) -> None:
        self._projections = projections
        self._of_sources: dict[int, list[tuple[int, str]]] = {}
        self._wrapped: dict[int, int] = {}
        self.types: list[str] = []
        for position, field in enumerate(spec["fields"]):
            source, transform = columns.get(field["source-id"]), field["transform"]
            self.types.append("unknown" if source is None else result_type(transform, type_name(source.type)))
            self._of_sources.setdefault(field["source-id"], []).append((position, transform))
            wrapped = None if source is None else wrapped_value(transform, type_name(source.type))
            if wrapped is not None:
                self._wrapped[position] = wrapped

    def summary_tests(self, predicate: BoundPredicate) -> Iterator[SummariesTest]:
        """Yields, for each partition field of which a predicate has a projection, a test of a manifest's summaries. A
        manifest with a matching row passes all of them."""
        for position, transform in self._of_sources.get(predicate.column.id, ()):
            one_may_match, _ = self._projections.of(predicate, transform)
            if one_may_match is not None:
                test = summary_test(one_may_match, self.types[position])
                wrapped = self._wrapped.get(position)
                if wrapped is not None:
                    test = _either(test, summary_test(Condition(Operation.EQ, (wrapped,)), self.types[position]))
                yield _at(position, test)

    def decisions(self, predicate: BoundPredicate) -> Sequence[FieldDecisions]:
        """Returns, for each partition field on the predicate's column, in order, what the value of that field shows of
        the predicate."""
        found: list[FieldDecisions] = []
        for position, transform in self._of_sources.get(predicate.column.id, ()):
            inclusive, strict = self._projections.of(predicate, transform)
            one_may_match = None if inclusive is None else self._decision(inclusive, position)
            if strict is inclusive:
                found.append(FieldDecisions(position, one_may_match, one_may_match))
            else:
                all_match = None if strict is None else self._decision(strict, position)
                found.append(FieldDecisions(position, one_may_match, all_match))
        return found

    def _decision(self, condition: Condition, position: int) -> Decision:
        """Returns the decision of a condition, which a value that has wrapped around leaves open."""
        decide, wrapped = decision(condition, self.types[position]), self._wrapped.get(position)
        return decide if wrapped is None else lambda value: None if value == wrapped else decide(value)


def _either(first: SummaryTest, second: SummaryTest) -> SummaryTest:
    """Returns a test that passes if any of the two does."""
    return lambda summary: first(summary) or second(summary)


def _at(position: int, test: SummaryTest) -> SummariesTest:
    """Returns a test of the summary at one position."""
    return lambda summaries: test(summaries[position])
