"""The rules for names of namespaces, tables and other objects, in paths and in bodies.

A name may contain slashes, dots, percent signs, spaces and letters of any script. It may not contain text that a path,
a separator, a listing or a log could misread.
"""

from collections.abc import Sequence

from arco_catalog.http.options import UNIT_SEPARATOR
from arco_catalog.http.spelling import Spelling
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.shapes import OBJECT, STRING, Fields, list_of
from arco_catalog.state.characters import first_control_character
from arco_catalog.state.index import Namespace

MAX_LEVELS = 16
MAX_NAME_BYTES = 255


def check_name(name: str, what: str) -> str:
    """Returns the name if a level of a namespace or another object may have it: it has 1 to `MAX_NAME_BYTES` bytes in
    UTF-8, is neither `.` nor `..`, and has no control characters. Raises `BadRequest` otherwise, with a message that
    begins with `what`."""
    if not name:
        raise BadRequest(f"{what} must not be empty")
    if name in (".", ".."):
        # Clients and proxies remove such a path segment, and the request would reach another object.
        raise BadRequest(f"{what} must not be {name!r}")
    size = len(name.encode())
    if size > MAX_NAME_BYTES:
        raise BadRequest(f"{what} is {size} bytes long in UTF-8: at most {MAX_NAME_BYTES} are allowed")
    if not name.isprintable() and any(map(_is_control, name)):
        raise BadRequest(f"{what} must not contain control characters: {name!r}")
    return name


def check_routable(name: str, what: str, unroutable: str, spelling: Spelling) -> str:
    """Returns the name if a new object may have it besides what `check_name` requires. Raises `BadRequest` if it
    contains a character that changes the display of text, one of the `unroutable` characters, which paths lose on their
    way to this server, or one that the client does not escape in paths, according to its `spelling`; the message begins
    with `what`."""
    control = first_control_character(name)
    if control is not None:
        raise BadRequest(f"{what} must not contain the character {control}: {name!r}")
    if lost := "".join(character for character in unroutable if character in name):
        raise BadRequest(
            f"{what} must not contain {lost!r}: the endpoint in front of this catalog decodes paths, so no later "
            "request could name it. A catalog behind a REST API or a function URL supports such names"
        )
    if lost := spelling.lost(name):
        raise BadRequest(
            f"{what} must not contain {lost!r}: {spelling.client} does not escape it in paths, so it could not name "
            "it later. Clients that percent-encode names (Spark, Trino, PyIceberg, DuckDB) can create such names"
        )
    return name


def creates(change: JsonObject) -> bool:
    """Whether a commit creates its table: it has the requirement `assert-create`."""
    requirements = change.get("requirements")
    return isinstance(requirements, list) and any(
        isinstance(requirement, dict) and requirement.get("type") == "assert-create" for requirement in requirements
    )


def check_namespace(levels: Sequence[str], what: str, separator: str) -> Namespace:
    """Returns the levels as a namespace. Raises `BadRequest` if they are not 1 to `MAX_LEVELS`, or if a level is no
    valid name or contains the `separator`; `what` names the namespace in the message."""
    if not 1 <= len(levels) <= MAX_LEVELS:
        raise BadRequest(f"{what} must have 1 to {MAX_LEVELS} levels, not {len(levels)}")
    for level in levels:
        check_name(level, f"A level of {what}")
        if separator in level:
            raise BadRequest(f"A level of {what} must not contain the namespace separator {separator!r}: {level!r}")
    return tuple(levels)


def decode_namespace(joined: str, separator: str) -> Namespace:
    """Returns the namespace of a path or query, whose levels are `joined` by the `separator` that the server advertises
    or by the unit separator, which old clients always use. Raises `BadRequest` if it is no valid namespace."""
    levels = joined.replace(separator, UNIT_SEPARATOR).split(UNIT_SEPARATOR)
    return check_namespace(levels, "namespace", separator)


def read_namespace(fields: Fields, separator: str) -> Namespace:
    """Returns the namespace in the field `namespace` of a body. Raises `BadRequest` if it is missing or invalid."""
    return check_namespace(fields.required("namespace", list_of(STRING)), f"{fields.at}.namespace", separator)


def read_name(fields: Fields) -> str:
    """Returns the name in the field `name` of a body. Raises `BadRequest` if it is missing or invalid."""
    return check_name(fields.required("name", STRING), f"{fields.at}.name")


def read_identifier(identifier: JsonObject, at: str, separator: str) -> tuple[Namespace, str]:
    """Returns the namespace and the name of a `TableIdentifier`. Raises `BadRequest` if it is invalid; `at` is its path
    in the error message."""
    fields = Fields(identifier, at)
    return read_namespace(fields, separator), read_name(fields)


def required_identifier(fields: Fields, name: str, separator: str) -> tuple[Namespace, str]:
    """Returns the namespace and the name of the `TableIdentifier` in the field `name` of a body. Raises `BadRequest` if
    it is missing or invalid."""
    return read_identifier(fields.required(name, OBJECT), f"{fields.at}.{name}", separator)


def _is_control(character: str) -> bool:
    """Whether Unicode counts a character as a control character (category Cc): those of ASCII and Latin-1, for ever."""
    return character < " " or "\x7f" <= character <= "\x9f"
