"""What the fields of a partition spec show of the predicates of a filter."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from arco_catalog.iceberg.expressions.binding import BoundPredicate
from arco_catalog.iceberg.expressions.conditions import Decision, decision
from arco_catalog.iceberg.expressions.projections import Projections
from arco_catalog.iceberg.expressions.summaries import SummaryTest, summary_test
from arco_catalog.iceberg.expressions.transform_values import result_type
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
        self.types: list[str] = []
        for position, field in enumerate(spec["fields"]):
            source, transform = columns.get(field["source-id"]), field["transform"]
            self.types.append("unknown" if source is None else result_type(transform, type_name(source.type)))
            self._of_sources.setdefault(field["source-id"], []).append((position, transform))

    def summary_tests(self, predicate: BoundPredicate) -> Iterator[SummariesTest]:
        """Yields the tests of a manifest's summaries, all of which a manifest with a matching row passes."""
        for position, transform in self._of_sources.get(predicate.column.id, ()):
            one_may_match, _ = self._projections.of(predicate, transform)
            if one_may_match is not None:
                yield _at(position, summary_test(one_may_match, self.types[position]))

    def decisions(self, predicate: BoundPredicate) -> Sequence[FieldDecisions]:
        """Returns what the values of the fields show of a predicate."""
        found: list[FieldDecisions] = []
        for position, transform in self._of_sources.get(predicate.column.id, ()):
            inclusive, strict = self._projections.of(predicate, transform)
            one_may_match = None if inclusive is None else decision(inclusive, self.types[position])
            if strict is inclusive:
                found.append(FieldDecisions(position, one_may_match, one_may_match))
            else:
                all_match = None if strict is None else decision(strict, self.types[position])
                found.append(FieldDecisions(position, one_may_match, all_match))
        return found


def _at(position: int, test: SummaryTest) -> SummariesTest:
    return lambda summaries: test(summaries[position])
