"""Sort orders, by which rows are ordered within files (table spec, "Sorting")."""

from collections.abc import Hashable
from typing import TypedDict

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.schema import Columns, type_name
from arco_catalog.iceberg.shapes import INT, NAME, list_of, one_of, record
from arco_catalog.iceberg.transforms import can_transform, canonical, check_transform

SortField = TypedDict("SortField", {"source-id": int, "transform": str, "direction": str, "null-order": str})
_OrderId = TypedDict("_OrderId", {"order-id": int}, total=False)


class SortOrder(_OrderId):
    """A sort order of a table: the fields by which rows are ordered; without fields they have no order. `order-id` may
    be missing in requests and in registered metadata, where it counts as 0."""

    fields: list[SortField]


SORT_FIELD = record(
    SortField,
    required={
        "source-id": INT,
        "transform": NAME,
        "direction": one_of("asc", "desc"),
        "null-order": one_of("nulls-first", "nulls-last"),
    },
)
SORT_ORDER = record(SortOrder, required={"fields": list_of(SORT_FIELD)}, optional={"order-id": INT})

UNSORTED_ID = 0


def unsorted() -> SortOrder:
    """Returns the order without fields, which has the id 0 in every table."""
    return {"order-id": UNSORTED_ID, "fields": []}


def order_meaning(order: SortOrder) -> Hashable:
    """Returns a key that is equal for fields with equal `_meaning` in one sequence; the order's id does not count."""
    return tuple(_meaning(field) for field in order["fields"])


def _meaning(field: SortField) -> tuple[int, str, str, str]:
    """Returns the parts by which two sort fields are compared: source id, canonical transform, direction and order of
    nulls."""
    return field["source-id"], canonical(field["transform"]), field["direction"], field["null-order"]


def check_order(order: SortOrder, columns: Columns) -> None:
    """Checks every sort field. Raises `BadRequest` if its source column does not exist, is not primitive, or does not
    fit the transform, or if the transform has no valid parameter."""
    for field in order["fields"]:
        check_transform(field["transform"])
        source = columns.get(field["source-id"])
        if source is None:
            raise BadRequest(
                f"Cannot find source column for sort field: {field['source-id']}: the schema must have the sources of "
                "a new sort order and of the default one"
            )
        if not source.is_primitive:
            raise BadRequest(f"Cannot sort by non-primitive source field: {source.name}")
        if not can_transform(field["transform"], type_name(source.type)):
            raise BadRequest(f"Invalid source type {type_name(source.type)} for transform: {field['transform']}")
