"""Checks the schema in an Avro file, before a decoder reads the records by it.

A schema alone can take a decoder down: a record that contains itself makes it recurse until the process ends, an array
of nulls makes it count to a trillion within ten bytes, and types that name each other twice double with each level. So
every type is written out where it is used, under a name of our own, and counted. The result costs a decoder a bounded
number of steps for each byte of a record.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.fields import objects
from storage_backends.lazy_dataclass import dataclass


class Composite(Enum):
    """The form of a field that is more than one value, and is read whole."""

    RECORD = "record"
    """A record whose fields are single values."""
    RECORDS = "array of records"
    """An array of such records."""


Fields = Mapping[str, "Fields | Composite | None"]
"""The fields of a record that a caller reads, by name: None for a single value, the fields to read of a record, or the
form of what is read whole. A file whose schema has another form there can't be read: one byte of an array or map may
take a hundred bytes of memory once decoded."""

MAX_SCHEMA_BYTES: Final = 256 << 10
"""Bytes of a schema: one of a partition spec of a thousand fields has 100,000."""
MAX_TYPES: Final = 4_000
"""Types in a schema, each counted where it is used: a partition spec of a thousand fields has 2,000."""
MAX_NESTING: Final = 16
"""Types within each other: Iceberg's manifests have eight."""
MAX_BRANCHES: Final = 8
"""Branches of a union: Iceberg's have two."""
MAX_EMPTY: Final = 16
"""Types that take no bytes, such as the partition of a table without partitions."""
MAX_FIXED_BYTES: Final = 1 << 20
MAX_DECIMAL_BYTES: Final = 16
"""An Iceberg decimal has 38 digits at most. A longer one would be converted to digits in quadratic time."""

_SIZES: Final[Mapping[str, int]] = {
    **dict.fromkeys(("boolean", "int", "long", "string", "bytes"), 1),
    **{"null": 0, "float": 4, "double": 8},
}
_TIMES: Final = ("date", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros")


class Unreadable(Exception):
    """The file is not an Avro file, is corrupt, has a codec or fields that can't be read here, or is beyond the bounds
    of a manifest."""


class UnpacksTooLong(Unreadable):
    """The file, a block of it or the header has more bytes than the limit: decompressed, and of a block also as
    stored."""


@dataclass(frozen=True, slots=True)
class FileSchemas:
    """The schema by which the records of an Avro file are written, and the part of it with the fields that a caller
    reads."""

    writer: JsonObject
    reader: JsonObject


@dataclass(frozen=True, slots=True)
class _Type:
    """An Avro type with all types inside it written out, and the number of bytes that the smallest of its values
    takes."""

    schema: JsonValue
    smallest: int


def check_schema(schema: JsonValue, fields: Fields) -> FileSchemas:
    """Returns the schema of an Avro file's records with every type written out, and the part of it that has `fields`,
    the fields that a caller reads. Raises `Unreadable` for a schema that is wrong or beyond a bound, or has a field in
    another form than in `fields`."""
    checked = _Checker().check(schema, "", 0)
    writer = _record(checked.schema)
    if checked.smallest == 0:
        raise Unreadable("the Avro schema has records that may take no bytes, expected at least one byte a record")
    return FileSchemas(writer, prune(writer, fields))


def prune(schema: JsonValue, fields: Fields) -> JsonObject:
    """Returns a record's schema with only the fields that are in `fields`; names in `fields` that the schema lacks are
    ignored. Raises `Unreadable` if the schema is of no record, or if a field has another form than `fields` states."""
    record = _record(schema)
    pruned: list[JsonValue] = []
    for field in objects(record, "fields"):
        name = field.get("name")
        if isinstance(name, str) and name in fields:
            pruned.append({**field, "type": _checked_form(name, field.get("type"), fields[name])})
    return {**record, "fields": pruned}


def _checked_form(name: str, schema: JsonValue, form: Fields | Composite | None) -> JsonValue:
    """Returns the Avro schema of the field `name`: of a record that `form` names fields of, with only these, else as it
    is. Raises `Unreadable` if the field has not this form; None stands for a single value."""
    if isinstance(form, Mapping):
        return prune(schema, form)
    if not _is_value(schema) if form is None else not _is_composite(schema, form):
        what = "single value" if form is None else f"{form.value} of single values"
        raise Unreadable(
            f"the field {name} of the Avro schema is not a{'n' if form is Composite.RECORDS else ''} {what}"
        )
    return schema


def _is_value(schema: JsonValue) -> bool:
    """Whether an Avro type, written out, has a single value: a primitive or fixed type, or a union of such types."""
    if isinstance(schema, list):
        return all(_is_value(each) for each in schema)
    return isinstance(schema, str) or (
        isinstance(schema, dict) and schema.get("type") not in ("record", "array", "map")
    )


def _is_composite(schema: JsonValue, form: Composite) -> bool:
    """Whether an Avro type, written out, has the form `form` (a record of single values, or an array of such records),
    or is a union in which every type is null or has that form."""
    if isinstance(schema, list):
        return all(each == "null" or _is_composite(each, form) for each in schema)
    if not isinstance(schema, dict):
        return False
    if form is Composite.RECORDS:
        return schema.get("type") == "array" and _is_composite(schema.get("items"), Composite.RECORD)
    return schema.get("type") == "record" and all(_is_value(each.get("type")) for each in objects(schema, "fields"))


class _Checker:
    """Checks the types of one schema, and writes them out where they are used. `space` is the namespace of the type
    around a type, empty for none, and `depth` is how many types are around it."""

    def __init__(self) -> None:
        self._named: dict[tuple[str, str], tuple[JsonObject, str]] = {}
        """The types by their namespaces and names, with the namespace of the type around."""
        self._types = 0
        self._empty = 0

    def check(self, schema: JsonValue, space: str, depth: int) -> _Type:
        """Returns the checked type of an Avro schema, written out, without what decoders don't need. It counts the
        type. Raises `Unreadable` if the type is not valid, or with it the schema exceeds a bound."""
        self._types += 1
        if self._types > MAX_TYPES or depth > MAX_NESTING:
            raise Unreadable(
                f"the Avro schema has more than {MAX_TYPES:,} types, or one with more than {MAX_NESTING} around it"
            )
        checked = (
            self._check_union(schema, space, depth)
            if isinstance(schema, list)
            else self._check_single(schema, space, depth)
        )
        if checked.smallest == 0:
            self._empty += 1
            if self._empty > MAX_EMPTY:
                raise Unreadable(f"the Avro schema has more than {MAX_EMPTY} types that take no bytes")
        return checked

    def _check_single(self, schema: JsonValue, space: str, depth: int) -> _Type:
        """Returns the checked form of an Avro type that is not a union, as `check` does; also of a name that the schema
        defined before, in the namespace `space` or in none."""
        if isinstance(schema, str):
            if schema in _SIZES:
                return _Type(schema, _SIZES[schema])
            named = self._named.get(_full_name(schema, space)) or self._named.get(("", schema))
            if named is None:
                raise Unreadable(
                    f"the Avro schema has a type {schema[:100]!r}, which it does not define before that, and which is "
                    "no type of Iceberg's manifests"
                )
            return self._check_single(*named, depth)
        if not isinstance(schema, dict):
            raise Unreadable("the Avro schema has a type that is neither a name, an object nor a union")
        match schema.get("type"):
            case "record":
                return self._record(schema, space, depth)
            case "array":
                return self._check_repeated(schema, "items", space, depth)
            case "map":
                return self._check_repeated(schema, "values", space, depth)
            case "fixed":
                return self._check_fixed(schema, space)
            case str(name) if name in _SIZES:
                return _Type(_with_logical_type(name, schema), _SIZES[name])
            case dict() | list() as inner:
                return self.check(inner, space, depth + 1)
            case other:
                return self._check_single(other if isinstance(other, str) else None, space, depth)

    def _check_union(self, branches: Sequence[JsonValue], space: str, depth: int) -> _Type:
        """Returns the checked form of an Avro union and of its branches, as `check` does; nulls in it do not count as
        types."""
        if not 0 < len(branches) <= MAX_BRANCHES:  # a value of none would take no bytes, and so any number of them
            raise Unreadable(f"the Avro schema has a union of {len(branches)} types, expected 1 to {MAX_BRANCHES}")
        return _Type(
            [each if each == "null" else self.check(each, space, depth + 1).schema for each in branches],
            1,  # which branch it is
        )

    def _record(self, schema: JsonObject, space: str, depth: int) -> _Type:
        """Returns the checked form of an Avro record and of the fields in it, as `check` does, and remembers the name
        of the record for later references. Of a field only the name, the type and Iceberg's id are in the result."""
        name, inner = self._name(schema, space)
        fields: list[JsonValue] = []
        smallest = 0
        listed = schema.get("fields")
        if not isinstance(listed, list):
            raise Unreadable("the Avro schema has a record without a list of fields")
        for field in listed:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise Unreadable("the Avro schema has a field without a name")
            checked = self.check(field.get("type"), inner, depth + 1)
            number = field.get("field-id")  # Iceberg's
            stated: JsonObject = {"field-id": number} if isinstance(number, int) else {}
            fields.append({"name": field["name"], "type": checked.schema, **stated})
            smallest += checked.smallest
        return _Type({"type": "record", "name": name, "fields": fields}, smallest)

    def _check_repeated(self, schema: JsonObject, of: str, space: str, depth: int) -> _Type:
        """Returns the checked form of an Avro array or map, by the key `of` that has the type of the items, as `check`
        does."""
        items = self.check(schema.get(of), space, depth + 1)
        if items.smallest == 0 and of == "items":
            raise Unreadable("the Avro schema has an array of items that take no bytes")
        return _Type({"type": "array" if of == "items" else "map", of: items.schema}, 1)

    def _check_fixed(self, schema: JsonObject, space: str) -> _Type:
        """Returns the checked form of an Avro type fixed, as `check` does; it keeps the logical type decimal if the
        size allows that."""
        size = schema.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MAX_FIXED_BYTES:
            raise Unreadable(f"the Avro schema has a fixed type whose size is not 0 to {MAX_FIXED_BYTES:,} bytes")
        fixed: JsonObject = {"type": "fixed", "name": self._name(schema, space)[0], "size": size}
        if schema.get("logicalType") == "decimal" and size <= MAX_DECIMAL_BYTES:
            fixed |= {each: schema[each] for each in ("logicalType", "precision", "scale") if each in schema}
        return _Type(fixed, size)

    def _name(self, schema: JsonObject, space: str) -> tuple[str, str]:
        """Remembers a type for references to its name, if it has one. Returns the name that it gets in the schema that
        is written out, which is unique, and the namespace of the types inside it."""
        name, own = schema.get("name"), schema.get("namespace")
        inner = own if isinstance(own, str) else space
        if isinstance(name, str):
            inner, name = _full_name(name, inner)
            self._named[inner, name] = schema, space
        return f"t{self._types}", inner


def _full_name(name: str, space: str) -> tuple[str, str]:
    """Returns the namespace of an Avro type, empty for none, and its name in it: both are in `name` if that has a dot,
    else the namespace is `space` (Avro specification, "Names")."""
    before, dot, last = name.rpartition(".")
    return (before, last) if dot else (space, name)


def _with_logical_type(name: str, schema: JsonObject) -> JsonValue:
    """Returns the schema of the primitive Avro type `name`: with the logical type of `schema` if that is a time or a
    UUID, which take no more than one step to decode, else the name alone."""
    logical = schema.get("logicalType")
    return {"type": name, "logicalType": logical} if logical in _TIMES or logical == "uuid" else name


def _record(schema: JsonValue) -> JsonObject:
    """Returns the Avro schema as it is if it is that of a record; another one is an error."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise Unreadable("the Avro schema, or that of a field of which a part is read, is not that of a record")
    return schema
