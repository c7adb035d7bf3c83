"""Makes versions of tables and views from rows of `commits`, and marks the newest ones of their entities. Pure
functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

from reconciler.compact.version import Version

COLUMNS = (
    *("entity", "entity_type", "commit_key", "committed_at", "namespace", "name", "table_uuid", "metadata_location"),
    *("previous_metadata_location", "snapshot_id", "added_snapshot_ids", "updates", "source_kind"),
)
"""The columns of `commits` from which `version_of` makes a version."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def milliseconds(at: datetime) -> int:
    """Returns a time as whole milliseconds since 1970, without the rounding of floats."""
    return (at - _EPOCH) // timedelta(milliseconds=1)


def version_of(row: Mapping[str, object]) -> Version:
    """Returns the version of a row of `commits`."""
    return Version(
        entity=cast(str, row["entity"]),
        is_view=row["entity_type"] == "view",
        commit_key=cast(str, row["commit_key"]),
        committed_ms=milliseconds(cast(datetime, row["committed_at"])),
        namespace=cast("str | None", row["namespace"]),
        name=cast("str | None", row["name"]),
        uuid=cast("str | None", row["table_uuid"]),
        metadata_location=cast(str, row["metadata_location"]),
        previous=row["previous_metadata_location"] is not None,
        snapshot_id=cast("int | None", row["snapshot_id"]),
        added_snapshot_ids=tuple(cast("Sequence[int] | None", row["added_snapshot_ids"]) or ()),
        updates=tuple(cast("Sequence[str] | None", row["updates"]) or ()),
        restored=row["source_kind"] == "Restored",
    )


def with_newest(
    versions: Sequence[Version], known: Mapping[str, int], known_schemas: Mapping[str, int]
) -> list[Version]:
    """Returns these versions in their order. The last one of an entity, by the times in metadata files, is marked as
    `newest`, unless `known` (times of rows that are marked as current, in milliseconds since 1970, by entity) has a
    later time for the entity. The last one that sets a schema is marked as `newest_schema` in the same way, by
    `known_schemas`. Each metadata file of an entity has a later time than the file before."""
    newest = _newest(versions, known)
    schemas = _newest((version for version in versions if version.sets_schema), known_schemas)
    return [
        replace(
            version,
            newest=version.committed_ms >= newest[version.entity],
            newest_schema=version.sets_schema and version.committed_ms >= schemas[version.entity],
        )
        for version in versions
    ]


def _newest(versions: Iterable[Version], known: Mapping[str, int]) -> dict[str, int]:
    """Returns for each entity of these versions the time of the newest one, or the known time if that is later."""
    newest: dict[str, int] = {}
    for version in versions:
        before = newest.get(version.entity, known.get(version.entity, 0))
        newest[version.entity] = max(before, version.committed_ms)
    return newest
