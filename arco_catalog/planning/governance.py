"""Governance: the owner, quality and tags of a namespace, table or view, and the tags of columns. The catalog stores it
apart from an entity's metadata (docs/design/polaris.md#governance).

A governance document is an object of names and texts: `arco.owner`, `arco.quality`, `arco.protected`, `arco.tag.NAME`,
and for columns, which are named by their field ids, `arco.column.FIELD-ID.tag.NAME`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.properties import is_reserved, refuse_reserved
from arco_catalog.iceberg.shapes import kind_of, quoted

Governance = Mapping[str, str]

OWNER = "arco.owner"
QUALITY = "arco.quality"
PROTECTED = "arco.protected"
_SINGLE = frozenset({OWNER, QUALITY, PROTECTED})
"""The names that are no tags."""
_TAG = "arco.tag."
_COLUMN = re.compile(r"arco\.column\.([0-9]{1,10})\.tag\.(.*)", re.DOTALL)
NOT_CONTROL = r"[^\x00-\x1f\x7f-\x9f]"
"""Pattern of a character that a tag's name or a text may have."""
_NO_CONTROLS = re.compile(f"{NOT_CONTROL}*")

MAX_TAG_NAME = 128
"""The limit of a tag's name in characters."""
MAX_TEXT = 1 << 10
"""The limit of an owner, a quality or a tag's value in characters."""
MAX_TAGS = 50
"""The limit of tags of an entity itself, and of each of its columns."""
MAX_GOVERNANCE_BYTES = 16 << 10
"""The limit of all names and values of an entity in bytes: they are in its registry entry, which every load reads."""
MAX_CHANGES = 1_000
"""The limit of names in one request. A document of the maximum size can't have more names of columns' tags."""
_MAX_FIELD_ID = 2**31 - 1


def governance_of(properties: Mapping[str, JsonValue]) -> dict[str, str]:
    """Returns the governance among a namespace's properties: those with a text as value and a reserved name, which
    begins with `arco.` in any case of letters."""
    return {name: value for name, value in properties.items() if is_reserved(name) and isinstance(value, str)}


def merge(subject: str, before: Governance, patch: JsonObject, *, columns: bool) -> dict[str, str]:
    """Returns the governance document `before` after a JSON merge patch (RFC 7386), in which null removes a name.
    Messages call the entity `subject`; without `columns` it has none to tag. Raises `BadRequest`, which names the wrong
    field, for too many changes, for a result over the limit of tags if the patch adds a name, and for one over the
    limit of bytes if it has more of them than before."""
    if len(patch) > MAX_CHANGES:  # before the loop, which takes time for each name
        raise BadRequest(f"One request may change {MAX_CHANGES:,} names of governance at most, not {len(patch):,}")
    after = dict(before)
    for name, value in patch.items():
        if value is not None or name not in before:  # a stored name may be removed, even if it is not valid today
            _check_name(name, subject, columns=columns)
        if value is None:
            after.pop(name, None)
        else:
            after[name] = _checked_text(name, value)
    _check_size(subject, before, after)
    return after


def _check_name(name: str, subject: str, *, columns: bool) -> None:
    """Raises `BadRequest` for an unknown name in a governance document, for an invalid name of a tag, and for a tag of
    a column if the entity has none (without `columns`)."""
    if name in _SINGLE:
        return
    if name.startswith(_TAG):
        _check_tag(name, name.removeprefix(_TAG))
        return
    column = _COLUMN.fullmatch(name)
    if column is None:
        raise BadRequest(
            f"Invalid request: {quoted(name)}: governance has the names {OWNER}, {QUALITY}, {PROTECTED}, {_TAG}NAME "
            "and arco.column.FIELD-ID.tag.NAME"
        )
    if not columns:
        raise BadRequest(f"Invalid request: {quoted(name)}: {subject} has no columns")
    if int(column[1]) > _MAX_FIELD_ID or str(int(column[1])) != column[1]:
        raise BadRequest(
            f"Invalid request: {quoted(name)}: {column[1]}, after 'arco.column.', is no field id: expected a number of "
            f"at most {_MAX_FIELD_ID} without leading zeros"
        )
    _check_tag(name, column[2])


def _check_tag(name: str, tag: str) -> None:
    """Raises `BadRequest` for an invalid name of a tag."""
    if not 1 <= len(tag) <= MAX_TAG_NAME or not _NO_CONTROLS.fullmatch(tag):
        raise BadRequest(
            f"Invalid request: {quoted(name)}: a tag's name has 1 to {MAX_TAG_NAME} characters, and no control "
            "characters"
        )


def _checked_text(name: str, value: JsonValue) -> str:
    """Returns the text. Raises `BadRequest` if the field `name` may not have this value."""
    if not isinstance(value, str):
        raise BadRequest(
            f"Invalid request: {quoted(name)}: expected a string, or null to remove it, found {kind_of(value)}"
        )
    if len(value) > MAX_TEXT or not _NO_CONTROLS.fullmatch(value):
        raise BadRequest(
            f"Invalid request: the value of {quoted(name)} may have at most {MAX_TEXT:,} characters, and no control "
            "characters"
        )
    if name == PROTECTED and value not in ("true", "false"):
        raise BadRequest(f"Invalid request: {quoted(name)}: expected 'true' or 'false', found {quoted(value)}")
    if not value and name in (OWNER, QUALITY):
        raise BadRequest(f"Invalid request: {quoted(name)}: it must not be empty; null removes it")
    return value


def _check_size(subject: str, before: Governance, after: Governance) -> None:
    """Raises `BadRequest` if the governance document `after` has more than `MAX_TAGS` tags of the entity or of one
    column, and a name that `before` lacks; or if it takes more than `MAX_GOVERNANCE_BYTES`, and more bytes than
    `before`."""
    tagged = (_COLUMN.fullmatch(name) for name in after if name not in _SINGLE)
    for column, count in Counter("" if match is None else match[1] for match in tagged).items():
        if count > MAX_TAGS and not after.keys() <= before.keys():
            of = f"column {column} of {subject}" if column else subject
            raise BadRequest(f"Invalid request: {of} would have {count:,} tags, more than {MAX_TAGS}")
    if (size := _size(after)) > max(MAX_GOVERNANCE_BYTES, _size(before)):
        longest = max(after, key=lambda name: len(name) + len(after[name]))
        raise BadRequest(
            f"Invalid request: the governance of {subject} would take {size:,} bytes, more than "
            f"{MAX_GOVERNANCE_BYTES:,}; the longest of it is {quoted(longest)}"
        )


def _size(governance: Governance) -> int:
    """Returns how many bytes names and values have."""
    return sum(len(name.encode()) + len(value.encode()) for name, value in governance.items())


def is_protected(governance: Governance) -> bool:
    """Whether an entity with this governance document is protected (planning/protection.py)."""
    return governance.get(PROTECTED) == "true"


def labels_of(governance: Governance) -> JsonObject:
    """Returns the labels of an answer to a load (Iceberg REST, `Labels`), under the names of the document; the tags of
    a column have the names of a table's tags."""
    own: JsonObject = {}
    columns: dict[int, JsonObject] = {}
    for name, value in governance.items():
        column = _COLUMN.fullmatch(name)
        if column is None:
            own[name] = value
        else:
            columns.setdefault(int(column[1]), {})[_TAG + column[2]] = value
    labels: JsonObject = {"object-labels": own} if own else {}
    if columns:
        labels["fields"] = [{"field-id": field, "labels": columns[field]} for field in sorted(columns)]
    return labels


def refuse_governance(removals: Sequence[str], updates: Mapping[str, str], before: Mapping[str, JsonValue]) -> None:
    """Raises `BadRequest` for an update of a namespace's properties that would change governance or another reserved
    name (`polaris.`), and for every removal of a reserved name, even of one that is not there. A client may send
    governance back that it has read, which changes nothing."""
    refuse_reserved([*removals, *(name for name, value in updates.items() if before.get(name) != value)])
