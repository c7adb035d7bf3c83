"""Makes the columns of system tables for the source of a change, and for the confidence that follows from it
(docs/design/pipeline.md#sources)."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.confidence import confidence_in
from reconciler.compact.values import object_of, text_of
from reconciler.system.definition import Row


def source_columns(record: JsonObject) -> Row:
    """Returns the columns for the principal, client and run of a receipt, an operation of the registry, or the sender
    of a report. Fields that are absent are None."""
    source = object_of(record.get("source"))
    return {
        "principal": text_of(record.get("principal")),
        "source_kind": text_of(source.get("kind")),
        "client": text_of(source.get("client_info")),
        "run_id": text_of(source.get("run_id")),
        "task_id": text_of(source.get("task_id")),
        "user_id": text_of(source.get("user_id")),
    }


def confidence_columns(record: JsonObject) -> Row:
    """Returns the columns `lineage_confidence` and `quality_status` of a receipt, which `confidence_in` derives
    from the kind of the source, and from whether the source is only claimed. A kind that declares no lineage gets the
    text `None`."""
    confidence = confidence_in(object_of(record.get("source")))
    return {"lineage_confidence": confidence.lineage or "None", "quality_status": confidence.quality}
