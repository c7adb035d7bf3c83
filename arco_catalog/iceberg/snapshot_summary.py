"""The counts in snapshot summaries, where engines record what a snapshot added, deleted and left (table spec, "Optional
Snapshot Summary Fields")."""

from collections.abc import Collection

from arco_catalog.iceberg.json import JsonObject, JsonValue

COUNTS = (
    "added-records",
    "deleted-records",
    "added-data-files",
    "deleted-data-files",
    "added-delete-files",
    "removed-delete-files",
    "total-records",
    "total-data-files",
    "total-delete-files",
    "total-files-size",
)
APPLICATION = "spark.app.id"
"""The field with the id of the Spark application that made a snapshot."""
MAX_DIGITS = 18


def summary_fields(snapshot: JsonObject) -> JsonObject:
    """Returns the summary of a snapshot, empty if it has none."""
    summary = snapshot.get("summary")
    return summary if isinstance(summary, dict) else {}


def summary_counts(snapshot: JsonObject, names: Collection[str] = COUNTS) -> dict[str, int | None]:
    """Returns these counts of a snapshot's summary; None for each without a value."""
    fields = summary_fields(snapshot)
    return {name: read_count(fields.get(name)) for name in names}


def read_count(value: JsonValue) -> int | None:
    """Returns a number of a summary, where numbers are strings; None for any other value, and beyond `MAX_DIGITS`."""
    if not isinstance(value, str) or not value.isascii() or not value.isdigit() or len(value) > MAX_DIGITS:
        return None
    return int(value)
