"""Formats records as text or JSON for the output of commands: columns under headings, times, durations and authors."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.characters import escaped

DURATIONS = frozenset({"age_ms", "lease_ms", "quiet_ms"})
"""Fields that end in `_ms` and hold a duration, not a point in time."""


def columns(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Formats lines under headings in columns, which are as wide as their longest cell and two blanks apart. Blanks at
    the end of a line are removed."""
    table = [headings, *lines]
    widths = [max(len(line[column]) for line in table) for column in range(len(headings))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)


def as_json(value: JsonValue) -> str:
    """Formats a value as indented JSON. Next to every field with a time in milliseconds since 1970 (a name with `_ms`
    or `_ts` at the end) it puts a field with the same time as text: `updated_time` for `updated_ms`, and `time` for
    `at_ms`. The durations in `DURATIONS` get none. Control characters are escaped."""
    return escaped(json.dumps(_with_times(value), indent=2, ensure_ascii=False))


def _with_times(value: JsonValue) -> JsonValue:
    """Returns a copy of a JSON value in which every field with a time in milliseconds, at any level, is followed by a
    field with the time as text (see `as_json`)."""
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
    """Formats a time in milliseconds since 1970 in ISO 8601, in UTC with milliseconds."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_time(ms: JsonValue) -> str:
    """Formats a time in milliseconds since 1970 as text in UTC with milliseconds; a value that is not an integer is a
    dash."""
    if not isinstance(ms, int):
        return "-"
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def format_duration(ms: JsonValue) -> str:
    """Formats a duration in milliseconds in whole days, hours, minutes, seconds or milliseconds: in the largest of
    these units of which it has at least two, else in milliseconds. A value that is not an integer is a dash."""
    if not isinstance(ms, int):
        return "-"
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if ms >= 2 * size:
            return f"{ms // size} {unit}"
    return f"{ms} ms"


def format_author(record: JsonObject) -> str:
    """Formats the author of a commit or of a registry operation: the principal, a dash if there is none, the session of
    an assumed role or the id of the principal that acts for this one, and in parentheses the engine and the client, if
    the client is known."""
    source, session, engine = (record.get(field) for field in ("source", "session", "engine"))
    client = format_client(source) if isinstance(source, dict) else None
    if isinstance(engine, str) and client is not None:
        client = f"{engine}, {client}"
    principal = format_text(record.get("principal")) + (f"/{session}" if isinstance(session, str) else "")
    return principal if client is None else f"{principal} ({client})"


def format_client(source: JsonObject) -> str | None:
    """Formats the client of an UpdateSource (docs/design/reconciliation.md#rule-1), or returns None for a source of
    another kind or without the needed fields. The word `claims` before a run or user means that this identity was not
    authenticated; old records without the needed field count as such."""
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
    """Formats a value as one line of text: None is a dash, and control characters and line breaks are escaped."""
    return "-" if value is None else escaped(str(value)).replace("\n", "\\n")
