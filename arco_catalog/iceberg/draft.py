"""The next metadata of a table while updates are applied to it.

The document and its own lists and maps are copied, but not their members, which are shared with the base and never
changed. Lookups by snapshot are built on first use, so that each update of a commit costs the same.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import cast

from arco_catalog.iceberg.encryption import EncryptedKey
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.metadata import (
    TableMetadata,
    complete,
    default_order,
    default_spec,
    empty,
    written,
)
from arco_catalog.iceberg.numbered import NumberedObjects
from arco_catalog.iceberg.partition import PartitionSpec, check_names, check_spec, known_field_ids, spec_meaning
from arco_catalog.iceberg.properties import PREVIOUS_VERSIONS_MAX, integer, refuse_key_change
from arco_catalog.iceberg.refs import Refs
from arco_catalog.iceberg.schema import Columns, NameBudget, Schema, columns_by_id, numbered_schemas
from arco_catalog.iceberg.snapshots import Snapshot, StatisticsFile, check_log_times, retained_log
from arco_catalog.iceberg.sort import SortOrder, check_order, order_meaning

DEFAULT_PREVIOUS_VERSIONS = 100


class TableDraft:
    """The next metadata of a table while a commit or create changes it: updates change `metadata`, which begins as a
    copy of the complete `base`, or without one as empty metadata, and the lookups; `finish` makes a document of
    them."""

    def __init__(self, base: JsonObject | None, *, format_version: int, now_ms: int) -> None:
        self.base = complete(base) if base is not None else None
        start = self.base if self.base is not None else empty(format_version)
        self.metadata = cast(
            TableMetadata,
            {name: value.copy() if isinstance(value, list | dict) else value for name, value in start.items()},
        )
        self.now_ms = now_ms if self.base is None else max(now_ms, self.base["last-updated-ms"] + 1)
        self.last_added_schema: int | None = None
        self.last_added_spec: int | None = None
        self.last_added_order: int | None = None
        self.added_snapshots: dict[int, Snapshot] = {}
        self.added_as_main: set[int] = set()
        self.removed_snapshots = False
        self.names = NameBudget()
        self._columns: dict[int, tuple[Schema, Columns]] = {}

    @cached_property
    def snapshots(self) -> dict[int, Snapshot]:
        """The snapshots by id, in their order. `finish` writes changes of this lookup back."""
        return {snapshot["snapshot-id"]: snapshot for snapshot in self.metadata["snapshots"]}

    @cached_property
    def refs(self) -> Refs:
        """The table's branches and tags. `finish` writes changes of this lookup back."""
        return Refs(self.metadata["refs"])

    @cached_property
    def statistics(self) -> dict[int, list[StatisticsFile]]:
        """The files of column statistics by snapshot. `finish` writes changes of this lookup back."""
        return _by_snapshot(self.metadata["statistics"])

    @cached_property
    def partition_statistics(self) -> dict[int, list[StatisticsFile]]:
        """The files of partition statistics by snapshot. `finish` writes changes of this lookup back."""
        return _by_snapshot(self.metadata["partition-statistics"])

    @cached_property
    def schemas(self) -> NumberedObjects[Schema]:
        """The schemas by id. `finish` writes changes of this lookup back."""
        return numbered_schemas(self.metadata["schemas"])

    @cached_property
    def specs(self) -> NumberedObjects[PartitionSpec]:
        """The partition specs by id. `finish` writes changes of this lookup back."""
        specs = self.metadata["partition-specs"]
        return NumberedObjects(
            specs, lambda spec: spec.get("spec-id", 0), lambda spec: len(spec["fields"]), spec_meaning
        )

    @cached_property
    def field_ids(self) -> dict[tuple[int, str], int]:
        """The ids of the partition fields in all specs, by source id and canonical transform. A caller that adds a spec
        must add the fields of the spec here."""
        return known_field_ids(self.metadata["partition-specs"])

    @cached_property
    def orders(self) -> NumberedObjects[SortOrder]:
        """The sort orders by id. `finish` writes changes of this lookup back."""
        orders = self.metadata["sort-orders"]
        return NumberedObjects(
            orders, lambda order: order.get("order-id", 0), lambda order: len(order["fields"]), order_meaning
        )

    @cached_property
    def encryption_keys(self) -> dict[str, EncryptedKey]:
        """The encryption keys by id. `finish` writes changes of this lookup back."""
        return {key["key-id"]: key for key in self.metadata.get("encryption-keys", [])}

    def current_columns(self) -> Columns:
        """Returns the columns of the current schema, computed once for each schema that becomes current: a commit may
        alternate between them. Raises `BadRequest` if there is none, and as `columns_by_id` does."""
        wanted = self.metadata["current-schema-id"]
        schema = self.schemas.by_id.get(wanted)
        if schema is None:
            raise BadRequest(
                f"Cannot find the current schema: the table has no schema {wanted}: add it before what uses it"
            )
        known = self._columns.get(wanted)
        if known is None or known[0] is not schema:
            known = self._columns[wanted] = schema, columns_by_id(schema, self.names)
        return known[1]

    def finish(self, base_location: str | None) -> JsonObject | None:
        """Returns the document of the table's next metadata, None if it equals the base. `base_location` is the
        location of the metadata file of the base, for the metadata log. Raises `BadRequest` if the metadata is not
        valid, such as without a location, without a uuid from format version 2 on, with a sequence number in version 1,
        or, if the commit makes another schema, spec or order current, without specs or sort orders, or with a default
        spec or order that does not fit the current schema; if the snapshot log has impossible times, or does not end
        with the current snapshot after entries were removed; if the limit of the metadata log is no integer; or if the
        property of the encryption key was changed."""
        self._write_lookups_back()
        self._settle_snapshot_log()
        if self.metadata == self.base:
            return None
        self._check()
        self.metadata["last-updated-ms"] = self.now_ms
        self._append_to_metadata_log(base_location)
        return written(self.metadata)

    def _write_lookups_back(self) -> None:
        """Writes each lookup that was used back to the list in the metadata of which it was made."""
        used = vars(self)
        if "schemas" in used:
            self.metadata["schemas"] = list(self.schemas.by_id.values())
        if "specs" in used:
            self.metadata["partition-specs"] = list(self.specs.by_id.values())
        if "orders" in used:
            self.metadata["sort-orders"] = list(self.orders.by_id.values())
        if "encryption_keys" in used and (self.encryption_keys or "encryption-keys" in self.metadata):
            self.metadata["encryption-keys"] = list(self.encryption_keys.values())
        if "snapshots" in used:
            self.metadata["snapshots"] = list(self.snapshots.values())
        if "refs" in used:
            self.metadata["refs"] = self.refs.stored()
        if "statistics" in used:
            self.metadata["statistics"] = _flat(self.statistics)
        if "partition_statistics" in used:
            self.metadata["partition-statistics"] = _flat(self.partition_statistics)

    def _settle_snapshot_log(self) -> None:
        """Removes entries of the snapshot log that this commit has made invalid: of added snapshots that were those of
        main only within the commit, and, after a removal of snapshots, as `retained_log` does. Raises `BadRequest` if
        the log then does not end with the current snapshot."""
        current = self.metadata["current-snapshot-id"]
        intermediate = self.added_as_main - {current}
        if intermediate or self.removed_snapshots:
            self.metadata["snapshot-log"] = retained_log(
                self.metadata["snapshot-log"],
                self.snapshots,
                intermediate=intermediate,
                current=current,
                any_removed=self.removed_snapshots,
            )

    def _check(self) -> None:
        """Validates the finished metadata: location, uuid and sequence number; the structure and the snapshot log only
        as `_check_structure` and `_check_snapshot_log` do; and that the encryption key of a base is the same. Raises
        `BadRequest`."""
        if not self.metadata["location"]:
            raise BadRequest("Cannot write metadata without a location: add the update 'set-location' to the commit")
        version = self.metadata["format-version"]
        if version > 1 and not self.metadata["table-uuid"]:
            raise BadRequest(f"UUID is required in format v{version}: add the update 'assign-uuid' to the commit")
        if version == 1 and self.metadata["last-sequence-number"] != 0:
            raise BadRequest(
                f"Sequence number must be 0 in v1: {self.metadata['last-sequence-number']}: send none in the snapshots "
                "that the commit adds, or upgrade the table in the same commit"
            )
        self._check_structure()
        self._check_snapshot_log()
        if self.base is not None:
            refuse_key_change(self.base["properties"], self.metadata["properties"])

    def _check_structure(self) -> None:
        """Raises `BadRequest` without a current schema, specs or sort orders, if the default spec or the default sort
        order does not fit the current schema, or if a field of any spec has the name of a column that is not its
        source: readers refuse such a table. It checks them only for a new table, and if the commit makes another
        schema, spec or order current."""
        if self.base is not None and _structure_ids(self.metadata) == _structure_ids(self.base):
            return
        columns = self.current_columns()
        if not self.metadata["partition-specs"]:
            raise BadRequest(
                "Partition specs cannot be null or empty: add the update 'add-spec' to the commit that creates the "
                "table"
            )
        if not self.metadata["sort-orders"]:
            raise BadRequest(
                "Sort orders cannot be null or empty: add the update 'add-sort-order' to the commit that creates the "
                "table"
            )
        for spec in self.metadata["partition-specs"]:
            check_names(spec, columns)
        check_spec(default_spec(self.metadata), columns)
        check_order(default_order(self.metadata), columns)

    def _check_snapshot_log(self) -> None:
        """Raises `BadRequest` for impossible times in the snapshot log, if this commit has changed the log."""
        log = self.metadata["snapshot-log"]
        before = self.base["snapshot-log"] if self.base is not None else []
        if log != before:
            check_log_times(log, self.now_ms)

    def _append_to_metadata_log(self, base_location: str | None) -> None:
        """Adds the base's metadata file to the metadata log, unless there is no base or `base_location` is None, and
        then removes the oldest entries over the limit. Raises an error if the property with the limit is no
        integer."""
        limit = max(1, integer(self.metadata["properties"], PREVIOUS_VERSIONS_MAX, DEFAULT_PREVIOUS_VERSIONS))
        if self.base is not None and base_location is not None:
            log = self.metadata["metadata-log"]
            log.append({"timestamp-ms": self.base["last-updated-ms"], "metadata-file": base_location})
            self.metadata["metadata-log"] = log[-limit:]


def _structure_ids(metadata: TableMetadata) -> tuple[int, int, int]:
    """Returns the ids of the current schema and of the default spec and sort order."""
    return metadata["current-schema-id"], metadata["default-spec-id"], metadata["default-sort-order-id"]


def _by_snapshot(files: Iterable[StatisticsFile]) -> dict[int, list[StatisticsFile]]:
    """Returns statistics files by the id of the snapshot that they are about, in order."""
    grouped: dict[int, list[StatisticsFile]] = {}
    for file in files:
        grouped.setdefault(file["snapshot-id"], []).append(file)
    return grouped


def _flat(grouped: dict[int, list[StatisticsFile]]) -> list[StatisticsFile]:
    """Returns the statistics files of all snapshots as one list."""
    return [file for files in grouped.values() for file in files]
