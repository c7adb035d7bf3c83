"""What Java plans for a drawn table and scan, and what is wrong with another plan of it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.partition_keys import dropped_columns
from tests.engines.scans.drawn_scans import DrawnScan, drawn_scan
from tests.engines.scans.drawn_tables import drawn_table
from tests.engines.scans.tasks import EQUALITY_LACKING, HAS_DELETES, MISSING, NOT_PRUNED, ScanPlan, differences
from tools.support.java_programs import JavaProgram


@dataclass(frozen=True)
class MadeTable:
    """A drawn table that Java has written, and by path the rows of its data files and the schema that they were
    written by. A table that Spark has written has no description, and its rows are in its files."""

    description: JsonObject
    metadata_location: str
    metadata: Mapping[str, Any]
    rows: Mapping[str, Mapping[str, Any]]

    @property
    def has_lost_partitions(self) -> bool:
        """Whether a partition may have lost the value of a dropped column, and Java's planner its deletes with it."""
        dropped = dropped_columns({each["schema-id"]: each for each in self.metadata["schemas"]})
        specs = self.metadata["partition-specs"]
        return any(field["source-id"] in dropped for spec in specs for field in spec["fields"])

    @property
    def was_upgraded(self) -> bool:
        """Whether it has snapshots of before rows had ids, and later ones."""
        return len({"first-row-id" in snapshot for snapshot in self.metadata.get("snapshots", [])}) > 1


@dataclass(frozen=True)
class Case:
    """A table, and its scans with the plan of each, or why Java has none."""

    name: str
    table: MadeTable
    scans: Sequence[tuple[DrawnScan, ScanPlan | str]]


@dataclass(frozen=True)
class Oracle:
    java: JavaProgram

    def make(self, description: JsonObject, folder: Path) -> MadeTable:
        """Raises `ValueError` where Java cannot begin the table. Steps that it refuses are left out."""
        answer: dict[str, Any] = self.java.answer({**description, "folder": f"file://{folder}"})
        if "error" in answer:
            raise ValueError(answer["error"])
        location = answer["metadata"]
        metadata = json.loads(Path(location.removeprefix("file://")).read_bytes())
        return MadeTable(description, location, metadata, {file["path"]: file for file in answer["rows"]})

    def plan(self, table: MadeTable, scan: DrawnScan) -> ScanPlan | str:
        """What Java plans, or why it does not."""
        answer = self.java.answer(scan.on("plan", table.metadata_location))
        return str(answer["error"]) if "error" in answer else ScanPlan.of_java(answer)

    def faults(self, table: MadeTable, scan: DrawnScan, theirs: ScanPlan, ours: ScanPlan) -> list[str]:
        """In what our plan departs from Java's, and rows that it loses or keeps against the filter."""
        unfiltered = self.java.answer(scan.on("plan", table.metadata_location, filter=True))
        assert "error" not in unfiltered, unfiltered
        pair = [plan.without_row_ids() for plan in (theirs, ours)] if lacks_row_ids(table, scan) else [theirs, ours]
        found = [
            each
            for each in differences(pair[0], ScanPlan.of_java(unfiltered), pair[1])
            if not (each.startswith(NOT_PRUNED) and has_zero(scan.java["filter"]))
            and not (each.startswith(MISSING) and each.rpartition(" ")[2] in table.rows)  # their rows are judged
            and not (HAS_DELETES in each and table.has_lost_partitions)
            and not (each.startswith(MISSING) and has_enough(scan, ours))
            and not (EQUALITY_LACKING in each and has_transform(scan.java["filter"]))
        ]
        return found + self._faults_of_rows(table, scan, ScanPlan.of_java(unfiltered), ours)

    def _faults_of_rows(self, table: MadeTable, scan: DrawnScan, every: ScanPlan, ours: ScanPlan) -> list[str]:
        tasks = ours.by_path()
        paths = [path for path in every.by_path() if path in table.rows]
        files: list[JsonValue] = [
            {**table.rows[path], "residual": tasks[path].residual if path in tasks else True} for path in paths
        ]
        request = scan.on("matches", table.metadata_location, files=files, **{"schema-id": scan.schema_id})
        answer: dict[str, Any] = self.java.answer(request)
        if "error" in answer:  # of the filter or the rows there is none: Java has planned with them
            return [f"Java reads a residual by {answer['error']}: {[task.residual for task in ours.tasks]}"]
        faults = []
        for path, matches in zip(paths, answer["files"], strict=True):
            if path not in tasks and not has_enough(scan, ours) and any(by_filter for by_filter, _ in matches):
                faults.append(f"a row of {path} matches, which is not planned")
            if path in tasks and any(by_filter != by_residual for by_filter, by_residual in matches):
                faults.append(f"the residual {tasks[path].residual} is not the filter for the rows of {path}")
        return faults


def lacks_row_ids(table: MadeTable, scan: DrawnScan) -> bool:
    """Whether files may lack the ids of their rows: in an increment the catalog has each file as the snapshot has it
    that added it, without ids before an upgrade, and Java as the newest of its manifest lists has it."""
    return scan.incremental and table.was_upgraded


def has_enough(scan: DrawnScan, plan: ScanPlan) -> bool:
    """Whether a plan may leave out files with matching rows: the client needs no more rows than it is certain to get
    from the files of the plan that have no deletes, and all of whose rows match. That these do is judged apart."""
    certain = sum(task.data_file["record-count"] for task in plan.tasks if task.residual is True and not task.deletes)
    return scan.min_rows is not None and certain >= max(1, scan.min_rows)


def has_zero(drawn: JsonValue) -> bool:
    """Whether a filter has 0.0 or -0.0, which the catalog takes for equal, as engines do, and Java does not."""
    return has_number(drawn, lambda number: number == 0)


def has_number(drawn: JsonValue, test: Callable[[float], bool]) -> bool:
    """Whether a filter has a number that a test accepts."""
    match drawn:
        case dict():
            return any(has_number(each, test) for each in drawn.values())
        case list():
            return any(has_number(each, test) for each in drawn)
        case int() | float():
            return not isinstance(drawn, bool) and test(drawn)
    return False


def has_transform(drawn: JsonValue) -> bool:
    """Whether a filter has a condition on the value of a transform, which the catalog tests by bounds of the column,
    also by those of equality deletes, and Java by partitions alone."""
    if isinstance(drawn, dict):
        return drawn.get("type") == "transform" or any(map(has_transform, drawn.values()))
    return False


def drawn_case(oracle: Oracle, seed: int, scans: int, folder: Path) -> Case:
    """The table of a seed, in this folder, and what Java plans for scans of it."""
    random = Random(seed)
    name = f"t{seed}"
    return case_of(oracle, name, oracle.make(drawn_table(random), folder / name), random, scans)


def case_of(oracle: Oracle, name: str, table: MadeTable, random: Random, scans: int) -> Case:
    """A table with scans that are drawn for it, and what Java plans for them."""
    drawn = [drawn_scan(random, table.metadata) for _ in range(scans)]
    return Case(name, table, [(scan, oracle.plan(table, scan)) for scan in drawn])
