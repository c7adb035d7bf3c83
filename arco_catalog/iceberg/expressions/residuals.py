"""What of a filter the rows of a partition must yet match (as the reference implementation's `ResidualEvaluator`)."""

from collections.abc import Callable, Sequence

from arco_catalog.iceberg.content_files import Partition
from arco_catalog.iceberg.expressions.binding import BoundFilter, BoundPredicate, folded, predicates_in
from arco_catalog.iceberg.expressions.expression import FALSE, TRUE, And, Expression, Or
from arco_catalog.iceberg.expressions.partition_fields import FieldDecisions, PartitionFields

MAX_REMEMBERED = 4096
"""Partitions whose residuals are remembered. Most tables have many files in each of a few partitions."""
MAX_REMEMBERED_LENGTH = 1_000
"""Characters and bytes of a partition whose residual is remembered."""
MAX_REMEMBERED_PREDICATES = 40_000
"""Predicates of all remembered residuals together, which take some 100 bytes."""

_Residual = Callable[[Partition], Expression]


class Residuals:
    """The residuals of a filter in the partitions of one spec. If a weaker filter is `tested` in its place, a residual
    is `false` or the whole filter."""

    def __init__(self, bound: BoundFilter, tested: BoundFilter, fields: PartitionFields) -> None:
        evaluate = _residual(tested, fields.decisions)
        self._evaluate = evaluate if tested is bound else _false_or(evaluate, _residual(bound, lambda _: ())(()))
        self._is_floating = not {"float", "double"}.isdisjoint(fields.types)
        self._room = min(MAX_REMEMBERED, MAX_REMEMBERED_PREDICATES // (1 + sum(1 for _ in predicates_in(tested))))
        self._remembered: dict[Partition, Expression] = {}

    def of(self, partition: Partition) -> Expression:
        """Returns the filter that rows of this partition must yet match: `FALSE` itself if by the partition's values no
        row can, `TRUE` if by them all do; where a weaker filter is tested, `FALSE` or the whole filter. The result is
        remembered and returned again for an equal partition, unless a field is floating or the values are long. If
        there is no room for one more, all that are remembered are dropped first."""
        if self._is_floating:  # -0.0 equals 0.0, and has another residual
            return self._evaluate(partition)
        found = self._remembered.get(partition)
        if found is None:
            found = self._evaluate(partition)
            if len(self._remembered) >= self._room:
                self._remembered.clear()
            if sum(len(value) for value in partition if isinstance(value, str | bytes)) <= MAX_REMEMBERED_LENGTH:
                self._remembered[partition] = found
        return found


def _false_or(evaluate: _Residual, whole: Expression) -> _Residual:
    """Returns a residual that is false where `evaluate` is, and else the whole expression."""
    return lambda partition: FALSE if evaluate(partition) is FALSE else whole


def _residual(bound: BoundFilter, decisions_of: Callable[[BoundPredicate], Sequence[FieldDecisions]]) -> _Residual:
    """Returns the function that determines the residual of a filter for a partition, by the decisions that
    `decisions_of` returns for each predicate."""
    found = folded(bound, lambda predicate: _of_predicate(predicate, decisions_of(predicate)), _joined)
    if not isinstance(found, bool):
        return found
    constant = TRUE if found else FALSE
    return lambda partition: constant


def _of_predicate(predicate: BoundPredicate, decisions: Sequence[FieldDecisions]) -> _Residual:
    """Returns the residual of a predicate: itself, unless a field of the partition shows that all rows match, or that
    no row does."""
    original = predicate.original

    def evaluate(partition: Partition) -> Expression:
        for position, one_may_match, all_match in decisions:
            value = partition[position]
            if all_match is not None and all_match(value) is True:
                return TRUE
            if one_may_match is not None and one_may_match(value) is False:
                return FALSE
        return original

    return evaluate


def _joined(parts: list[_Residual], is_all: bool) -> _Residual:
    """Returns the function that computes the residual of parts that are joined by AND if `is_all`, else by OR. A part
    that is a constant in a partition decides that residual, or disappears."""
    join, neutral, absorbing = (And, TRUE, FALSE) if is_all else (Or, FALSE, TRUE)

    def evaluate(partition: Partition) -> Expression:
        kept: list[Expression] = []
        for part in parts:
            found = part(partition)
            if found is absorbing:
                return absorbing
            if found is not neutral:
                kept.append(found)
        return _balanced(kept, join) if kept else neutral

    return evaluate


def _balanced(parts: list[Expression], join: type[And] | type[Or]) -> Expression:
    """Returns one combination of all parts that is nested no deeper than it must be: thousands of parts in a row would
    exceed the depth that clients read."""
    while len(parts) > 1:
        pairs: list[Expression] = [join(*parts[first : first + 2]) for first in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(parts) // 2 * 2 :]
    return parts[0]
