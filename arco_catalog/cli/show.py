"""`arco inspect_relation`: prints the records of one table: pointer, recent commits, open intent and markers."""

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import columns, format_client, format_duration, format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.session import carry_out, reading
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.state.characters import escaped
from arco_catalog.state.fields import mapping, sequence, texts

MARKERS = ("AGE", "SLOT", "REQUEST", "BY", "ATTEMPT", "MARKER")


def run(options: CatalogOptions, table: str, *, as_json: bool) -> int:
    """Prints what is known of a table. Raises `CliError`."""
    namespace, name = parse_identifier(table)

    async def read() -> JsonObject:
        async with reading(options, "show") as session:
            return await inspect_relation(session, namespace, name)

    shown = carry_out(read)
    print(json_text(shown) if as_json else escaped(as_text(shown)))
    return 0


def as_text(shown: JsonObject) -> str:
    """A fact a line, then the open markers in columns."""
    base = mapping(shown, "base")
    facts = [
        (format_text(shown.get("type")), f"{format_text(shown.get('name'))} ({_state(shown)})"),
        ("entity", format_text(shown.get("entity"))),
        ("uuid", format_text(shown.get("uuid"))),
        *(("location", location) for location in texts(shown, "locations")),
        ("metadata", format_text(shown.get("metadata_location"))),
        ("  made", format_time(shown.get("metadata_ms"))),
        ("  from", format_text(base.get("metadata_location"))),
        ("updated", _updated(shown)),
        ("moves", format_text(shown.get("sequence"))),
        *(("  recent" if place == 0 else "", move) for place, move in enumerate(texts(shown, "recent"))),
        ("drop's mark", format_text(shown.get("dropped_by"))),
        ("intent", _intent(mapping(shown, "intent"))),
    ]
    width = max(len(label) for label, _ in facts)
    return "\n".join(f"{label.ljust(width)}  {value}" for label, value in facts) + f"\n\n{_markers(shown)}"


def _state(shown: JsonObject) -> str:
    asked = ", a purge was asked for" if shown.get("purge_requested") is True else ""
    return f"{format_text(shown.get('state'))}{asked}"


def _updated(shown: JsonObject) -> str:
    client = format_client(mapping(shown, "updated_by"))
    return format_time(shown.get("updated_ms")) + ("" if client is None else f" by {client}")


def _intent(intent: JsonObject) -> str:
    if not intent:
        return "-"
    age = format_duration(intent.get("age_ms"))
    return (
        f"of transaction {format_text(intent.get('transaction'))}, {format_text(intent.get('status'))}, "
        f"last moved {age} ago"
    )


def _markers(shown: JsonObject) -> str:
    found = [marker for marker in sequence(shown, "open_markers") if isinstance(marker, dict)]
    unseen = "" if shown.get("all_markers_seen") else "\nThere are too many markers to read: older ones were skipped."
    if not found:
        return f"No request in progress names it.{unseen}"
    return f"Requests in progress or left unfinished:\n{columns(MARKERS, [*map(_marker, found)])}{unseen}"


def _marker(marker: JsonObject) -> tuple[str, ...]:
    request = mapping(marker, "request")
    return (
        format_duration(marker.get("age_ms")),
        format_text(marker.get("slot")),
        f"{request['method']} {request['path']}" if {"method", "path"} <= request.keys() else "-",
        format_text(request.get("principal")),
        format_text(marker.get("attempt")),
        format_text(marker.get("marker")),
    )
