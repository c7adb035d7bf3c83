"""Partition specs, by which rows are grouped into files (table spec, "Partitioning")."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypedDict

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.schema import Columns, type_name
from arco_catalog.iceberg.shapes import INT, NAME, STRING, following_id, list_of, record
from arco_catalog.iceberg.transforms import can_transform, canonical, check_transform, is_void

_Source = TypedDict("_Source", {"source-id": int, "name": str, "transform": str})
_FieldId = TypedDict("_FieldId", {"field-id": int}, total=False)
_SpecId = TypedDict("_SpecId", {"spec-id": int}, total=False)


class PartitionField(_Source, _FieldId):
    """A field of a partition spec: a value, computed from a column by a transform, by which rows are grouped.
    `field-id` is missing only in requests and in old v1 tables."""


class PartitionSpec(_SpecId):
    """A partition spec: the fields by which rows are grouped into files. `spec-id` may be missing in requests;
    where it is missing in metadata, it counts as 0."""

    fields: list[PartitionField]


PARTITION_FIELD = record(
    PartitionField, required={"source-id": INT, "name": STRING, "transform": NAME}, optional={"field-id": INT}
)
PARTITION_SPEC = record(PartitionSpec, required={"fields": list_of(PARTITION_FIELD)}, optional={"spec-id": INT})

FIRST_FIELD_ID = 1000
UNPARTITIONED_LAST_ID = FIRST_FIELD_ID - 1


def unpartitioned() -> PartitionSpec:
    """Returns the partition spec without fields."""
    return {"fields": []}


def spec_meaning(spec: PartitionSpec) -> Hashable:
    """Returns a key that is equal for equal lists of source, transform and name; ids do not count."""
    return tuple(_meaning(field) for field in spec["fields"])


def _meaning(field: PartitionField) -> tuple[int, str, str]:
    """Returns the parts by which two partition fields are compared: source id, canonical transform and name."""
    return field["source-id"], canonical(field["transform"]), field["name"]


def last_field_id(specs: Iterable[PartitionSpec]) -> int:
    """Returns the highest field id of all specs, 999 if they have no fields."""
    return max((field["field-id"] for spec in specs for field in spec["fields"]), default=UNPARTITIONED_LAST_ID)


def numbered(spec: PartitionSpec) -> PartitionSpec:
    """Returns the spec with the field ids 1000, 1001 and so on, in order, in place of any ids that the fields have."""
    fields: list[PartitionField] = [
        {**field, "field-id": FIRST_FIELD_ID + position} for position, field in enumerate(spec["fields"])
    ]
    return {**spec, "fields": fields}


def known_field_ids(specs: Iterable[PartitionSpec]) -> dict[tuple[int, str], int]:
    """Returns the ids of the partition fields in these specs, by source id and canonical transform. Fields without an
    id are left out."""
    return {
        (field["source-id"], canonical(field["transform"])): field["field-id"]
        for spec in specs
        for field in spec["fields"]
        if "field-id" in field
    }


def with_field_ids(spec: PartitionSpec, known: Mapping[tuple[int, str], int], last_id: int) -> PartitionSpec:
    """Returns the spec with an id in every field. Raises `BadRequest` if only some have one; a spec in which all have
    one is returned as it is.

    If none has one, a field gets the id that `known` has for its source and transform, unless a field before it has
    taken that, else the next id after `last_id`. The reference implementation numbers them from 1000 again, and so
    would give one id to two different fields.
    """
    missing = sum("field-id" not in field for field in spec["fields"])
    if missing == 0:
        return spec
    total = len(spec["fields"])
    if missing < total:
        raise BadRequest(
            f"Cannot parse spec with missing field IDs: {missing} missing of {total} fields. In 'add-spec', give all "
            "fields an id, or none"
        )
    fields: list[PartitionField] = []
    taken: set[int] = set()
    for field in spec["fields"]:
        field_id = known.get((field["source-id"], canonical(field["transform"])))
        if field_id is None or field_id in taken:
            field_id = last_id = following_id("partition field", last_id)
        taken.add(field_id)
        fields.append({**field, "field-id": field_id})
    return {**spec, "fields": fields}


def check_spec(spec: PartitionSpec, columns: Columns) -> None:
    """Raises `BadRequest` unless all sources exist, are primitive, are outside of collections and fit their transforms,
    all parameters of transforms are valid, no field id is there twice, and `check_names` accepts the names.

    The source of a void field is not tested and need not exist: v1 tables drop a partition field in this way.
    """
    check_names(spec, columns)
    ids: set[int] = set()
    for field in spec["fields"]:
        check_transform(field["transform"])
        if "field-id" in field:
            if field["field-id"] in ids:
                raise BadRequest(f"Cannot use field id more than once in one PartitionSpec: {field['field-id']}")
            ids.add(field["field-id"])
        if not is_void(field["transform"]):
            _check_source(field, columns)


def check_names(spec: PartitionSpec, columns: Columns) -> None:
    """Checks the names of partition fields. Raises `BadRequest` if a name is empty or is used twice, or if it is the
    name of a column that is not the field's own source. A field is not compared with the columns if the source is not
    among `columns`, because it was dropped.

    The reference implementation requires this of every spec of a table, whenever it reads one.
    """
    taken: set[str] = set()
    for field in spec["fields"]:
        name = field["name"]
        namesake = columns.ids.get(name)
        if namesake not in (None, field["source-id"]) and field["source-id"] in columns:
            raise BadRequest(
                f"Cannot create partition from name that exists in schema: {name} is the name of a column that is not "
                "the source of the partition field: give the field, or a new column, another name"
            )
        if not name:
            raise BadRequest(f"Cannot use empty partition name: {name}")
        if name in taken:
            raise BadRequest(f"Cannot use partition name more than once: {name}")
        taken.add(name)


def _check_source(field: PartitionField, columns: Columns) -> None:
    """Fails unless the field's source is a column of a primitive type that the transform accepts, and only structs are
    around it."""
    source = columns.get(field["source-id"])
    if source is None:
        raise BadRequest(
            f"Cannot find source column for partition field: {field['name']} ({field['source-id']}): the schema must "
            "have the sources of a new partition spec and of the default one"
        )
    if not source.is_primitive:
        raise BadRequest(f"Cannot partition by non-primitive source field: {source.name}")
    if not can_transform(field["transform"], type_name(source.type)):
        raise BadRequest(f"Invalid source type {type_name(source.type)} for transform: {field['transform']}")
    for outer in source.ancestors:
        if type_name(outer.type) != "struct":
            raise BadRequest(f"Invalid partition field parent: {type_name(outer.type)}")


def has_sequential_ids(spec: PartitionSpec) -> bool:
    """Whether the field ids are 1000, 1001, ... in order, as v1 tables require (their manifests store fields by
    position). All fields must have ids."""
    return all(field["field-id"] == FIRST_FIELD_ID + position for position, field in enumerate(spec["fields"]))
