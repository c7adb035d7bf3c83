"""Applies a commit to a table's metadata: a pure function of both and of the time (docs/design/commit.md#steps)."""

from typing import assert_never

from arco_catalog.iceberg import history, structure
from arco_catalog.iceberg import updates as update_of
from arco_catalog.iceberg.checkpoint import Checkpoint, no_deadline
from arco_catalog.iceberg.commit import Commit
from arco_catalog.iceberg.draft import TableDraft
from arco_catalog.iceberg.errors import NoSuchTable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.properties import DEFAULT_FORMAT_VERSION, strip_trailing_slash
from arco_catalog.iceberg.updates import TableUpdate, UpgradeFormatVersion


def apply_commit(
    base: JsonObject | None,
    commit: Commit,
    *,
    now_ms: int,
    base_location: str | None,
    name: str,
    default_location: str | None = None,
    new_uuid: str | None = None,
    checkpoint: Checkpoint = no_deadline,
) -> JsonObject | None:
    """Returns the table's next metadata, None if the commit changes nothing. `base`, the present metadata, is never
    changed.

    `base` is None if the table `name` does not exist, and then requirements are not checked; otherwise `base_location`
    is the location of its metadata file, for the metadata log. `now_ms` is the time in milliseconds since 1970; the
    time in the result is always later than the time in the base. A create that names no location or uuid gets
    `default_location` or `new_uuid`. `checkpoint` is called before each requirement and update, and at the end.

    Raises what `checkpoint` raises, `CommitFailed` if a requirement fails or the commit is based on too old a state of
    the table, `BadRequest` if an update or the resulting metadata is not allowed, and `NoSuchTable` if there is no
    table and the commit does not create it.
    """
    draft = TableDraft(base, format_version=_initial_version(commit), now_ms=now_ms)
    if draft.base is not None:
        for requirement in commit.requirements:
            checkpoint()
            requirement.check(draft.base)
    elif not commit.creates:
        raise NoSuchTable(f"Table does not exist: {name}")
    for update in commit.updates:
        checkpoint()
        _apply(draft, update)
    checkpoint()
    if draft.base is None:
        metadata = draft.metadata
        metadata["table-uuid"] = metadata["table-uuid"] or new_uuid or ""
        metadata["location"] = metadata["location"] or strip_trailing_slash(default_location or "")
    return draft.finish(base_location)


def _initial_version(commit: Commit) -> int:
    """Returns the format version in which a create starts: the first that it requests, else the default."""
    versions = (update.format_version for update in commit.updates if isinstance(update, UpgradeFormatVersion))
    return next(versions, DEFAULT_FORMAT_VERSION)


def _apply(draft: TableDraft, update: TableUpdate) -> None:
    """Applies one update to the draft of the next metadata. Raises `BadRequest` or `CommitFailed` for an update that is
    not possible there."""
    match update:
        case update_of.AssignUuid(uuid):
            structure.assign_uuid(draft, uuid)
        case update_of.UpgradeFormatVersion(version):
            structure.upgrade_format_version(draft, version)
        case update_of.AddSchema(schema):
            structure.add_schema(draft, schema)
        case update_of.SetCurrentSchema(schema_id):
            structure.set_current_schema(draft, schema_id)
        case update_of.RemoveSchemas(schema_ids):
            structure.remove_schemas(draft, schema_ids)
        case update_of.AddSpec(spec):
            structure.add_spec(draft, spec)
        case update_of.SetDefaultSpec(spec_id):
            structure.set_default_spec(draft, spec_id)
        case update_of.RemoveSpecs(spec_ids):
            structure.remove_specs(draft, spec_ids)
        case update_of.AddSortOrder(order):
            structure.add_sort_order(draft, order)
        case update_of.SetDefaultSortOrder(order_id):
            structure.set_default_sort_order(draft, order_id)
        case update_of.SetLocation(location):
            draft.metadata["location"] = location
        case update_of.SetProperties(properties):
            structure.set_properties(draft, properties)
        case update_of.RemoveProperties(names):
            structure.remove_properties(draft, names)
        case update_of.AddEncryptionKey(key):
            structure.add_encryption_key(draft, key)
        case update_of.RemoveEncryptionKey(key_id):
            structure.remove_encryption_key(draft, key_id)
        case update_of.AddSnapshot(snapshot):
            history.add_snapshot(draft, snapshot)
        case update_of.RemoveSnapshots(snapshot_ids):
            history.remove_snapshots(draft, snapshot_ids)
        case update_of.SetSnapshotRef(name, ref):
            history.set_snapshot_ref(draft, name, ref)
        case update_of.RemoveSnapshotRef(name):
            history.remove_snapshot_ref(draft, name)
        case update_of.SetStatistics(file):
            history.set_statistics(draft.statistics, file)
        case update_of.RemoveStatistics(snapshot_id):
            history.remove_statistics(draft.statistics, snapshot_id)
        case update_of.SetPartitionStatistics(file):
            history.set_statistics(draft.partition_statistics, file)
        case update_of.RemovePartitionStatistics(snapshot_id):
            history.remove_statistics(draft.partition_statistics, snapshot_id)
        case _:
            assert_never(update)
