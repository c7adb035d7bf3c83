"""What of a filter the rows of a partition must yet match (as the reference implementation's `ResidualEvaluator`)."""

from collections.abc import Callable, Sequence

from arco_catalog.iceberg.content_files import Partition
from arco_catalog.iceberg.expressions.binding import BoundFilter, BoundPredicate, folded
from arco_catalog.iceberg.expressions.conditions import Decision, decision
from arco_catalog.iceberg.expressions.expression import FALSE, TRUE, Expression, and_, or_
from arco_catalog.iceberg.expressions.projections import inclusive, strict
from arco_catalog.iceberg.partition import PartitionField

MAX_REMEMBERED = 4096
"""Partitions whose residuals are remembered. Most tables have many files in each of a few partitions."""

_Residual = Callable[[Partition], Expression]


class Residuals:
    """The residuals of a filter in the partitions of one spec."""

    def __init__(self, bound: BoundFilter, fields: Sequence[PartitionField], types: Sequence[str]) -> None:
        self._evaluate = _residual(bound, fields, types)
        self._floating = any(each in ("float", "double") for each in types)
        self._remembered: dict[Partition, Expression] = {}

    def of(self, partition: Partition) -> Expression:
        """Returns the filter that rows of this partition must yet match: `FALSE` itself if no row can, `TRUE` if all
        do."""
        if self._floating:  # -0.0 equals 0.0, and has another residual
            return self._evaluate(partition)
        found = self._remembered.get(partition)
        if found is None:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            found = self._remembered[partition] = self._evaluate(partition)
        return found


def _residual(bound: BoundFilter, fields: Sequence[PartitionField], types: Sequence[str]) -> _Residual:
    found = folded(bound, lambda predicate: _of_predicate(predicate, fields, types), _joined)
    if not isinstance(found, bool):
        return found
    constant = TRUE if found else FALSE
    return lambda partition: constant


def _of_predicate(predicate: BoundPredicate, fields: Sequence[PartitionField], types: Sequence[str]) -> _Residual:
    """Returns the residual of a predicate: itself, unless a field of the partition shows that all rows match, or that
    no row does."""
    original = predicate.original
    tests = [
        (position, *_decisions(predicate, field["transform"], of_field))
        for position, (field, of_field) in enumerate(zip(fields, types, strict=True))
        if field["source-id"] == predicate.column.id
    ]

    def evaluate(partition: Partition) -> Expression:
        for position, all_match, one_may_match in tests:
            value = partition[position]
            if all_match is not None and all_match(value) is True:
                return TRUE
            if one_may_match is not None and one_may_match(value) is False:
                return FALSE
        return original

    return evaluate


def _decisions(predicate: BoundPredicate, transform: str, of_field: str) -> tuple[Decision | None, Decision | None]:
    conditions = strict(predicate, transform), inclusive(predicate, transform)
    all_match, one_may_match = (None if each is None else decision(each, of_field) for each in conditions)
    return all_match, one_may_match


def _joined(parts: list[_Residual], is_all: bool) -> _Residual:
    join, neutral, absorbing = (and_, TRUE, FALSE) if is_all else (or_, FALSE, TRUE)

    def evaluate(partition: Partition) -> Expression:
        residual: Expression = neutral
        for part in parts:
            found = part(partition)
            if found is absorbing:
                return absorbing
            residual = join(residual, found)
        return residual

    return evaluate
