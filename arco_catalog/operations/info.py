"""Summarizes a table or view for an operator: its metadata, and problems that need attention. Writes nothing."""

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, NoSuchTable, NoSuchView
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.summary import table_concerns, table_summary, view_summary
from arco_catalog.operations.load import load_table, load_view
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.fields import objects
from arco_catalog.state.index import Namespace


async def info(session: Session, namespace: Namespace, name: str, newest: int) -> JsonObject:
    """Returns a summary of the table, or else the view, with this name, which for a table has the `newest` latest
    snapshots; `health` lists problems of a table, worst first, and is empty for a view. Raises `NoSuchTable` if neither
    has the name, and `NotFound` if the metadata file is missing."""
    kind = "table"
    try:
        state = await load_table(session, namespace, name)
    except NoSuchTable as missing:
        kind = "view"
        try:
            state = await load_view(session, namespace, name)
        except NoSuchView:
            raise missing from None
    document = await session.files.parse(state.metadata_location, state.metadata, lambda parsed: parsed)
    summary = table_summary(document, newest) if kind == "table" else view_summary(document)
    health = await _health(session, document, state) if kind == "table" else []
    return {
        "name": dotted(namespace, name),
        "type": kind,
        "entity": state.entity,
        "copy_of": (await session.state.head()).copy_of,
        "uuid": document.get("table-uuid" if kind == "table" else "view-uuid"),
        "metadata_location": state.metadata_location,
        "metadata_bytes": len(state.metadata),
        **summary,
        "health": health,
    }


async def _health(session: Session, document: JsonObject, state: TableState) -> list[JsonValue]:
    """Returns the problems of a table. A missing manifest list of the current snapshot is an error, because the
    snapshot can't be read; all others are warnings."""
    found: list[JsonValue] = []
    current = table.current_snapshot_id(document)
    snapshots = [each for each in objects(document, "snapshots") if each.get("snapshot-id") == current]
    for manifest_list in table.manifest_lists({"snapshots": [*snapshots]}):
        try:
            if not await session.files.exists(manifest_list):
                found.append(
                    _finding("error", f"the manifest list of its current snapshot is missing: {manifest_list}")
                )
        except BadRequest as refusal:
            found.append(_finding("warning", f"its current snapshot can't be checked: {refusal.message}"))
    limit = session.settings.max_metadata_bytes
    if 2 * len(state.metadata) > limit:
        size = f"{len(state.metadata) >> 20:,} of {limit >> 20:,} MB"
        found.append(
            _finding("warning", f"its metadata file takes {size} (--max-metadata): expire snapshots, or raise that")
        )
    return found + [_finding("warning", concern) for concern in table_concerns(document)]


def _finding(level: str, text: str) -> JsonObject:
    """Returns the JSON of a finding about the health of a table; `level` is `error` or `warning`."""
    return {"level": level, "text": text}
