"""`arco info`: displays the schema, snapshots, size and health of a table or view."""

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.finders import find_catalog
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.cli.output import facts, table
from arco_catalog.cli.session import carry_out, open_session
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.info import info
from arco_catalog.planning.names import format_identifier
from arco_catalog.state.fields import mapping, objects, texts

COLUMNS = ("ID", "COLUMN", "TYPE", "NULL", "COMMENT")
SNAPSHOTS = ("TIME (UTC)", "SNAPSHOT", "OPERATION", "ADDED", "DELETED", "RECORDS", "")
UNITS = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))


def run(options: CatalogOptions, name: str, snapshots: int, *, as_json: bool) -> int:
    """Displays a table or view with the newest `snapshots` of a table. Returns 1 if a finding about the health of the
    table is an error, else 0. Raises `CliError`."""
    namespace, table_name = parse_identifier(name)

    async def read() -> JsonObject:
        async with open_session(options, "info", find_catalog) as session:
            return await info(session, namespace, table_name, snapshots)

    shown = carry_out(read)
    print(json_text(shown) if as_json else as_text(shown, format_identifier((*namespace, table_name))))
    return 1 if any(finding.get("level") == "error" for finding in objects(shown, "health")) else 0


def as_text(shown: JsonObject, name: str) -> str:
    """Formats a table or view, which has this name: facts, then columns, then snapshots if there are any, with a note
    if older ones are left out."""
    parts = [facts(_facts(shown, name)), table(COLUMNS, [*map(_column, objects(shown, "schema"))])]
    snapshots = objects(shown, "snapshots")
    if snapshots:
        parts.append(table(SNAPSHOTS, [*map(_snapshot, snapshots)]))
        more = _int(shown.get("snapshot_count")) - len(snapshots)
        if more > 0:
            parts[-1] += f"\n... and {more:,} older: --limit shows more"
    return "\n\n".join(parts)


def _facts(shown: JsonObject, name: str) -> list[tuple[str, str]]:
    """Returns the labels and values that describe a table or view: its ids, files and size, layout or SQL, branches and
    tags, properties, and for a table the findings about its health, `ok` without any."""
    size = mapping(shown, "size")
    lines = [
        (format_text(shown.get("type")), name),
        ("entity", format_text(shown.get("entity"))),
        *([] if shown.get("copy_of") is None else [("catalog", f"a copy of {format_text(shown.get('copy_of'))}")]),
        ("uuid", format_text(shown.get("uuid"))),
        ("format", f"version {format_text(shown.get('format_version'))}"),
        ("location", format_text(shown.get("location"))),
        ("metadata", f"{format_text(shown.get('metadata_location'))} ({_bytes(shown.get('metadata_bytes'))})"),
        ("updated", format_time(shown.get("updated_ms"))),
    ]
    if size:
        lines.append(("size", _size(size)))
        lines.append(("partitioned by", ", ".join(texts(shown, "partitioned_by")) or "-"))
        lines.append(("sorted by", ", ".join(texts(shown, "sorted_by")) or "-"))
    for each in objects(shown, "representations"):
        lines.append((f"SQL ({format_text(each.get('dialect'))})", format_text(each.get("sql"))))
    for ref, target in mapping(shown, "refs").items():
        held: JsonObject = target if isinstance(target, dict) else {}
        lines.append((format_text(held.get("type")), f"{format_text(ref)} at {format_text(held.get('snapshot-id'))}"))
    lines += [
        ("property", f"{format_text(key)}={format_text(value)}") for key, value in mapping(shown, "properties").items()
    ]
    health = [
        (format_text(finding.get("level")), format_text(finding.get("text"))) for finding in objects(shown, "health")
    ]
    if shown.get("type") == "table":
        lines += health or [("health", "ok")]
    return lines


def _size(size: JsonObject) -> str:
    """Formats the numbers of records, data files and bytes of a table, and of delete files if there are any."""
    deletes = size.get("delete_files")
    behind = f", {_number(deletes)} delete files" if deletes else ""
    return f"{_number(size.get('records'))} records in {_number(size.get('data_files'))} data files{behind}, " + (
        _bytes(size.get("bytes"))
    )


def _column(column: JsonObject) -> tuple[str, ...]:
    """Returns a column's row: id, name, type, whether it may be null, and the comment."""
    return (
        format_text(column.get("id")),
        format_text(column.get("name")),
        format_text(column.get("type")),
        "no" if column.get("required") is True else "yes",
        format_text(column.get("doc")),
    )


def _snapshot(snapshot: JsonObject) -> tuple[str, ...]:
    """Returns a snapshot's row: time, id, operation, rows added, deleted and in all, and whether it is the current
    one."""
    return (
        format_time(snapshot.get("at_ms")),
        format_text(snapshot.get("snapshot_id")),
        format_text(snapshot.get("operation")),
        _number(snapshot.get("added_records")),
        _number(snapshot.get("deleted_records")),
        _number(snapshot.get("total_records")),
        "current" if snapshot.get("current") is True else "",
    )


def _number(value: JsonValue) -> str:
    """Formats a whole number with commas between thousands; a dash for any other value, as for a missing one."""
    return f"{value:,}" if isinstance(value, int) else "-"


def _bytes(value: JsonValue) -> str:
    """Formats a size in GB, MB or KB (powers of 1,024), the largest that it reaches, or in bytes; `- bytes` for a value
    that is not an integer."""
    if not isinstance(value, int):
        return "- bytes"
    for unit, size in UNITS:
        if value >= size:
            return f"{value / size:,.1f} {unit}"
    return f"{value:,} bytes"


def _int(value: JsonValue) -> int:
    """Returns a whole number as it is, 0 for any other value, as for a missing one."""
    return value if isinstance(value, int) else 0
