"""The filter of a scan, bound to the scan's schema, and its tests for each partition spec of the table."""

from collections.abc import Mapping, Sequence

from arco_catalog.iceberg.content_files import FileStatistics, Partition
from arco_catalog.iceberg.expressions.expression import Expression
from arco_catalog.iceberg.manifests import FieldSummary
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.iceberg.primitives import base_name
from arco_catalog.iceberg.schema import Columns, Schema, columns_by_id, type_name
from arco_catalog.iceberg.transforms import canonical


class SpecFilter:
    """The tests of a filter for manifests and files of one partition spec. Each is true unless no row of the
    manifest, partition or file can match."""

    def __init__(self, expression: Expression, spec: PartitionSpec, columns: Columns) -> None:
        self._expression = expression
        self.partition_types: Sequence[str] = [
            _result_type(field["transform"], columns, field["source-id"]) for field in spec["fields"]
        ]

    def manifest_may_match(self, partitions: Sequence[FieldSummary] | None) -> bool:
        """Whether a manifest with these summaries of its partition fields may have files with matching rows."""
        return True

    def partition_may_match(self, partition: Partition) -> bool:
        """Whether a file with these partition values may have matching rows."""
        return True

    def file_may_match(self, statistics: FileStatistics) -> bool:
        """Whether a file with these statistics may have matching rows."""
        return True

    def residual(self, partition: Partition) -> Expression:
        """Returns the filter that rows of a file with these partition values must yet match."""
        return self._expression


class ScanFilter:
    """A filter, bound to the schema of a scan. Raises `BadRequest` for a column that the schema lacks, and for a
    literal that is no value of its column's type. `column_ids` are the columns whose statistics `file_may_match`
    reads."""

    def __init__(
        self, expression: Expression, schema: Schema, specs: Mapping[int, PartitionSpec], case_sensitive: bool
    ) -> None:
        self.expression = expression
        self.column_ids: frozenset[int] = frozenset()
        self._columns = columns_by_id(schema)
        self._specs = specs
        self._filters: dict[int, SpecFilter] = {}

    def for_spec(self, spec_id: int) -> SpecFilter:
        """Returns the tests for files of the spec with this id. Raises `KeyError` if there is none."""
        found = self._filters.get(spec_id)
        if found is None:
            found = self._filters[spec_id] = SpecFilter(self.expression, self._specs[spec_id], self._columns)
        return found


def _result_type(transform: str, columns: Columns, source_id: int) -> str:
    column = columns.get(source_id)
    if column is None:
        return "unknown"
    name = canonical(transform).partition("[")[0]
    if name in ("year", "month", "hour", "bucket"):
        return "int"
    if name == "day":
        return "date"
    source = type_name(column.type)
    return source if name in ("identity", "truncate", "void") and base_name(source) else "string"
