"""`arco diff`: displays what differs between two versions of a table or view, by the operation of the HTTP API,
directly at the store."""

from collections.abc import Iterator

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.session import carry_out, for_table_or_view, open_session
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.operations.compare import compare_versions
from arco_catalog.state.characters import escaped
from arco_catalog.state.fields import mapping, objects, sequence, texts

LAYOUTS = {"partition-specs": "partition spec", "sort-orders": "sort order"}
MAPPINGS = {"properties": "property", "refs": "ref", "representations": "SQL"}


def run(options: CatalogOptions, name: str, before: str, after: str | None, *, as_json: bool) -> int:
    """Displays the differences between two versions of a table or view, named as `compare_versions` has it; without
    `after` between a version and the current one. Returns 0. Raises `CliError`."""
    identifier = parse_identifier(name)

    async def read() -> JsonObject:
        async with open_session(options, "diff", find_catalog) as session:
            return await for_table_or_view(
                session, lambda opened, kind: compare_versions(opened, *identifier, kind, before, after)
            )

    compared = carry_out(read)
    print(json_text(compared) if as_json else as_text(compared))
    return 0


def as_text(compared: JsonObject) -> str:
    """Formats a comparison: both versions, then one line a difference, with + for what was added, - for what was
    dropped, and ~ for what changed, or a line that nothing differs."""
    lines = [*_differences(compared)] or ["Nothing differs."]
    heads = [f"{side.ljust(4)}  {_version(mapping(compared, side))}" for side in ("from", "to")]
    return "\n".join(map(escaped, [*heads, "", *lines]))


def _version(version: JsonObject) -> str:
    """Formats the number and the time of a version."""
    return f"version {format_text(version.get('version'))} of {format_time(version.get('at-ms'))}"


def _differences(compared: JsonObject) -> Iterator[str]:
    """Yields the lines of a comparison of two versions of a table or view, in the order in which they are printed."""
    for name, change in mapping(compared, "fields").items():
        yield f"~ {name}: {_change(change)}"
    yield from _columns(mapping(compared, "schema"))
    for part, noun in LAYOUTS.items():
        yield from _layouts(mapping(compared, part), noun)
    for part, noun in MAPPINGS.items():
        yield from _mappings(mapping(compared, part), noun)
    for name, change in mapping(compared, "size").items():
        if isinstance(change, dict) and change.get("from") != change.get("to"):
            yield f"~ {name}: {_change(change)}"
    yield from _snapshots(mapping(compared, "snapshots"))
    yield from _view_versions(mapping(compared, "view-versions"))


def _columns(schema: JsonObject) -> Iterator[str]:
    """Yields the lines about added, dropped and changed columns, another order of columns, and other identifier
    columns."""
    for sign, part in (("+", "added"), ("-", "dropped")):
        for column in objects(schema, part):
            named = format_text(column.get("id")), format_text(column.get("name")), format_text(column.get("type"))
            yield f"{sign} column {' '.join(named)}"
    for column in objects(schema, "changed"):
        before, after = mapping(column, "from"), mapping(column, "to")
        for name in texts(column, "differs"):
            change = _change({"from": before.get(name), "to": after.get(name)})
            yield f"~ column {format_text(column.get('id'))} {format_text(after.get('name'))}, {name}: {change}"
    if schema.get("reordered") is True:
        yield "~ the order of columns"
    if schema.get("identifiers") is not None:
        yield f"~ identifier columns: {_change(schema.get('identifiers'))}"


def _layouts(layouts: JsonObject, noun: str) -> Iterator[str]:
    """Yields the lines about added and dropped partition specs or sort orders (`noun`), and another default."""
    for sign, part in (("+", "added"), ("-", "dropped")):
        for layout in objects(layouts, part):
            yield f"{sign} {noun} {format_text(layout.get('id'))}: {', '.join(texts(layout, 'fields')) or '-'}"
    if layouts.get("default") is not None:
        yield f"~ default {noun}: {_change(layouts.get('default'))}"


def _mappings(differences: JsonObject, noun: str) -> Iterator[str]:
    """Yields the lines about added, dropped and changed members of an object, such as properties or refs (`noun`)."""
    for sign, part in (("+", "added"), ("-", "dropped")):
        for name, value in mapping(differences, part).items():
            yield f"{sign} {noun} {name}: {_text(value)}"
    for name, change in mapping(differences, "changed").items():
        yield f"~ {noun} {name}: {_change(change)}"


def _snapshots(snapshots: JsonObject) -> Iterator[str]:
    """Yields the lines about the snapshots of two versions: how the current ones are related, unless they are equal,
    and the numbers of added and dropped ones that are not 0."""
    counts = mapping(snapshots, "counts")
    relation = snapshots.get("relation")
    if relation not in (None, "equal"):
        yield f"~ the current snapshot is {relation}, {counts.get('between')} snapshots between"
    for sign, part in (("+", "added"), ("-", "dropped")):
        if counts.get(part):
            yield f"{sign} {counts[part]} snapshots"


def _view_versions(versions: JsonObject) -> Iterator[str]:
    """Yields the lines about another current version of a view's SQL, and about added and dropped versions."""
    if versions.get("current") is not None:
        yield f"~ current view version: {_change(versions.get('current'))}"
    for sign, part in (("+", "added"), ("-", "dropped")):
        for number in sequence(versions, part):
            yield f"{sign} view version {format_text(number)}"


def _change(change: JsonValue) -> str:
    """Formats a change as the value before and the value after it."""
    sides = change if isinstance(change, dict) else {}
    return f"{_text(sides.get('from'))} -> {_text(sides.get('to'))}"


def _text(value: JsonValue) -> str:
    """Formats a value for a comparison: an object or array as JSON, any other value as one line, with a dash for
    None."""
    return dumps(value).decode() if isinstance(value, dict | list) else format_text(value)
