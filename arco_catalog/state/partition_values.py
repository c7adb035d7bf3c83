"""Reads the partition of a file in an entry of a manifest, as the values of its partition spec's fields."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, TypeAlias
from uuid import UUID

from arco_catalog.iceberg import primitives
from arco_catalog.iceberg.content_files import Partition, PartitionValue
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.partition import PartitionField, PartitionSpec
from arco_catalog.state.avro_decoder import reader_of
from arco_catalog.state.avro_schema import MAX_DECIMAL_BYTES, Unreadable
from arco_catalog.state.avro_values import named_fields
from arco_catalog.state.fields import objects

Convert: TypeAlias = Callable[[object], PartitionValue]
"""Returns a value as it was decoded, but None, in the form in which the catalog has values of its type. Raises
`Unreadable` for what is no value of the type."""

UUID_BYTES: Final = 16
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(("int", "long", "date", "time"), (int,)),
    **dict.fromkeys(("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), (int,)),
    **dict.fromkeys(("float", "double"), (int, float)),
    **dict.fromkeys(("fixed", "binary"), (bytes,)),
    "boolean": (bool,),
    "string": (str,),
}
"""The types of decoded values of Iceberg's types. A value of another type of Iceberg's may have any of them."""


class PartitionReader:
    """Reads partitions of one manifest. Fields that the spec has no more are left out; fields that the manifest does
    not have are null."""

    def __init__(self, schema: JsonValue, spec: PartitionSpec, types: Sequence[str]) -> None:
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise Unreadable("the partition in the entries of the manifest is not a record")
        self._read = reader_of(schema)
        names = [_name_in(schema, field) for field in spec["fields"]]
        self._fields = [(name, _converter(of)) for name, of in zip(names, types, strict=True)]

    def read(self, data: bytes, place: int) -> Partition:
        """Returns the partition of a file that is encoded at this position of the data. Raises as the functions of
        `avro_values` do."""
        record, _ = self._read(data, place)
        return tuple(self._values(record)) if isinstance(record, dict) else ()

    def _values(self, record: Mapping[str, object]) -> Iterator[PartitionValue]:
        """Yields the partition values of a record, converted, in the order of the spec: None for null, and for a field
        that the manifest does not have."""
        for name, convert in self._fields:
            found = None if name is None else record[name]
            yield None if found is None else convert(found)


def _name_in(schema: JsonObject, field: PartitionField) -> str | None:
    """Returns the name that a partition field has in a manifest, by its id; by its name if the manifest has no ids.
    None if the manifest does not have the field."""
    ids = {each.get("field-id"): str(each["name"]) for each in objects(schema, "fields")}
    by_id = ids.get(field.get("field-id", -1))
    if by_id is not None:
        return by_id
    names = {name for name, _ in named_fields(schema)}
    return field["name"] if ids.keys() <= {None} and field["name"] in names else None


def _converter(type_name: str) -> Convert:
    """Returns the function that checks decoded partition values of an Iceberg type, and converts them."""
    match primitives.base_name(type_name):
        case "decimal":
            return _decimal_converter(int(type_name.rstrip(") ").rpartition(",")[2]))
        case "uuid":
            return _uuid
        case name:
            return _checking_converter(type_name, _TYPES.get(name, (bool, int, float, str, bytes)))


def _checking_converter(type_name: str, types: tuple[type, ...]) -> Convert:
    """Returns a function that returns a decoded partition value as it is if it has one of these Python types; any other
    is an error."""

    def convert(value: object) -> PartitionValue:
        if type(value) in types and isinstance(value, bool | int | float | str | bytes):
            return value
        raise Unreadable(f"a partition of the manifest has a {type(value).__name__} for a value of type {type_name}")

    return convert


def _decimal_converter(scale: int) -> Convert:
    """Returns the function that makes a decimal of this scale from its bytes; a value that is no bytes, or has too
    many, is an error."""

    def convert(value: object) -> PartitionValue:
        if not isinstance(value, bytes) or len(value) > MAX_DECIMAL_BYTES:
            raise Unreadable(
                f"a partition of the manifest has no decimal, of at most {MAX_DECIMAL_BYTES} bytes, where its spec has "
                "one"
            )
        unscaled = int.from_bytes(value, signed=True)
        return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))

    return convert


def _uuid(value: object) -> PartitionValue:
    """Returns the 16 bytes of a UUID, given as bytes or text. Any other value is an error, which is `ValueError` for a
    text that is no UUID."""
    found = UUID(value).bytes if isinstance(value, str) else value  # text as some writers have it
    if not isinstance(found, bytes) or len(found) != UUID_BYTES:
        raise Unreadable("a partition of the manifest has no UUID where its spec has one")
    return found
