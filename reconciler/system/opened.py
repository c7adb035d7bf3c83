"""System tables through the catalog's own REST endpoint: made where they are missing, read as of one state, and
committed on that state alone (docs/design/pipeline.md#rule-3).

A commit adds files and moves the table's watermarks at once, and requires the snapshot from which they were read. If
another run has committed meanwhile, it is refused, and what was read is read anew.
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


class Superseded(Exception):
    """The commit was not made: the table is not any more what it was read as."""


@dataclass(frozen=True, slots=True)
class SystemTables:
    """The tables of `system` in one catalog; what Trino calls that, and as which of Trino's users the views run that
    show each reader what he may see, if somebody said."""

    catalog: KeyedRestCatalog
    in_trino: str | None
    owner: str | None = None

    @classmethod
    def connect(
        cls,
        uri: str,
        warehouse: str,
        properties: Mapping[str, str],
        runtime: Runtime,
        in_trino: str | None = None,
        owner: str | None = None,
    ) -> "SystemTables":
        """Connects to the catalog at `uri`; `properties` are PyIceberg's, such as `credential`. Trino calls the catalog
        as this one's clients do, unless another name is given."""
        named = {**properties, "uri": uri, "warehouse": warehouse}
        return cls(KeyedRestCatalog(named, runtime), in_trino, owner)

    @property
    def names(self) -> Sequence[str]:
        """What clients call the catalog: those of Iceberg REST, and Trino."""
        return [self.catalog.properties["warehouse"], *([] if self.in_trino is None else [self.in_trino])]

    def open(self, table: SystemTable) -> "OpenTable":
        """A table as it is now; makes it, and its namespace, where it is missing, and adds columns that it lacks."""
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
        schema = schema_of(table)
        begun = {} if table.watermark is None else {table.watermark: "0"}
        with suppress(NamespaceAlreadyExistsError):
            self.catalog.create_namespace(NAMESPACE, {"comment": "Made by the pipeline: the catalog as tables."})
        made: Table
        try:
            made = self.catalog.create_table(
                (NAMESPACE, table.name),
                schema,
                partition_spec=partition_spec_of(table, schema),
                sort_order=sort_order_of(table, schema),
                properties={**PROPERTIES, **begun, "comment": table.doc},
            )
        except TableAlreadyExistsError:
            made = self.catalog.load_table((NAMESPACE, table.name))  # another run has just made it
        return made


@dataclass(slots=True)
class OpenTable:
    """A system table as of one state. After a commit it is the state that the commit made."""

    definition: SystemTable
    table: Table

    def watermark(self, name: str) -> str | None:
        """Up to where something was read, as the last commit left it."""
        return self.table.properties.get(name)

    def number(self, name: str) -> int:
        """A watermark that is a number; 0 where there is none."""
        return int(self.watermark(name) or 0)

    @property
    def entity_files(self) -> Sequence[str]:
        """The metadata files that it has had, as far back as its log goes, and has."""
        return [*(entry.metadata_file for entry in self.table.metadata.metadata_log), self.table.metadata_location]

    def target(self) -> Target:
        """What writers of its data files need to know: nothing of its snapshots."""
        return Target(self.definition, _without_history(self.table.metadata), self.table.io.properties)

    def rows(self, where: BooleanExpression, *columns: str) -> pa.Table:
        """The rows that match, of these columns."""
        return self.table.scan(row_filter=where, selected_fields=columns).to_arrow()

    def batches(self, where: BooleanExpression, *columns: str) -> Iterator[pa.RecordBatch]:
        """The same, a bounded number of rows at a time."""
        return iter(self.table.scan(row_filter=where, selected_fields=columns).to_arrow_batch_reader())

    def files(self, where: BooleanExpression) -> list[FileScanTask]:
        """The files in which there may be rows that match."""
        return [*self.table.scan(row_filter=where).plan_files()]

    def read(self, files: Sequence[FileScanTask]) -> pa.Table:
        """All rows of some files."""
        metadata = self.table.metadata
        scan = ArrowScan(metadata, self.table.io, metadata.schema(), AlwaysTrue())
        return scan.to_table([FileScanTask(each.file, each.delete_files) for each in files])

    def commit(self, added: Sequence[DataFile], watermarks: Mapping[str, str], gone: Sequence[DataFile] = ()) -> None:
        """Adds files, and removes those that are `gone`, together with the watermarks. Raises `Superseded` if it was
        not made; what is known afterwards is that it was, or was not."""
        transaction = self.table.transaction()
        snapshots = transaction.update_snapshot(snapshot_properties={"written-by": "arco-pipeline"})
        with snapshots.overwrite() if gone else snapshots.merge_append() as update:
            for file in added:
                file.spec_id = self.table.spec().spec_id  # lost on its way from an executor
                update.append_data_file(file)
            for file in gone:
                update.delete_data_file(file)
            snapshot = update.snapshot_id
        transaction.set_properties({**watermarks})
        try:
            self.table = transaction.commit_transaction()
        except CommitFailedException as error:
            raise Superseded(str(error)) from error
        except UNKNOWN as error:
            self.table.refresh()
            if self.table.metadata.snapshot_by_id(snapshot) is None:
                raise Superseded(f"nobody knows what became of the commit: {error}") from error

    def mark(self, watermarks: Mapping[str, str]) -> None:
        """Moves watermarks alone: for a batch that brought rows to other tables. Raises `Superseded`."""
        snapshot = self.table.metadata.current_snapshot_id
        on_that = AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": snapshot})
        transaction = self.table.transaction()
        transaction._stage((SetPropertiesUpdate(updates={**watermarks}),), (on_that,))
        try:
            self.table = transaction.commit_transaction()
        except (CommitFailedException, *UNKNOWN) as error:
            raise Superseded(str(error)) from error


def _without_history(metadata: TableMetadata) -> TableMetadata:
    gone: dict[str, object] = {
        "snapshots": [],
        "snapshot_log": [],
        "metadata_log": [],
        "refs": {},
        "current_snapshot_id": None,
    }
    return metadata.model_copy(update=gone)
