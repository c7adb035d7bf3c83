"""Applies updates of a table's structure: format version, schemas, partition specs, sort orders, keys, properties.

Ids of columns and partition fields are the client's and never changed; only a spec without ids of fields gets them
here. The table assigns the ids of schemas, specs and orders, and stores equal ones once. Clients compute the same ids
of these, so the computation is exactly that of the reference implementation.
"""

from typing import cast

from arco_catalog.iceberg.draft import TableDraft
from arco_catalog.iceberg.encryption import EncryptedKey
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.partition import (
    PartitionSpec,
    check_spec,
    has_sequential_ids,
    known_field_ids,
    last_field_id,
    numbered,
    with_field_ids,
)
from arco_catalog.iceberg.primitives import same_uuid
from arco_catalog.iceberg.properties import METADATA_COMPRESSION, SUPPORTED_FORMAT_VERSION
from arco_catalog.iceberg.schema import (
    FIRST_METADATA_COLUMN_ID,
    Schema,
    check_schema,
    columns_by_id,
    highest_id,
)
from arco_catalog.iceberg.sort import UNSORTED_ID, SortOrder, check_order, unsorted
from arco_catalog.iceberg.updates import resolved_id


def assign_uuid(draft: TableDraft, uuid: str) -> None:
    """Sets the uuid of a new table, or of an existing one that has none. Raises `BadRequest` for another uuid than an
    existing table has, because readers would take it for another table; an equal one changes nothing."""
    known = draft.metadata["table-uuid"]
    same = same_uuid(known, uuid)
    if draft.base is not None and known and not same:
        raise BadRequest(f"Cannot reassign uuid: the table's is {known}")
    draft.metadata["table-uuid"] = known if same else uuid


def upgrade_format_version(draft: TableDraft, version: int) -> None:
    """Sets a format version that is higher than the table's, or equal to it. Row lineage begins with v3; snapshots from
    before have none. Raises `BadRequest` for a lower version, and for one that is not supported."""
    current = draft.metadata["format-version"]
    if version < current:
        raise BadRequest(f"Cannot downgrade v{current} table to v{version}")
    if not 1 <= version <= SUPPORTED_FORMAT_VERSION:
        raise BadRequest(
            f"Cannot upgrade table to unsupported format version: v{version} "
            f"(supported: v1 to v{SUPPORTED_FORMAT_VERSION})"
        )
    draft.metadata["format-version"] = version
    if version >= 3:
        draft.metadata.setdefault("next-row-id", 0)


def add_schema(draft: TableDraft, schema: Schema) -> None:
    """Stores a schema under the id of an equal one, else under the next id, and raises the table's last column id. It
    becomes the one that `LAST_ADDED` stands for, not the current one. Raises `BadRequest` for a schema that is not
    valid, and for column ids that are reserved for metadata columns."""
    columns = columns_by_id(schema, draft.names)
    check_schema(schema, columns, draft.metadata["format-version"])
    if highest_id(columns) >= FIRST_METADATA_COLUMN_ID:
        raise BadRequest(
            f"Column ids from {FIRST_METADATA_COLUMN_ID} on are reserved for metadata columns: give lower ones to the "
            "columns of the schema in 'add-schema'"
        )
    draft.metadata["last-column-id"] = max(draft.metadata["last-column-id"], highest_id(columns))
    schema_id = draft.schemas.id_of(schema)
    if schema_id is None:
        schema_id = max(draft.schemas.next_id("schema"), draft.metadata["current-schema-id"])
        draft.schemas.add(schema_id, cast(Schema, {**schema, "schema-id": schema_id}))
    draft.last_added_schema = schema_id


def set_current_schema(draft: TableDraft, schema_id: int) -> None:
    """Makes a known schema the current one; `LAST_ADDED` is the one that this commit added last. Whether the default
    spec and order fit it is checked at the end of the commit. Raises `BadRequest` for an unknown schema."""
    schema_id = resolved_id("schema", schema_id, draft.last_added_schema)
    if schema_id == draft.metadata["current-schema-id"]:
        return
    if schema_id not in draft.schemas.by_id:
        raise BadRequest(f"Cannot set current schema to unknown schema: {schema_id}")
    draft.metadata["current-schema-id"] = schema_id


def remove_schemas(draft: TableDraft, schema_ids: list[int]) -> None:
    """Removes schemas. Raises `BadRequest` for the current one; unknown ids are ignored. Whether a branch needs them is
    for the client to assert."""
    if draft.metadata["current-schema-id"] in schema_ids:
        raise BadRequest("Cannot remove the current schema")
    draft.schemas.remove(schema_ids)


def add_spec(draft: TableDraft, spec: PartitionSpec) -> None:
    """Stores a partition spec under the id of an equal one, else under the next id, with ids for fields that have none,
    and raises the table's last partition id. It becomes the one that `LAST_ADDED` stands for, not the default. Raises
    `BadRequest` for a new spec that is not valid."""
    spec_id = draft.specs.id_of(spec)
    if spec_id is not None:
        draft.last_added_spec = spec_id
        return
    is_v1 = draft.metadata["format-version"] == 1
    if is_v1 and all("field-id" not in field for field in spec["fields"]):
        spec = numbered(spec)
    spec = with_field_ids(spec, draft.field_ids, draft.metadata["last-partition-id"])
    check_spec(spec, draft.current_columns())
    if is_v1 and not has_sequential_ids(spec):
        raise BadRequest(
            "Spec does not use sequential IDs that are required in v1: in 'add-spec', use 1000, 1001, and so on, in "
            "order, or leave out all ids"
        )
    spec_id = draft.specs.next_id("partition spec")
    draft.specs.add(spec_id, {**spec, "spec-id": spec_id})
    draft.field_ids.update(known_field_ids([spec]))
    draft.metadata["last-partition-id"] = max(draft.metadata["last-partition-id"], last_field_id([spec]))
    draft.last_added_spec = spec_id


def set_default_spec(draft: TableDraft, spec_id: int) -> None:
    """Makes a known spec the default; `LAST_ADDED` is the one that this commit added last. Raises `BadRequest` for an
    unknown spec."""
    spec_id = resolved_id("spec", spec_id, draft.last_added_spec)
    if spec_id == draft.metadata["default-spec-id"]:
        return
    if spec_id not in draft.specs.by_id:
        raise BadRequest(f"Cannot set default partition spec to unknown spec: {spec_id}")
    draft.metadata["default-spec-id"] = spec_id


def remove_specs(draft: TableDraft, spec_ids: list[int]) -> None:
    """Removes partition specs. Raises `BadRequest` for the default one; unknown ids are ignored. Whether a branch needs
    them is for the client to assert."""
    if draft.metadata["default-spec-id"] in spec_ids:
        raise BadRequest("Cannot remove the default partition spec")
    draft.specs.remove(spec_ids)


def add_sort_order(draft: TableDraft, order: SortOrder) -> None:
    """Stores an order under the id of an equal one, else under the next id. An order without fields always has the id
    0. It becomes the one that `LAST_ADDED` stands for, not the default. Raises `BadRequest` for a new order that is not
    valid."""
    order_id = draft.orders.id_of(order)
    if order_id is None:
        check_order(order, draft.current_columns())
        order_id = max(draft.orders.next_id("sort order"), UNSORTED_ID + 1) if order["fields"] else UNSORTED_ID
        draft.orders.add(order_id, {**order, "order-id": order_id})
    draft.last_added_order = order_id


def set_default_sort_order(draft: TableDraft, order_id: int) -> None:
    """Makes a known order the default; `LAST_ADDED` is the one that this commit added last, 0 the unsorted one. Raises
    `BadRequest` for an unknown order."""
    order_id = resolved_id("sort order", order_id, draft.last_added_order)
    if order_id == draft.metadata["default-sort-order-id"]:
        return
    if order_id not in draft.orders.by_id:
        if order_id != UNSORTED_ID:
            raise BadRequest(f"Cannot set default sort order to unknown order: {order_id}")
        draft.orders.add(UNSORTED_ID, unsorted())
    draft.metadata["default-sort-order-id"] = order_id


def set_properties(draft: TableDraft, properties: dict[str, str]) -> None:
    """Sets properties; no others change. Raises `BadRequest` for a codec of metadata files but `none` and `gzip`, in
    any case of letters."""
    codec = properties.get(METADATA_COMPRESSION, "none")
    if codec.lower() not in ("none", "gzip"):
        raise BadRequest(f"Invalid codec name: {codec} (a table's {METADATA_COMPRESSION} must be none or gzip)")
    draft.metadata["properties"].update(properties)


def remove_properties(draft: TableDraft, names: list[str]) -> None:
    """Removes properties. Names that are not set are ignored."""
    for name in names:
        draft.metadata["properties"].pop(name, None)


def add_encryption_key(draft: TableDraft, key: EncryptedKey) -> None:
    """Adds an encryption key to the table. A key with an id that exists already remains as it is."""
    draft.encryption_keys.setdefault(key["key-id"], key)


def remove_encryption_key(draft: TableDraft, key_id: str) -> None:
    """Removes an encryption key of the table, if it exists."""
    draft.encryption_keys.pop(key_id, None)
