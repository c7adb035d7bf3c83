"""Types of policies: which are inherited, what content they allow, and what they can be attached to
(docs/design/polaris.md#policies).

The four predefined types are those of Apache Polaris, by its JSON schemas of 2025-02-03. The content of all other types
belongs to their users, and is saved as it is.
"""

from collections.abc import Mapping

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads
from arco_catalog.iceberg.shapes import (
    BOOLEAN,
    OBJECT,
    STRING,
    Shape,
    ShapeError,
    check,
    kind_of,
    list_of,
    map_of,
    one_of,
    quoted,
)

SYSTEM = "system."
"""Prefix of the predefined types. No other type may begin with it, in any case of letters."""
MAX_TYPE = 128
"""Maximum number of characters of a type."""
SCHEMA_VERSION = "2025-02-03"


def _scalar(value: JsonValue) -> JsonValue:
    """Returns a string, a number or a boolean. Raises `ShapeError` for any other value."""
    if value is None or isinstance(value, list | dict):
        raise ShapeError(f"expected a string, a number or a boolean, found {kind_of(value)}")
    return value


def _days(value: JsonValue) -> JsonValue:
    """Returns a number that is not negative. Raises `ShapeError` for any other value."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ShapeError(f"expected a number, found {kind_of(value)}")
    if value < 0:
        raise ShapeError(f"expected a number of at least 0, found {value}")
    return value


_COMMON: Mapping[str, Shape[object]] = {
    "version": one_of(SCHEMA_VERSION),
    "enable": BOOLEAN,
    "config": map_of(_scalar),
}
PREDEFINED: Mapping[str, Mapping[str, Shape[object]]] = {
    "system.data-compaction": _COMMON,
    "system.metadata-compaction": _COMMON,
    "system.orphan-file-removal": {
        **_COMMON,
        "max_orphan_file_age_in_days": _days,
        "locations": list_of(STRING),
    },
    "system.snapshot-expiry": _COMMON,
}
"""The predefined types, and the fields that their content may have. It must have `enable`."""


def canonical_type(name: str) -> str:
    """Returns the canonical spelling of a policy type: predefined ones have hyphens, others stay as they are. Raises
    `BadRequest` for an invalid type, and for an unknown one that begins as the predefined ones do."""
    if not 0 < len(name) <= MAX_TYPE or not name.isprintable():
        raise BadRequest(f"A policy type must have 1 to {MAX_TYPE} printable characters: {quoted(name)}")
    if not name.casefold().startswith(SYSTEM):
        return name
    spelt = name.replace("_", "-")
    if spelt not in PREDEFINED:
        known = ", ".join(PREDEFINED)
        raise BadRequest(f"Unknown policy type: {quoted(name)}. Those that begin with system. are {known}")
    return spelt


def is_inheritable(policy_type: str) -> bool:
    """Whether objects inside a target inherit a policy of this type: only if the type is predefined."""
    return policy_type in PREDEFINED


def check_content(policy_type: str, content: str | None) -> None:
    """Raises `BadRequest`, which names the field, for content that a predefined type does not allow: none, no JSON
    object, one without `enable`, or one with an unknown field or a wrong value. Any other type allows all content, and
    none."""
    fields = PREDEFINED.get(policy_type)
    if fields is None:
        return
    if not content:
        raise BadRequest(
            f"Invalid request.content: it is missing or empty, and a policy of type {policy_type} needs it"
        )
    for name, value in _document(content).items():
        shape = fields.get(name)
        if shape is None:
            raise BadRequest(
                f"Invalid content.{name[:100]}: a policy of type {policy_type} has only the fields {', '.join(fields)}"
            )
        check(shape, value, f"content.{name}")


def _document(content: str) -> JsonObject:
    """Returns the content of a policy of a predefined type, parsed. Rejects content that is no JSON object or has
    no field `enable`."""
    try:
        document = check(OBJECT, loads(content.encode()), "content")
    except (MalformedJson, UnicodeEncodeError) as error:
        raise BadRequest(f"Invalid request.content: not JSON: {error}") from error
    if "enable" not in document:
        raise BadRequest("Invalid content: missing required field 'enable'")
    return document


def check_target(policy_type: str, kind: str) -> None:
    """Raises `BadRequest` for a policy of a predefined type and a target that is a view or a generic table: these types
    are for the maintenance of Iceberg tables."""
    if policy_type in PREDEFINED and kind in ("view", "generic-table"):
        raise BadRequest(
            f"A policy of type {policy_type} cannot be attached to a {kind.replace('-', ' ')}: it is for Iceberg "
            "tables, and for namespaces and catalogs that hold them"
        )
