"""Reads the edges around a table from the table `system.lineage`, which the pipeline makes
(docs/pipeline.md#lineage), through PyIceberg, which the extra `pipeline` installs. PyIceberg blocks, so the caller runs
this in a thread."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from arco_catalog.cli.client_config import store_settings
from arco_catalog.cli.command import CatalogOptions

if TYPE_CHECKING:  # PyIceberg is optional
    from pyiceberg.table import FileScanTask, Table

LIBRARIES: Final = ("pyiceberg", "pyarrow")
MAX_FILES: Final = 200
"""Maximum number of data files that one step from the table reads, of the latest days."""
MAX_ROWS: Final = 20_000
"""Maximum number of rows that one step reads."""
MAX_EDGES: Final = 500
"""Maximum number of edges."""
_ENDS: Final = ("entity", "namespace", "name", "dataset")
_COLUMNS: Final = (
    *(f"{end}_{column}" for end in ("input", "output") for column in _ENDS),
    *("happened_at", "job_namespace", "job_name", "principal", "run_id", "lineage_confidence"),
    *("output_snapshot_id", "matched_by"),
)

Row = Mapping[str, object]


class LibraryMissing(Exception):
    """A library without which the table can't be read is not installed; the text is its name."""


class NotCollected(Exception):
    """The table `system.lineage` could not be read; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the table `system.lineage` is: at the server with this URL and token, or else in the store, with this
    metadata file."""

    options: CatalogOptions
    url: str | None = None
    token: str | None = field(default=None, repr=False)
    metadata: str | None = None


@dataclass(slots=True)
class CollectedEdges:
    """Rows of `system.lineage`, one for two ends and a job: the latest, of proved ones if there are any.
    `is_partial` is whether there are more than may be read."""

    rows: dict[tuple[object, ...], Row] = field(default_factory=dict)
    is_partial: bool = False

    def add(self, row: Row) -> None:
        """Adds a row, in place of a worse one for the same ends and job, unless there is a better one; if there are
        `MAX_EDGES` others, marks the edges as partial instead."""
        key = (*end_of(row, "input"), *end_of(row, "output"), row["job_namespace"], row["job_name"])
        best = self.rows.get(key)
        if best is None and len(self.rows) >= MAX_EDGES:
            self.is_partial = True
        elif best is None or _rank(row) > _rank(best):
            self.rows[key] = row


def end_of(row: Row, end: str) -> tuple[object, object]:
    """Returns what an end of an edge is, `input` or `output`: the table and None, or else None and the dataset."""
    entity = row[f"{end}_entity"]
    return entity, None if entity is not None else row[f"{end}_dataset"]


def read_collected(source: Source, entity: str, direction: str, steps: int) -> CollectedEdges:
    """Returns the edges around a table, up to `steps` edges away in the direction (`both`, `upstream` or `downstream`).
    Raises `LibraryMissing` if PyIceberg or PyArrow is not installed, and `NotCollected` for any error while the table
    `system.lineage` is read."""
    for library in LIBRARIES:
        if find_spec(library) is None:
            raise LibraryMissing(library)
    found = CollectedEdges()
    try:
        table = _table(source)
        if direction != "downstream":
            _walk(table, found, entity, steps, "output", "input")
        if direction != "upstream":
            _walk(table, found, entity, steps, "input", "output")
    except Exception as error:  # whatever PyIceberg and the clients of stores raise
        raise NotCollected(str(error) or type(error).__name__) from error
    return found


def _table(source: Source) -> "Table":
    """Opens the table `system.lineage`, from the metadata file of the source, or else at the server. Files of it are
    read with credentials of the environment, or vended ones."""
    settings = store_settings(source.options.store, source.options.environment).pyiceberg if source.metadata else {}
    if source.metadata is not None:
        from pyiceberg.table import StaticTable

        return StaticTable.from_metadata(source.metadata, dict(settings))
    from pyiceberg.catalog import load_catalog

    login = {} if source.token is None else {"token": source.token}
    properties = {"uri": source.url, "warehouse": source.options.warehouse, **login}
    return load_catalog("arco-lineage", type="rest", **properties).load_table(("system", "lineage"))


def _walk(table: "Table", found: CollectedEdges, entity: str, steps: int, here: str, there: str) -> None:
    """Adds to `found` the edges in `table`, the lineage that the pipeline has collected, that have the table `entity`
    at their end `here`, then the edges at the tables of the other ends, and so on, at most `steps` times. No table is
    visited a second time, and at most `MAX_EDGES` are."""
    seen, frontier = {entity}, {entity}
    for _ in range(steps):
        if not frontier:
            return
        following: set[str] = set()
        for row in _rows(table, found, f"{here}_entity", frontier):
            found.add(row)
            other = row[f"{there}_entity"]
            if isinstance(other, str) and other not in seen and len(seen) < MAX_EDGES:
                seen.add(other)
                following.add(other)
        frontier = following


def _rows(table: "Table", found: CollectedEdges, column: str, entities: Collection[str]) -> Iterator[Row]:
    """Yields the rows of `system.lineage` that have one of the entities in a column, from at most `MAX_FILES` files of
    the latest days, and at most `MAX_ROWS` rows; marks `found` as partial if there are more."""
    from pyiceberg.expressions import In
    from pyiceberg.io.pyarrow import ArrowScan

    where = In(column, [*entities])  # type: ignore[arg-type, call-arg]  # as Pydantic has it
    scan = table.scan(row_filter=where, selected_fields=_COLUMNS)
    tasks: Sequence[FileScanTask] = sorted(scan.plan_files(), key=_day, reverse=True)
    found.is_partial |= len(tasks) > MAX_FILES
    reader = ArrowScan(table.metadata, table.io, scan.projection(), where, True)
    rows = 0
    for batch in reader.to_record_batches(tasks[:MAX_FILES]):
        for row in batch.to_pylist():
            rows += 1
            if rows > MAX_ROWS:
                found.is_partial = True
                return
            yield row


def _day(task: "FileScanTask") -> int:
    """Returns the day of a file, in days since 1970: the only partition field of the table. A file without one has
    0."""
    day = task.file.partition[0]
    return day if isinstance(day, int) else 0


def _rank(row: Row) -> tuple[bool, str]:
    """Returns the rank of an edge among the edges of one key: a verified edge is above others, then a later one above
    earlier ones."""
    return row["lineage_confidence"] == "Verified", str(row["happened_at"])
