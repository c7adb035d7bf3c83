"""What PyIceberg leaves out is left out, too: the tests of statistics and summaries are no weaker than its own.

Left out of the comparison is what PyIceberg lacks or knowingly does otherwise: transforms as terms; UUIDs and zeros, of
which it knows one order; fixed values and timestamps in nanoseconds."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator, inclusive_projection, manifest_evaluator
from pyiceberg.manifest import DataFile, FileFormat, ManifestFile, PartitionFieldSummary
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from arco_catalog.iceberg.content_files import FileStatistics
from arco_catalog.iceberg.expressions.expression import Constant, Expression, Not, Predicate
from arco_catalog.iceberg.expressions.expression_json import expression_json
from arco_catalog.iceberg.expressions.filters import ScanFilter
from tests.iceberg.expressions.samples import (
    TRANSFORMS,
    TYPES,
    Filter,
    Row,
    filters,
    partition_of,
    rows,
    schema_of,
    spec_of,
    statistics_of,
    summaries_of,
)

_COMPARED = sorted({*TYPES} - {"uuid", "fixed[2]", "timestamp_ns", "timestamptz_ns", "float", "double", "binary"})


def is_plain(expression: Expression) -> bool:
    """Whether all terms of a filter are columns."""
    match expression:
        case Constant():
            return True
        case Predicate():
            return expression.term.transform == "identity"
        case Not(child):
            return is_plain(child)
    return is_plain(expression.left) and is_plain(expression.right)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[str], Filter, list[Row]]:
    types = draw(st.lists(st.sampled_from(_COMPARED), min_size=1, max_size=2))
    plain = filters(types).filter(lambda each: is_plain(each.expression))
    return types, draw(plain), draw(st.lists(rows(types), min_size=1, max_size=3))


def read(sample: Filter) -> Any:
    return BooleanExpression.model_validate(expression_json(sample.expression))


def data_file(statistics: FileStatistics) -> DataFile:
    fields = statistics._asdict()
    return DataFile.from_args(
        file_path="f", file_format=FileFormat.PARQUET, partition=Record(), file_size_in_bytes=1, **fields
    )


@settings(max_examples=100)
@given(case=cases(), cut=st.booleans())
def test_files_that_pyiceberg_leaves_out_are_left_out(case: tuple[list[str], Filter, list[Row]], cut: bool) -> None:
    types, sample, file = case
    statistics = statistics_of(types, file, cut=cut)
    schema = schema_of(types)
    ours = ScanFilter(sample.expression, schema, {0: spec_of()}, True).for_spec(0).file_may_match(statistics)
    oracle = _InclusiveMetricsEvaluator(Schema.model_validate(schema), read(sample))
    assert oracle.eval(data_file(statistics)) or not ours


@settings(max_examples=100)
@given(case=cases(), data=st.data())
def test_manifests_that_pyiceberg_leaves_out_are_left_out(
    case: tuple[list[str], Filter, list[Row]], data: st.DataObject
) -> None:
    types, sample, file = case
    transform = data.draw(st.sampled_from(TRANSFORMS[types[0]]))
    spec, schema = spec_of((1, transform)), schema_of(types)
    found = ScanFilter(sample.expression, schema, {0: spec}, True).for_spec(0)
    summaries = summaries_of(found.partition_types, [partition_of(types, spec, row) for row in file])
    theirs, their_spec = Schema.model_validate(schema), PartitionSpec.model_validate(spec)
    projected = inclusive_projection(theirs, their_spec)(read(sample))
    manifest = ManifestFile.from_args(partitions=[PartitionFieldSummary(*each) for each in summaries])
    if not manifest_evaluator(their_spec, theirs, projected)(manifest):
        assert not found.manifest_may_match(summaries)
