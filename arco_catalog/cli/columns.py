"""How records are shown to people: columns under headings, times, and who did it."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.characters import escaped

DURATIONS = frozenset({"age_ms", "lease_ms"})
"""Fields that end in `_ms` and hold a duration, not a point in time."""


def columns(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Lines under headings, in columns as wide as they need to be."""
    table = [headings, *lines]
    widths = [max(len(line[column]) for line in table) for column in range(len(headings))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)


def as_json(value: JsonValue) -> str:
    """A document for other programs. Beside each instant in milliseconds since 1970 stands the same as text: beside
    `updated_ms` is `updated_time`. What a terminal would act on is escaped, as JSON has it."""
    return escaped(json.dumps(_with_times(value), indent=2, ensure_ascii=False))


def _with_times(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            shown: JsonObject = {}
            for name, member in value.items():
                shown[name] = _with_times(member)
                if name.endswith(("_ms", "_ts")) and name not in DURATIONS and isinstance(member, int):
                    shown["time" if name == "at_ms" else f"{name[:-3]}_time"] = format_iso(member)
            return shown
        case list():
            return [_with_times(member) for member in value]
    return value


def format_iso(ms: int) -> str:
    """An instant as ISO 8601 writes it, in UTC, to the millisecond."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_time(ms: JsonValue) -> str:
    """A time in UTC, to the millisecond."""
    if not isinstance(ms, int):
        return "-"
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def format_duration(ms: JsonValue) -> str:
    """How long, in the unit that suits it."""
    if not isinstance(ms, int):
        return "-"
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if ms >= 2 * size:
            return f"{ms // size} {unit}"
    return f"{ms} ms"


def format_author(record: JsonObject) -> str:
    """Who made a receipt's or a registry operation's change: the principal, the session of its role, and the engine and
    client."""
    source, session, engine = (record.get(field) for field in ("source", "session", "engine"))
    client = format_client(source) if isinstance(source, dict) else None
    if isinstance(engine, str) and client is not None:
        client = f"{engine}, {client}"
    principal = format_text(record.get("principal")) + (f"/{session}" if isinstance(session, str) else "")
    return principal if client is None else f"{principal} ({client})"


def format_client(source: JsonObject) -> str | None:
    """The client that an UpdateSource names (docs/design/reconciliation.md#rule-1), marked `claims` where it was not
    authenticated, and in old records that did not distinguish."""
    claims = "claims " if source.get("claimed") is True or "principal" not in source else ""
    match source:
        case {"kind": "IcebergRest" | "Notification", "client_info": str(client)}:
            return client
        case {"kind": "Servo", "run_id": str(run), "task_id": str(task)}:
            return f"{claims}Servo run {run}, task {task}"
        case {"kind": "AdminApi", "user_id": str(user)}:
            return f"{claims}admin {user}"
        case {"kind": "Cli"}:
            return "arco"
        case {"kind": "Restored"}:
            return "restored from metadata"
    return None


def format_text(value: JsonValue) -> str:
    """Text, with a dash for nothing; what a terminal would act on is escaped."""
    return "-" if value is None else escaped(str(value)).replace("\n", "\\n")
