"""Schemas: columns with ids, which may be nested (table spec, "Schemas and Data Types").

Data files refer to the ids, so the ids in a commit are never changed; only a request to create a table gets new ids, in
all columns.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice
from typing import Literal, TypeAlias, TypedDict, cast

from arco_catalog.iceberg import primitives
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonValue, dumps
from arco_catalog.iceberg.numbered import NumberedObjects
from arco_catalog.iceberg.shapes import ANY, BOOLEAN, INT, NAME, STRING, ShapeError, list_of, quoted, record, unexpected
from storage_backends.lazy_dataclass import dataclass

Type: TypeAlias = "str | StructType | ListType | MapType"

_Defaults = TypedDict("_Defaults", {"doc": str, "initial-default": JsonValue, "write-default": JsonValue}, total=False)
_Ids = TypedDict("_Ids", {"schema-id": int, "identifier-field-ids": list[int]}, total=False)


class StructField(_Defaults):
    """One column of a schema, or field of a nested struct: id, name, type, whether it is required, a comment (`doc`),
    and its defaults."""

    id: int
    name: str
    type: Type
    required: bool


class StructType(TypedDict):
    """The type of a struct: its named fields."""

    type: Literal["struct"]
    fields: list[StructField]


ListType = TypedDict(
    "ListType", {"type": Literal["list"], "element-id": int, "element": Type, "element-required": bool}
)
MapType = TypedDict(
    "MapType",
    {
        "type": Literal["map"],
        "key-id": int,
        "key": Type,
        "value-id": int,
        "value": Type,
        "value-required": bool,
    },
)


class Schema(StructType, _Ids):
    """A schema of a table or view: its columns, its id, and the ids of its identifier fields. Requests and registered
    metadata may leave out both."""


# Recursion in Python must end somewhere before the interpreter's own limit does.
MAX_NESTING = 64

MAX_NAMES = 8 << 20
"""Maximum characters of all full names in a schema: each repeats those of all columns that contain it, so that half a
megabyte of a request could become gigabytes of names."""

MAX_REPEATED_NAMES = 32 << 20
"""Maximum characters that names repeat in all schemas together that one commit adds or makes current."""

# Where `_file`, `_pos` and their like begin (table spec, "Reserved Field IDs").
FIRST_METADATA_COLUMN_ID = 2_147_483_447


def _type(value: JsonValue, depth: int = 0) -> Type:
    """Reads a type, and the ones inside it. `depth` counts the types around it. Fails for any other value, and for
    more than `MAX_NESTING` structs, lists and maps inside one another."""
    if isinstance(value, str):
        if not primitives.base_name(value):
            raise ShapeError(f"unknown type {quoted(value)}, or one with invalid parameters")
        return value
    if not isinstance(value, dict):
        raise unexpected("a type", value)
    if depth == MAX_NESTING:
        raise ShapeError(f"types are nested more than {MAX_NESTING} deep")

    def nested(inner: JsonValue) -> Type:
        return _type(inner, depth + 1)

    match value.get("type"):
        case "struct":
            return record(StructType, {"fields": list_of(_field(nested))})(value)
        case "list":
            return record(ListType, {"element-id": INT, "element": nested, "element-required": BOOLEAN})(value)
        case "map":
            fields = {"key-id": INT, "key": nested, "value-id": INT, "value": nested, "value-required": BOOLEAN}
            return record(MapType, fields)(value)
        case _:
            raise ShapeError("expected a struct, list or map as 'type' of a nested type")


def _field(nested: Callable[[JsonValue], Type]) -> Callable[[JsonValue], StructField]:
    """Returns the check of a struct's field, with `nested` as the check of the type."""
    return record(
        StructField,
        required={"id": INT, "name": NAME, "type": nested, "required": BOOLEAN},
        optional={"doc": STRING, "initial-default": ANY, "write-default": ANY},
    )


def SCHEMA(value: JsonValue) -> Schema:  # noqa: N802 - a shape
    """Returns the value as a schema. Raises `ShapeError` for any other value. Whether ids are unique is not checked
    here, but by `columns_by_id`."""
    if isinstance(value, dict) and value.get("type") not in ("struct", None):
        raise ShapeError("a schema is a struct").inside("type")
    fields = list_of(_field(_type))
    checked = record(Schema, {"fields": fields}, {"schema-id": INT, "identifier-field-ids": list_of(INT)})(value)
    checked["type"] = "struct"
    return checked


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a schema at any level: a field of a struct, or the element, key or value of a collection. `name` is
    its full name, with the names of all columns that contain it, joined by dots; `parent` is the column that contains
    it directly, None at the top level. Only fields have defaults and a comment (`doc`)."""

    id: int
    name: str
    type: Type
    required: bool
    parent: "Column | None" = None
    initial_default: JsonValue = None
    write_default: JsonValue = None
    doc: str | None = None

    @property
    def is_primitive(self) -> bool:
        """Whether the values of a column are neither nested nor of the type variant."""
        return isinstance(self.type, str) and primitives.is_primitive(self.type)

    @property
    def ancestors(self) -> Iterator["Column"]:
        """The columns that contain this one, innermost first."""
        outer = self.parent
        while outer is not None:
            yield outer
            outer = outer.parent

    @property
    def is_never_null(self) -> bool:
        """Whether the column and all that contain it are required."""
        return self.required and all(outer.required for outer in self.ancestors)


class Columns(dict[int, Column]):
    """The columns of a schema at every level by id; `ids` has the ids by full name."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: dict[str, int] = {}


def type_name(of: Type) -> str:
    """Returns a type's name for messages: that of a primitive, or `struct`, `list`, `map`."""
    return of if isinstance(of, str) else of["type"]


def columns_of(schema: Schema) -> Iterator[Column]:
    """Yields every column at every level, each before those inside it."""
    yield from _columns_in(schema, None)


def _columns_in(of: Type, parent: Column | None) -> Iterator[Column]:
    """Yields all columns inside a type, parents before children."""
    for column in _children(of, parent):
        yield column
        yield from _columns_in(column.type, column)


def _children(of: Type, parent: Column | None) -> Iterator[Column]:
    """Yields the columns directly inside a type, in order; `parent` is the column of this type, None for the schema
    itself."""
    prefix = f"{parent.name}." if parent else ""
    if isinstance(of, str):
        return
    if of["type"] == "struct":
        for field in of["fields"]:
            described = field.get("initial-default"), field.get("write-default"), field.get("doc")
            yield Column(field["id"], prefix + field["name"], field["type"], field["required"], parent, *described)
    elif of["type"] == "list":
        yield Column(of["element-id"], f"{prefix}element", of["element"], of["element-required"], parent)
    else:
        yield Column(of["key-id"], f"{prefix}key", of["key"], True, parent)
        yield Column(of["value-id"], f"{prefix}value", of["value"], of["value-required"], parent)


class NameBudget:
    """The number of characters that the full names of columns may yet repeat from the names of their parents in one
    commit to a table or view, or one registered view, so that deeply nested schemas do not cost too much. It begins
    with `MAX_REPEATED_NAMES`."""

    def __init__(self) -> None:
        self._left = MAX_REPEATED_NAMES

    def spend(self, characters: int) -> None:
        """Takes characters from the budget. Raises `BadRequest` if they are more than are left."""
        self._left -= characters
        if self._left < 0:
            raise BadRequest(
                "Invalid schemas: the full names of nested columns repeat the names of their parents, with more than "
                f"{MAX_REPEATED_NAMES:,} characters in one commit or registered view: use less nesting or "
                "shorter names, or add one schema at a time"
            )


def columns_by_id(schema: Schema, budget: NameBudget | None = None) -> Columns:
    """Returns every column of a schema, at every level, by its id. Raises `BadRequest` if two columns have one id or
    one full name, if the full names have more than `MAX_NAMES` characters, or if the names of parents that they repeat
    exceed what is left of the `budget`, None for no such limit."""
    by_id = Columns()
    by_name = by_id.ids
    characters = repeated = 0
    for column in columns_of(schema):
        characters += len(column.name)
        repeated += len(column.parent.name) if column.parent is not None else 0
        if characters > MAX_NAMES:
            raise BadRequest(
                f"Invalid schema: the full names of its columns have more than {MAX_NAMES:,} characters together: "
                "use shorter names or fewer nested columns"
            )
        other = by_id.setdefault(column.id, column)
        if other is not column:
            raise BadRequest(f"Invalid schema: columns {other.name} and {column.name} have the same id {column.id}")
        if by_name.setdefault(column.name, column.id) != column.id:
            first = by_name[column.name]
            raise BadRequest(f"Invalid schema: multiple fields for name {column.name}: {first} and {column.id}")
    if budget is not None:
        budget.spend(repeated)
    return by_id


def highest_id(columns: Columns) -> int:
    """Returns the highest column id, 0 without columns."""
    return max(columns, default=0)


MAX_PROBLEMS = 20
"""Maximum columns that an error names: a schema may have tens of thousands of one unsupported type."""


def check_schema(schema: Schema, columns: Columns, format_version: int) -> None:
    """Checks the schema, of which `columns` are all columns, for this format version. Raises `BadRequest` for an
    identifier field that cannot be one, a default that does not fit its type, a required column of type unknown, and a
    type or initial default that the version does not have."""
    for column_id in schema.get("identifier-field-ids", []):
        _check_identifier(column_id, columns.get(column_id))
    for column in columns.values():
        _check_defaults(column)
        if column.type == "unknown" and column.required:
            raise BadRequest(f"Cannot create required field with unknown type: {column.name}")
    problems = list(islice(_version_problems(columns.values(), format_version), MAX_PROBLEMS))
    if problems:
        raise BadRequest("\n- ".join([f"Invalid schema for v{format_version}:", *problems]))


def _check_identifier(column_id: int, column: Column | None) -> None:
    """Fails for a column that can't be an identifier field: it is missing, not primitive, optional, a float or double,
    or inside of a list, a map or an optional struct."""
    if column is None:
        raise BadRequest(f"Cannot add fieldId {column_id} as an identifier field: field does not exist")
    cannot_identify = f"Cannot add field {column.name} as an identifier field: "
    if not column.is_primitive:
        raise BadRequest(f"{cannot_identify}not a primitive type field")
    if not column.required:
        raise BadRequest(f"{cannot_identify}not a required field")
    if column.type in ("float", "double"):
        raise BadRequest(f"{cannot_identify}must not be float or double field")
    for outer in reversed(list(column.ancestors)):
        if type_name(outer.type) != "struct":
            raise BadRequest(f"{cannot_identify}must not be nested in {outer.name}, a {type_name(outer.type)}")
        if not outer.required:
            raise BadRequest(f"{cannot_identify}must not be nested in an optional field {outer.name}")


def _check_defaults(column: Column) -> None:
    """Fails for an initial or write default that is no value of the column's type."""
    for default in (column.initial_default, column.write_default):
        fits = isinstance(column.type, str) and primitives.is_default(column.type, default)
        if default is not None and not fits:
            raise BadRequest(
                f"Cannot parse default of {column.name} as a {type_name(column.type)} value: {quoted(str(default))}"
            )


def _version_problems(columns: Iterable[Column], format_version: int) -> Iterator[str]:
    """Yields a sentence for each type, and each initial default, of these columns that a table of this format version
    can't have."""
    for column in columns:
        if isinstance(column.type, str) and format_version < (since := primitives.minimum_version(column.type)):
            yield f"Invalid type for {column.name}: {column.type} is not supported until v{since}"
        if column.initial_default is not None and format_version < 3:
            yield (
                f"Invalid initial default for {column.name}: "
                f"non-null default ({str(column.initial_default)[:100]}) is not supported until v3"
            )


def numbered_schemas(schemas: Iterable[Schema]) -> NumberedObjects[Schema]:
    """Returns the lookup of schemas by id and by meaning; a schema without an id has the id 0."""
    return NumberedObjects(
        schemas, lambda schema: schema.get("schema-id", 0), lambda schema: len(schema["fields"]), schema_meaning
    )


def schema_meaning(schema: Schema) -> Hashable:
    """Returns a key that is equal for equal columns in one order (ids, names, types, `required`, docs, defaults, and
    unknown fields) and equal identifier fields in any order. The schema's id does not count."""
    fields = cast(JsonValue, [_normal(field) for field in schema["fields"]])
    return frozenset(schema.get("identifier-field-ids") or []), dumps(fields, sort_keys=True)


def _normal(value: object) -> object:
    """Returns a field or type in one form for equal meanings: without nulls, and with canonical names of types."""
    if isinstance(value, dict):
        return {key: _normal_type(key, item) for key, item in value.items() if item is not None}
    return [_normal(item) for item in value] if isinstance(value, list) else value


def _normal_type(key: object, item: object) -> object:
    """Returns an item of a schema: in the canonical spelling if it is a type's name, else as `_normal` returns it."""
    named_type = isinstance(item, str) and key in ("type", "element", "key", "value")
    return primitives.canonical(cast(str, item)) if named_type else _normal(item)


def with_fresh_ids(schema: Schema) -> tuple[Schema, dict[int, int]]:
    """Returns the schema as schema 0 with columns numbered from 1, and the new id of each old one.

    The fields of a struct get ids first, then all that is inside the first of them, at any depth, and so on; key and
    value of a map get ids before what is inside them.
    """
    counter = _Counter()
    fields = _fresh_fields(schema["fields"], counter)
    fresh = cast(Schema, {**schema, "schema-id": 0, "fields": fields})
    if "identifier-field-ids" in schema:
        fresh["identifier-field-ids"] = sorted(counter.renamed.get(old, old) for old in schema["identifier-field-ids"])
    return fresh, counter.renamed


class _Counter:
    """Numbers the columns of a new table from 1, and keeps the new ids by the old ones."""

    def __init__(self) -> None:
        self.renamed: dict[int, int] = {}

    def fresh(self, old: int) -> int:
        """Returns the next id, and records that it replaces `old`."""
        new = len(self.renamed) + 1
        self.renamed[old] = new
        return new


def _fresh_fields(fields: list[StructField], counter: _Counter) -> list[StructField]:
    """Returns fields with new ids at all levels, first the ids of these fields, and records the new ids in
    `counter`."""
    ids = [counter.fresh(field["id"]) for field in fields]
    return [
        {**field, "id": new, "type": _fresh_type(field["type"], counter)}
        for field, new in zip(fields, ids, strict=True)
    ]


def _fresh_type(of: Type, counter: _Counter) -> Type:
    """Returns a type with new ids inside it, and records these in `counter`. A primitive type is returned as it is."""
    if isinstance(of, str):
        return of
    if of["type"] == "struct":
        return {**of, "fields": _fresh_fields(of["fields"], counter)}
    if of["type"] == "list":
        return {**of, "element-id": counter.fresh(of["element-id"]), "element": _fresh_type(of["element"], counter)}
    key_id, value_id = counter.fresh(of["key-id"]), counter.fresh(of["value-id"])
    key, value = _fresh_type(of["key"], counter), _fresh_type(of["value"], counter)
    return {**of, "key-id": key_id, "key": key, "value-id": value_id, "value": value}
