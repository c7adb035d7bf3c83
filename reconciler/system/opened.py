"""Opens system tables through the catalog's REST endpoint. A table is created if it does not exist, and read and
committed to at one state (docs/design/pipeline.md#rule-3).

One commit adds files and sets the table's watermarks, and requires the snapshot at which the watermarks were read. If
another run has committed since, the commit fails, and the caller reads the source anew.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import AssertRefSnapshotId, SetPropertiesUpdate

from arco_catalog.state.runtime import Runtime
from arco_catalog.state.watermarks import NAMESPACE
from reconciler.system.definition import SystemTable
from reconciler.system.iceberg import PROPERTIES, partition_spec_of, schema_of, sort_order_of
from reconciler.system.rest import UNKNOWN, KeyedRestCatalog
from reconciler.system.writing import Target


class CommitSuperseded(Exception):
    """A commit to a system table was not made since another commit has changed the table, or its outcome is unknown
    since no response or an error of the server was received: the caller opens the table anew and repeats the step."""


@dataclass(frozen=True, slots=True)
class SystemTables:
    """The tables of `system` in one catalog. `trino_catalog` is the catalog's name in Trino, `trino_owner` the Trino
    user as which views that hide rows run; both are None if the operator has not set them."""

    catalog: KeyedRestCatalog
    trino_catalog: str | None
    trino_owner: str | None = None

    @classmethod
    def connect(
        cls,
        uri: str,
        warehouse: str,
        properties: Mapping[str, str],
        runtime: Runtime,
        trino_catalog: str | None = None,
        trino_owner: str | None = None,
    ) -> "SystemTables":
        """Connects to the catalog `warehouse` of the server at `uri`, with properties of PyIceberg such as
        `credential`. The names in Trino are None if they are not known."""
        all_properties = {**properties, "uri": uri, "warehouse": warehouse}
        return cls(KeyedRestCatalog(all_properties, runtime), trino_catalog, trino_owner)

    @property
    def names(self) -> Sequence[str]:
        """The names of the catalog for clients: the one for clients of Iceberg REST, and the one in Trino if it is
        set."""
        return [self.catalog.properties["warehouse"], *([] if self.trino_catalog is None else [self.trino_catalog])]

    def open(self, table: SystemTable) -> "OpenTable":
        """Loads a system table at its current state. The table and the namespace are created if they do not exist, and
        missing columns are added."""
        identifier = (NAMESPACE, table.name)
        try:
            found: Table = self.catalog.load_table(identifier)
        except NoSuchTableError:
            found = self._create(table)
        missing = [column.name for column in table.columns if column.name not in found.schema().column_names]
        if missing:
            try:
                with found.update_schema() as update:
                    update.union_by_name(schema_of(table))
            except CommitFailedException:
                found = self.catalog.load_table(identifier)  # another run has just added them
        return OpenTable(table, found)

    def _create(self, table: SystemTable) -> Table:
        """Makes a table of the pipeline, with the watermark 0 if it has one, and the namespace, unless another run has
        made them, and returns the table."""
        schema = schema_of(table)
        watermark = {} if table.watermark is None else {table.watermark: "0"}
        with suppress(NamespaceAlreadyExistsError):
            self.catalog.create_namespace(NAMESPACE, {"comment": "Made by the pipeline: the catalog as tables."})
        made: Table
        try:
            made = self.catalog.create_table(
                (NAMESPACE, table.name),
                schema,
                partition_spec=partition_spec_of(table, schema),
                sort_order=sort_order_of(table, schema),
                properties={**PROPERTIES, **watermark, "comment": table.doc},
            )
        except TableAlreadyExistsError:
            made = self.catalog.load_table((NAMESPACE, table.name))  # another run has just made it
        return made


@dataclass(slots=True)
class OpenTable:
    """A system table as a job has opened it, at one state: reads do not see later commits of other runs. A commit
    through this object moves it to the state that the commit made."""

    definition: SystemTable
    table: Table

    def watermark(self, name: str) -> str | None:
        """Returns the value of a table property that a commit sets as a watermark; None if there is none."""
        return self.table.properties.get(name)

    def number(self, name: str) -> int:
        """Returns the value of a watermark that is a number; 0 if there is none."""
        return int(self.watermark(name) or 0)

    @property
    def entity_files(self) -> Sequence[str]:
        """The locations of the table's metadata files: those in the metadata log, and the current one."""
        return [*(entry.metadata_file for entry in self.table.metadata.metadata_log), self.table.metadata_location]

    def target(self) -> Target:
        """Returns the table as executors that write data files need it, without snapshots."""
        return Target(self.definition, _without_history(self.table.metadata), self.table.io.properties)

    def rows(self, where: BooleanExpression, *columns: str) -> pa.Table:
        """Returns the rows that match a condition, with these columns."""
        return self.table.scan(row_filter=where, selected_fields=columns).to_arrow()

    def batches(self, where: BooleanExpression, *columns: str) -> Iterator[pa.RecordBatch]:
        """Iterates over the rows that match a condition, with these columns, a bounded number of rows at a time."""
        return iter(self.table.scan(row_filter=where, selected_fields=columns).to_arrow_batch_reader())

    def files(self, where: BooleanExpression) -> list[FileScanTask]:
        """Returns the data files that may have rows that match a condition, by partitions and bounds."""
        return [*self.table.scan(row_filter=where).plan_files()]

    def read(self, files: Sequence[FileScanTask]) -> pa.Table:
        """Returns all rows of these data files, without the rows that are deleted in them."""
        metadata = self.table.metadata
        scan = ArrowScan(metadata, self.table.io, metadata.schema(), AlwaysTrue())
        return scan.to_table([FileScanTask(each.file, each.delete_files) for each in files])

    def commit(
        self, added: Sequence[DataFile], watermarks: Mapping[str, str], removed: Sequence[DataFile] = ()
    ) -> None:
        """Adds and removes data files and sets watermarks in one commit, and makes its state the state of this object.
        Raises `CommitSuperseded` if another commit was first, and PyIceberg's other errors if the server denies this
        one. If the response is lost or an error of the server, the table is read to find out; `CommitSuperseded`
        is raised, too, if the table does not have the commit's snapshot then."""
        transaction = self.table.transaction()
        snapshots = transaction.update_snapshot(snapshot_properties={"written-by": "arco-pipeline"})
        with snapshots.overwrite() if removed else snapshots.merge_append() as update:
            for file in added:
                file.spec_id = self.table.spec().spec_id  # pickling a file on an executor loses it
                update.append_data_file(file)
            for file in removed:
                update.delete_data_file(file)
            snapshot = update.snapshot_id
        transaction.set_properties({**watermarks})
        try:
            self.table = transaction.commit_transaction()
        except CommitFailedException as error:
            raise CommitSuperseded(str(error)) from error
        except UNKNOWN as error:
            self.table.refresh()
            if self.table.metadata.snapshot_by_id(snapshot) is None:
                raise CommitSuperseded(
                    f"the commit to system.{self.definition.name} got no response or an error of the server, and the "
                    f"table, which was read afterwards, does not have its snapshot: {error}"
                ) from error

    def set_watermarks(self, watermarks: Mapping[str, str]) -> None:
        """Sets watermarks without adding files, for a batch that has rows only for other tables, on the snapshot that
        was read. Raises `CommitSuperseded` if the table has another snapshot by now, or the outcome is unknown."""
        snapshot = self.table.metadata.current_snapshot_id
        requirement = AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": snapshot})
        transaction = self.table.transaction()
        transaction._stage((SetPropertiesUpdate(updates={**watermarks}),), (requirement,))
        try:
            self.table = transaction.commit_transaction()
        except (CommitFailedException, *UNKNOWN) as error:
            raise CommitSuperseded(str(error)) from error


def _without_history(metadata: TableMetadata) -> TableMetadata:
    """Returns metadata without snapshots, refs and logs."""
    cleared: dict[str, object] = {
        "snapshots": [],
        "snapshot_log": [],
        "metadata_log": [],
        "refs": {},
        "current_snapshot_id": None,
    }
    return metadata.model_copy(update=cleared)
