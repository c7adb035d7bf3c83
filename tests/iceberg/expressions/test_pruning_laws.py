"""No manifest, partition or file with a matching row is left out, and a residual has the matches of its filter in the
partition."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from arco_catalog.iceberg.expressions.filters import ScanFilter, SpecFilter
from arco_catalog.iceberg.partition import PartitionSpec
from tests.iceberg.expressions.samples import (
    TRANSFORMS,
    TYPES,
    Filter,
    Order,
    Row,
    evaluated,
    filters,
    java_order,
    partition_of,
    rows,
    schema_of,
    spec_of,
    statistics_of,
    summaries_of,
    total_order,
)

STATISTICS = ["value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"]

Case = tuple[list[str], Filter, list[Row], PartitionSpec]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2))
    fields = []
    for _ in range(draw(st.integers(1, 3))):
        column = draw(st.integers(1, len(types)))
        fields.append((column, draw(st.sampled_from([*TRANSFORMS[types[column - 1]], "void", "new[1]"]))))
    return types, draw(filters(types)), draw(st.lists(rows(types), min_size=1, max_size=4)), spec_of(*fields)


def bound(types: Sequence[str], sample: Filter, spec: PartitionSpec) -> SpecFilter:
    return ScanFilter(sample.expression, schema_of(types), {0: spec}, case_sensitive=True).for_spec(0)


OF_FILES: Mapping[str, st.SearchStrategy[Any]] = {
    "case": cases(),
    "order": st.sampled_from([total_order, java_order]),
    "cut": st.booleans(),
    "without": st.frozensets(st.sampled_from(STATISTICS), max_size=2),
}
OF_MANIFESTS = {name: OF_FILES[name] for name in ("case", "order")}
OF_RESIDUALS = {"case": OF_FILES["case"]}


@settings(max_examples=100)
@given(**OF_FILES)
def test_a_file_with_a_matching_row_is_never_left_out(
    case: Case, order: Order, cut: bool, without: frozenset[str]
) -> None:
    types, sample, file, spec = case
    statistics = statistics_of(types, file, order=order, cut=cut, without=without)
    if any(sample.matches(row) for row in file):
        assert bound(types, sample, spec).file_may_match(statistics)


@settings(max_examples=100)
@given(**OF_MANIFESTS)
def test_a_manifest_with_a_matching_row_is_never_left_out(case: Case, order: Order) -> None:
    types, sample, file, spec = case
    found = bound(types, sample, spec)
    partitions = [partition_of(types, spec, row) for row in file]
    if any(sample.matches(row) for row in file):
        assert found.manifest_may_match(summaries_of(found.partition_types, partitions, order=order))
        assert found.manifest_may_match(None)


@settings(max_examples=100)
@given(**OF_RESIDUALS)
def test_a_residual_has_the_matches_of_the_filter_in_its_partition(case: Case) -> None:
    types, sample, file, spec = case
    found = bound(types, sample, spec)
    for row in file:
        partition = partition_of(types, spec, row)
        assert evaluated(found.residual(partition), types, row) == sample.matches(row)
        assert found.partition_may_match(partition) or not sample.matches(row)


@given(**OF_RESIDUALS)
def test_the_residual_without_partitions_is_the_whole_filter(case: Case) -> None:
    types, sample, file, _ = case
    residual = bound(types, sample, spec_of()).residual(())
    assert [evaluated(residual, types, row) for row in file] == [sample.matches(row) for row in file]
