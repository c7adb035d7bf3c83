"""Translates the definition of a system table to PyIceberg and Arrow."""

import pyarrow as pa  # type: ignore[import-untyped]
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import (
    BooleanType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    TimestamptzType,
)

from reconciler.system.definition import SystemTable, Type

PROPERTIES = {
    "format-version": "2",
    "commit.retry.num-retries": "0",
    "write.metadata.previous-versions-max": "500",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.parquet.compression-codec": "zstd",
}
"""The properties of every system table. No client may retry a commit by itself: a batch that lost to another commit
must be read anew. The metadata log reaches back beyond the open days, so that a batch knows the receipts of the table's
own commits by name, and need not read them."""

_PRIMITIVES: dict[Type, IcebergType] = {
    Type.STRING: StringType(),
    Type.LONG: LongType(),
    Type.INT: IntegerType(),
    Type.BOOLEAN: BooleanType(),
    Type.TIME: TimestamptzType(),
}
_ARROW: dict[Type, pa.DataType] = {
    Type.STRING: pa.string(),
    Type.LONG: pa.int64(),
    Type.INT: pa.int32(),
    Type.BOOLEAN: pa.bool_(),
    Type.TIME: pa.timestamp("us", tz="UTC"),
    Type.STRINGS: pa.list_(pa.string()),
    Type.LONGS: pa.list_(pa.int64()),
    Type.PROPERTIES: pa.map_(pa.string(), pa.string()),
}


def arrow_schema(table: SystemTable) -> pa.Schema:
    """Returns the Arrow schema of a table's rows."""
    return pa.schema([(column.name, _ARROW[column.type]) for column in table.columns])


def schema_of(table: SystemTable) -> Schema:
    """Returns the Iceberg schema of a table. Columns have ids from 1 on; elements, keys and values of lists and maps
    have ids after those of all columns."""
    inner = len(table.columns)
    fields: list[NestedField] = []
    for place, column in enumerate(table.columns, 1):
        made, taken = _type_of(column.type, inner)
        inner += taken
        fields.append(NestedField(place, column.name, made, required=column.required, doc=column.doc))
    return Schema(*fields)


def _type_of(type_: Type, taken: int) -> tuple[IcebergType, int]:
    """Returns the Iceberg type, and how many ids it takes for elements, keys and values. `taken` is the last id in
    use."""
    match type_:
        case Type.STRINGS:
            return ListType(taken + 1, StringType(), element_required=True), 1
        case Type.LONGS:
            return ListType(taken + 1, LongType(), element_required=True), 1
        case Type.PROPERTIES:
            return MapType(taken + 1, StringType(), taken + 2, StringType(), value_required=True), 2
        case _:
            return _PRIMITIVES[type_], 0


def partition_spec_of(table: SystemTable, schema: Schema) -> PartitionSpec:
    """Returns the partition spec of a table: by the column `current`, by day, or unpartitioned."""
    if table.has_current:
        field = schema.find_field("current")
        return PartitionSpec(PartitionField(field.field_id, PARTITION_FIELD_ID_START, IdentityTransform(), "current"))
    if table.day is None:
        return PartitionSpec()
    field = schema.find_field(table.day)
    return PartitionSpec(PartitionField(field.field_id, PARTITION_FIELD_ID_START, DayTransform(), f"{table.day}_day"))


def sort_order_of(table: SystemTable, schema: Schema) -> SortOrder:
    """Returns the sort order of a table: the columns `order`, ascending."""
    return SortOrder(
        *(SortField(schema.find_field(name).field_id, transform=IdentityTransform()) for name in table.order)
    )
