"""Shapes of JSON values: each checks a value, gives it its static type, and reports an error with its place.

A shape is a function from a JSON value to the same value, typed. Known optional fields that are `null` count as absent,
and are left out of the result, because other readers refuse them; unknown fields stay as they are.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar, cast

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T")
Shape: TypeAlias = Callable[[JsonValue], T]


class ShapeError(Exception):
    """A JSON value does not have the expected shape. `path` is its place, which each outer level extends. `check` turns
    this error into a `BadRequest`."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path

    def inside(self, step: str) -> "ShapeError":
        """Returns the error with the place of the value in the document extended by one outer level."""
        joint = "." if self.path and not self.path.startswith("[") else ""
        return ShapeError(self.problem, f"{step}{joint}{self.path}")


def kind_of(value: JsonValue) -> str:
    """Returns the name of a value's JSON type for messages, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def quoted(text: str) -> str:
    """Returns a client's text in quotes for a message, at most 100 characters of it."""
    return repr(text) if len(text) <= 100 else f"{text[:100]!r}..."


def unexpected(wanted: str, value: JsonValue) -> ShapeError:
    """Returns the error for a `value` that is not of the `wanted` kind."""
    return ShapeError(f"expected {wanted}, found {kind_of(value)}")


def check(shape: Shape[T], value: JsonValue, name: str) -> T:
    """Returns the result of the shape for `value`. Raises `BadRequest`, which names the place, starting at `name`."""
    try:
        return shape(value)
    except ShapeError as mismatch:
        whole = mismatch.inside(name)
        raise BadRequest(f"Invalid {whole.path}: {whole.problem}") from None


def ANY(value: JsonValue) -> JsonValue:  # noqa: N802 - shapes are constants to their users
    """Returns the value, whatever it is."""
    return value


def STRING(value: JsonValue) -> str:  # noqa: N802
    """Returns the value if it is a string. Raises `ShapeError`."""
    if isinstance(value, str):
        return value
    raise unexpected("a string", value)


def NAME(value: JsonValue) -> str:  # noqa: N802
    """Returns the value if it is a string of at least one character. Raises `ShapeError`."""
    if value == "":
        raise ShapeError("the string must not be empty")
    return STRING(value)


def BOOLEAN(value: JsonValue) -> bool:  # noqa: N802
    """Returns the value if it is a boolean. Raises `ShapeError`."""
    if isinstance(value, bool):
        return value
    raise unexpected("a boolean", value)


def _integer(bits: int) -> Shape[int]:
    """Returns the check of integers of so many bits."""
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def shape(value: JsonValue) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise unexpected("an integer", value)
        if not low <= value <= high:
            raise ShapeError(f"{value} does not fit into {bits} bits")
        return value

    return shape


INT = _integer(32)
MAX_INT, MAX_LONG = 2**31 - 1, 2**63 - 1
"""Readers refuse a document with larger integers."""
LONG = _integer(64)


def following_id(what: str, last: int) -> int:
    """Returns the id after `last`. Raises `BadRequest`, which names `what`, if that does not fit into 32 bits, which is
    the limit of readers."""
    if last >= MAX_INT:
        raise BadRequest(
            f"Cannot assign a {what} id: {last} is the largest id there is, and it is taken: a removal frees only ids "
            "of schemas and specs of tables, and not those of partition fields, which a client may assign itself"
        )
    return last + 1


def one_of(*words: str) -> Shape[str]:
    """Returns a check that accepts only these strings."""

    def shape(value: JsonValue) -> str:
        if STRING(value) not in words:
            known = " or ".join(repr(str(word)) for word in words)  # those of an enumeration would be its members
            raise ShapeError(f"expected {known}, found {quoted(cast(str, value))}")
        return cast(str, value)

    return shape


def list_of(element: Shape[T]) -> Shape[list[T]]:
    """Returns a check that accepts an array whose elements all have one shape."""

    def shape(value: JsonValue) -> list[T]:
        if not isinstance(value, list):
            raise unexpected("an array", value)
        checked = []
        for position, item in enumerate(value):
            try:
                checked.append(element(item))
            except ShapeError as mismatch:
                raise mismatch.inside(f"[{position}]") from None
        return checked

    return shape


def map_of(element: Shape[T]) -> Shape[dict[str, T]]:
    """Returns a check that accepts an object whose values all have one shape."""

    def shape(value: JsonValue) -> dict[str, T]:
        if not isinstance(value, dict):
            raise unexpected("an object", value)
        checked = {}
        for name, item in value.items():
            try:
                checked[name] = element(item)
            except ShapeError as mismatch:
                raise mismatch.inside(f"[{quoted(name)}]") from None
        return checked

    return shape


STRINGS = map_of(STRING)


def record(
    kind: type[T], required: Mapping[str, Shape[object]], optional: Mapping[str, Shape[object]] | None = None
) -> Shape[T]:
    """Returns a check that accepts an object with these fields, typed as the `TypedDict` `kind`. A `required` field
    must be present and not null; an `optional` one may be missing, and is left out of the result if it is null. Other
    fields stay as they are."""
    shapes = {**required, **(optional or {})}

    def shape(value: JsonValue) -> T:
        checked = dict(OBJECT(value))
        for name, field in shapes.items():
            found = checked.get(name)
            if found is None:
                if name in required:
                    raise ShapeError(f"missing required field {name!r}{': it is null' if name in checked else ''}")
                checked.pop(name, None)
                continue
            try:
                checked[name] = cast(JsonValue, field(found))
            except ShapeError as mismatch:
                raise mismatch.inside(name) from None
        return cast(T, checked)

    return shape


def OBJECT(value: JsonValue) -> JsonObject:  # noqa: N802
    """Returns the value if it is an object, with any fields. Raises `ShapeError`."""
    if isinstance(value, dict):
        return value
    raise unexpected("an object", value)


@dataclass(frozen=True, slots=True)
class Fields:
    """One object of a request, and its place there for messages, whose fields are read one by one."""

    values: JsonObject
    at: str = "request"

    def required(self, name: str, shape: Shape[T]) -> T:
        """Returns the value of a field of an object in a request. Raises `BadRequest` if it is missing, null or of
        another shape."""
        value = self.values.get(name)
        if value is None:
            null = ": it is null" if name in self.values else ""
            raise BadRequest(f"Invalid {self.at}: missing required field {name!r}{null}")
        return check(shape, value, f"{self.at}.{name}")

    def optional(self, name: str, shape: Shape[T]) -> T | None:
        """Returns the value of a field of an object in a request, None if it is missing or null. Raises `BadRequest`
        for a value that does not match."""
        value = self.values.get(name)
        return None if value is None else check(shape, value, f"{self.at}.{name}")
