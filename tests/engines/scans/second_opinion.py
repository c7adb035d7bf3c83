"""What PyIceberg finds for the scans of a table: the files that it plans, and those in which it finds a row by the
filter. A plan of the catalog must have the latter. The former are the same but for rare ones, since PyIceberg prunes by
rules of its own."""

from collections import Counter

from pyarrow.lib import ArrowInvalid  # type: ignore[import-untyped]
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import DataScan

from arco_catalog.iceberg.json import JsonValue
from tests.engines.scans.oracle import Case, has_enough, has_number
from tests.engines.scans.pyiceberg_planner import Unplannable, scan_of, tasks_of
from tests.engines.scans.served_planner import ServedPlanner
from tests.engines.scans.tasks import ScanPlan

FEWER = 0.1
"""The largest share of scans for which PyIceberg may lack a file of the catalog's plan."""
RANGE = 2**31
"""Of numbers from which on PyIceberg takes a comparison for true in files of before their column was promoted: also for
null."""


async def opinions(served: ServedPlanner, case: Case, *, reads_rows: bool = False) -> tuple[Counter[str], list[str]]:
    """How often PyIceberg has the files of the catalog's plan, or others, and where the plan is at fault."""
    counted: Counter[str] = Counter()
    faults: list[str] = []
    for place, (scan, theirs) in enumerate(case.scans):
        ours = await served.plan(case.name, scan.request)
        if not isinstance(ours, ScanPlan) or not isinstance(theirs, ScanPlan) or has_enough(scan, ours):
            continue
        try:
            of_pyiceberg = scan_of(case.table.metadata_location, scan)
            found = frozenset(task.file.file_path for task in tasks_of(of_pyiceberg))
            with_rows = (
                _files_with_rows(of_pyiceberg) if reads_rows and not is_large(scan.java["filter"]) else frozenset()
            )
        except Unplannable:
            counted["none"] += 1
            continue
        counted[_relation(found, ours)] += 1
        missed = sorted(with_rows - ours.by_path().keys())
        faults += [f"{case.name}, scan {place}: PyIceberg finds a row in {path}" for path in missed]
    return counted, faults


def agrees(counted: Counter[str]) -> bool:
    """Whether PyIceberg has the files of the catalog's plans, or more, for nearly all scans that it plans itself."""
    return counted["fewer"] < FEWER * (counted["same"] + counted["more"] + counted["fewer"])


def is_large(drawn: JsonValue) -> bool:
    """Whether a filter has a number that is beyond what a column's former type has."""
    return has_number(drawn, lambda number: abs(number) >= RANGE)


def _relation(found: frozenset[str], ours: ScanPlan) -> str:
    """Files without rows do not count: PyIceberg leaves them out also where there is no filter."""
    files = {path: task.data_file for path, task in ours.by_path().items()}
    with_rows = {path for path, file in files.items() if file["record-count"] > 0}
    if with_rows <= found:
        return "same" if found <= files.keys() else "more"
    return "fewer"


def _files_with_rows(scan: DataScan) -> frozenset[str]:
    """The data files in which PyIceberg finds rows by the filter, of all that the state has. Raises `Unplannable` for
    literals that PyIceberg cannot compare with the rows of a file, as decimals of more digits than the file's type."""
    metadata, every = scan.table_metadata, tasks_of(scan.update(row_filter=AlwaysTrue()))
    reader = ArrowScan(metadata, scan.io, metadata.schema(), scan.row_filter, scan.case_sensitive)
    try:
        return frozenset(task.file.file_path for task in every if reader.to_table([task]).num_rows)
    except ArrowInvalid as error:
        raise Unplannable(str(error)) from error
