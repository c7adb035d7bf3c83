"""Where a change came from, as columns; and what follows from that (docs/design/pipeline.md#sources)."""

from arco_catalog.iceberg.json import JsonObject
from reconciler.compact.values import object_of, text_of
from reconciler.system.definition import Row


def source_columns(record: JsonObject) -> Row:
    """The columns that `commits` and `catalog_events` share, of a receipt or of a registry's operation."""
    source = object_of(record.get("source"))
    return {
        "principal": text_of(record.get("principal")),
        "source_kind": text_of(source.get("kind")),
        "client": text_of(source.get("client_info")),
        "run_id": text_of(source.get("run_id")),
        "task_id": text_of(source.get("task_id")),
        "user_id": text_of(source.get("user_id")),
    }


def judged(record: JsonObject) -> Row:
    """How far the lineage of a commit can be relied on, and whether its data was checked: by who made it. A source that
    an anonymous client claims proves nothing."""
    source = object_of(record.get("source"))
    kind, claimed = source.get("kind"), source.get("claimed") is True
    if kind == "Servo" and not claimed:
        return {"lineage_confidence": "Verified", "quality_status": "Checked"}
    declared = kind in ("Servo", "IcebergRest")
    return {"lineage_confidence": "DeclaredUnverified" if declared else "None", "quality_status": "NotChecked"}
