"""Makes the row of the system table `commits` for a committed receipt."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import text
from reconciler.compact.source import confidence_columns, source_columns
from reconciler.compact.values import (
    long_of,
    longs_of,
    namespace_of,
    object_of,
    objects_of,
    properties_of,
    required_time,
    text_of,
    texts_of,
)
from reconciler.compact.version import Metadata, MissingMetadata
from reconciler.system.definition import Row


def needs_metadata(receipt: JsonObject) -> bool:
    """Whether the row of a receipt needs the metadata file of the commit: only if the commit added snapshots."""
    return bool(longs_of(receipt.get("added_snapshot_ids")))


def commit_row(receipt: JsonObject, metadata: Metadata | None, batch: int) -> Row:
    """Returns the row of `commits` for a receipt, of which the fields must have their current names
    (`receipt.with_current_names`). Sequence number, operation and summary are of the last snapshot that the commit
    added. `metadata` is the document of the file that the commit made current, or why there is none; None if the row
    does not need it (`needs_metadata`). `batch` is the number of the batch that brings the row. Raises `InternalError`
    if a required field is missing or has the wrong type."""
    kind = text_of(receipt.get("entity_type")) or "table"
    request, source = object_of(receipt.get("request")), object_of(receipt.get("source"))
    added = longs_of(receipt.get("added_snapshot_ids"))
    snapshot = _snapshot(metadata, added[-1]) if isinstance(metadata, dict) and added else {}
    summary = properties_of(snapshot.get("summary"))
    return {
        "event_id": text(receipt, "event_id"),
        "commit_key": text(receipt, "commit_key"),
        "committed_at": required_time(receipt, "metadata_ms"),
        "entity": text(receipt, "entity"),
        "entity_type": kind,
        "table_uuid": text_of(receipt.get(f"{kind}_uuid")),
        "namespace": namespace_of(receipt.get("namespace")),
        "name": text_of(receipt.get("name")),
        "metadata_location": text(receipt, "metadata_location"),
        "previous_metadata_location": text_of(receipt.get("previous_metadata_location")),
        "sequence_number": long_of(snapshot.get("sequence-number")),
        "snapshot_id": long_of(receipt.get("snapshot_id")),
        "added_snapshot_ids": added,
        "operation": summary.get("operation"),
        "summary": {name: value for name, value in summary.items() if name != "operation"} if snapshot else None,
        "requirements": texts_of(receipt.get("requirements")),
        "updates": texts_of(receipt.get("updates")),
        "request_method": text_of(request.get("method")),
        "request_path": text_of(request.get("path")),
        "request_id": text_of(request.get("id")),
        "idempotency_key_hash": text_of(request.get("idempotency_key_hash")),
        "attempt": text_of(receipt.get("attempt")),
        "engine": text_of(receipt.get("engine")),
        "principal_id": text_of(receipt.get("principal_id")),
        "source_claimed": source.get("claimed") is True,
        **source_columns(receipt),
        **confidence_columns(receipt),
        "metadata_gone": metadata.value if isinstance(metadata, MissingMetadata) else False,
        "batch": batch,
    }


def _snapshot(document: JsonObject, snapshot: int) -> JsonObject:
    """Returns the snapshot with this id in metadata; empty without one."""
    snapshots = objects_of(document.get("snapshots"))
    return next((each for each in snapshots if each.get("snapshot-id") == snapshot), {})
