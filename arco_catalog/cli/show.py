"""`arco show`: prints the records about one table, view, generic table or semantic model: its entry, for a table or
view also pointer, last commits, open intent and idempotency markers, except for a table that follows another catalog's;
or what had the name at a time in the past."""

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import columns, format_author, format_client, format_duration, format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.output import facts
from arco_catalog.cli.session import carry_out, open_session
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.as_of import relation_at
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.state.characters import escaped
from arco_catalog.state.fields import mapping, sequence, texts

MARKERS = ("AGE", "SLOT", "REQUEST", "BY", "ATTEMPT", "MARKER")


def run(options: CatalogOptions, table: str, *, at_ms: int | None = None, as_json: bool) -> int:
    """Displays the records of the object that has the name, or of the last one that was dropped under it; with `at_ms`
    instead which table or view had the name at that time, or was the last one dropped under it. Returns 0. Raises
    `CliError`, also if no object has or had the name."""
    namespace, name = parse_identifier(table)

    async def read() -> JsonObject:
        async with open_session(options, "show", find_catalog) as session:
            if at_ms is not None:
                return await relation_at(session, namespace, name, at_ms)
            return await inspect_relation(session, namespace, name)

    shown = carry_out(read)
    as_shown = as_text if at_ms is None else as_text_then
    print(json_text(shown) if as_json else escaped(as_shown(shown)))
    return 0


def as_text_then(shown: JsonObject) -> str:
    """Formats which object had the name at a time, which metadata file was current, its commit's author, and the
    registry commit that was HEAD."""
    registry = mapping(shown, "registry")
    made = f"{format_text(registry.get('commit'))}, made {format_time(registry.get('at_ms'))}"
    return facts(
        [
            *_meant(shown),
            ("snapshot", format_text(shown.get("snapshot_id"))),
            ("committed by", format_author(shown)),
            ("registry", made),
        ]
    )


def _meant(shown: JsonObject) -> list[tuple[str, str]]:
    """Returns the facts about the object that has a name, and its metadata file."""
    return [
        *_named(shown),
        ("metadata", format_text(shown.get("metadata_location"))),
        ("  made", format_time(shown.get("metadata_ms"))),
        ("  from", format_text(mapping(shown, "base").get("metadata_location"))),
    ]


def as_text(shown: JsonObject) -> str:
    """Formats the records of an object, one fact on a line. For a table or view the open markers follow in columns, or
    a sentence without any; for a table that follows another catalog's they do not."""
    if shown.get("type") == "generic-table":
        return facts([*_named(shown), *_described(mapping(shown, "table"))])
    if shown.get("type") == "semantic-model":
        document = mapping(shown, "document")
        lines = [("version", document.get("version")), ("model", document.get("semantic_model"))]
        return facts([*_named(shown), *((label, format_text(value)) for label, value in lines)])
    if "notified" in shown:
        return facts([*_meant(shown), ("notified", format_time(shown.get("notified")))])
    lines = [
        *_meant(shown),
        ("updated", _updated(shown)),
        ("moves", format_text(shown.get("sequence"))),
        *(("  recent" if place == 0 else "", move) for place, move in enumerate(texts(shown, "recent"))),
        ("drop's mark", format_text(shown.get("dropped_by"))),
        ("intent", _intent(mapping(shown, "intent"))),
    ]
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label.ljust(width)}  {value}" for label, value in lines) + f"\n\n{_markers(shown)}"


def _named(shown: JsonObject) -> list[tuple[str, str]]:
    """Returns labels and values of the name's entry in the registry: its type, name, state, entity id, UUID, locations
    and governance."""
    return [
        (format_text(shown.get("type")), f"{format_text(shown.get('name'))} ({_state(shown)})"),
        ("entity", format_text(shown.get("entity"))),
        *([("uuid", format_text(shown.get("uuid")))] if "uuid" in shown else []),
        *(("location", location) for location in texts(shown, "locations")),
        *((name, format_text(value)) for name, value in sorted(mapping(shown, "governance").items())),
    ]


def _described(table: JsonObject) -> list[tuple[str, str]]:
    """Returns labels and values of a generic table: format, comment and properties."""
    return [
        ("format", format_text(table.get("format"))),
        ("doc", format_text(table.get("doc"))),
        *((name, format_text(value)) for name, value in mapping(table, "properties").items()),
    ]


def _state(shown: JsonObject) -> str:
    """Returns the state of an entry, and whether a purge was requested."""
    purge = ", a purge was requested" if shown.get("purge_requested") is True else ""
    return f"{format_text(shown.get('state'))}{purge}"


def _updated(shown: JsonObject) -> str:
    """Returns when and by which client the pointer was last moved."""
    client = format_client(mapping(shown, "updated_by"))
    return format_time(shown.get("updated_ms")) + ("" if client is None else f" by {client}")


def _intent(intent: JsonObject) -> str:
    """Describes the intent of a transaction in the pointer; a dash without one."""
    if not intent:
        return "-"
    age = format_duration(intent.get("age_ms"))
    return (
        f"of transaction {format_text(intent.get('transaction'))}, {format_text(intent.get('status'))}, "
        f"last moved {age} ago"
    )


def _markers(shown: JsonObject) -> str:
    """Formats the requests that name the object and are under way or were left unfinished, or a sentence without any,
    with a note if some of the markers were not read."""
    found = [marker for marker in sequence(shown, "open_markers") if isinstance(marker, dict)]
    unseen = "" if shown.get("all_markers_seen") else "\nThere are too many markers to read: older ones were skipped."
    if not found:
        return f"No request in progress names it.{unseen}"
    return f"Requests in progress or left unfinished:\n{columns(MARKERS, [*map(_marker, found)])}{unseen}"


def _marker(marker: JsonObject) -> tuple[str, ...]:
    """Returns the row of a request under way: age, slot, method and path, principal, attempt and marker."""
    request = mapping(marker, "request")
    return (
        format_duration(marker.get("age_ms")),
        format_text(marker.get("slot")),
        f"{request['method']} {request['path']}" if {"method", "path"} <= request.keys() else "-",
        format_text(request.get("principal")),
        format_text(marker.get("attempt")),
        format_text(marker.get("marker")),
    )
