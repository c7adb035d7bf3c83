"""Documents with something in them that does not belong there."""

from collections.abc import Callable
from typing import TypeAlias, cast

from hypothesis import strategies as st

from arco_catalog.iceberg.json import JsonObject, JsonValue

Step: TypeAlias = str | int

WORDS = [
    *("namespace", "name", "properties", "removals", "updates", "schema", "location", "partition-spec", "write-order"),
    *("stage-create", "metadata-location", "overwrite", "source", "destination", "identifier", "requirements"),
    *("report-type", "type", "action", "fields", "id", "required", "struct", "list", "map", "element", "key", "value"),
    *("snapshot", "snapshot-id", "ref-name", "uuid", "spec", "sort-order", "format-version", "ref", "branch", "refs"),
    *("spec-id", "source-id", "transform", "field-id", "order-id", "direction", "null-order", "last-column-id"),
    *("schema-id", "t", "db", "wh", "x", "main", "identity", "bucket[4]", "long", "decimal(9,2)", "fixed[8]"),
    *(
        "format",
        "base-location",
        "doc",
        "content",
        "description",
        "current-policy-version",
        "target",
        "path",
        "parameters",
    ),
    *(
        "document",
        "semantic_model",
        "version",
        "entity-version",
        "datasets",
        "notification-type",
        "payload",
        "timestamp",
    ),
    *("CREATE", "catalog", "table-like", "system.data-compaction", "g", "m", "p"),
    *("memory:///wh/warehouse/u", "memory:///wh/_catalog", "file:/etc", "s3://b/p", "assert-create", "set-location"),
]
HOSTILE = [
    *("", ".", "..", "../..", "/", "\x00", "\x1f", "\n", "a\rb", "%2e%2e", "%2F", "%00", "..;/", "\ufeff", "\u202e"),
    *("__proto__", "constructor", "${jndi:ldap://x}", "' or 1=1 --", "arco.x", "ARCO.entity", "\U0001f9ca", "e\u0301"),
    *("write.metadata.path", "write.data.path", "file:///etc/passwd", "file://localhost/etc", "s3://u:p@b/k?x#y"),
    *("NaN", "-0", "1e400", "0x1F", "١٢", "true", "null", "a" * 256, "bucket[99999999999]", "truncate[-1]"),
    *("decimal(39,40)", "fixed[-1]", "timestamp_ns", "geometry(srid:0)", "unknown", "variant", "void"),
]
NUMBERS = [-(2**70), -(2**63), -(2**31) - 1, -1, 0, 1, 999, 1000, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**70]

leaves: st.SearchStrategy[JsonValue] = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from(NUMBERS)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | st.sampled_from(HOSTILE)
    | st.text(max_size=8)
)
values: st.SearchStrategy[JsonValue] = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=12,
)


def places(document: JsonValue, path: tuple[Step, ...] = ()) -> list[tuple[Step, ...]]:
    """The paths of everything in a document."""
    found = [path]
    if isinstance(document, dict):
        for name, inner in document.items():
            found += places(inner, (*path, name))
    elif isinstance(document, list):
        for position, inner in enumerate(document):
            found += places(inner, (*path, position))
    return found


def at(document: JsonValue, path: tuple[Step, ...]) -> JsonValue:
    """What stands at a path."""
    for step in path:
        document = document[str(step)] if isinstance(document, dict) else cast(list[JsonValue], document)[int(step)]
    return document


def changed(document: JsonValue, path: tuple[Step, ...], change: Callable[[JsonValue], JsonValue]) -> JsonValue:
    """The document with something else at a path."""
    if not path:
        return change(document)
    step, *rest = path
    if isinstance(document, dict):
        return {**document, str(step): changed(document[str(step)], tuple(rest), change)}
    assert isinstance(document, list)
    place = int(step)
    return [*document[:place], changed(document[place], tuple(rest), change), *document[place + 1 :]]


def replaced(document: JsonValue, path: tuple[Step, ...], value: JsonValue) -> JsonValue:
    """The document with another value at a path."""
    return changed(document, path, lambda _: value)


def without(document: JsonValue, path: tuple[Step, ...]) -> JsonValue:
    """The document without what stands at a path."""
    last = path[-1]

    def cut(holder: JsonValue) -> JsonValue:
        if isinstance(holder, dict):
            return {name: value for name, value in holder.items() if name != last}
        return [item for place, item in enumerate(cast(list[JsonValue], holder)) if place != last]

    return changed(document, path[:-1], cut)


def _grown(holder: JsonValue, name: str, value: JsonValue) -> JsonValue:
    if isinstance(holder, dict):
        return {**holder, name: value}
    return [*holder, value] if isinstance(holder, list) else value


@st.composite
def mutants(draw: st.DrawFn, document: JsonValue, max_size: int = 3) -> JsonValue:
    """The document after some changes: values replaced, moved, doubled, added and left out."""
    for _ in range(draw(st.integers(1, max_size))):
        found = places(document)
        path = draw(st.sampled_from(found))
        match draw(st.sampled_from(["replace", "replace", "number", "move", "grow", "double", "leave out"])):
            case "replace":
                document = replaced(document, path, draw(values))
            case "number":
                numbers = [each for each in found if isinstance(at(document, each), int)]
                if numbers:
                    document = replaced(document, draw(st.sampled_from(numbers)), draw(st.sampled_from(NUMBERS)))
            case "move":
                document = replaced(document, path, at(document, draw(st.sampled_from(found))))
            case "grow":
                name, value = draw(st.sampled_from(WORDS + HOSTILE)), draw(leaves)
                document = changed(document, path, lambda old, name=name, value=value: _grown(old, name, value))  # type: ignore[misc]
            case "double":
                document = changed(document, path, lambda old: [*old, *old] if isinstance(old, list) else old)
            case _ if path:
                document = without(document, path)
            case _:
                document = {}
    return document


def as_object(document: JsonValue) -> JsonObject:
    """The document, if it is an object."""
    assert isinstance(document, dict)
    return document
