"""The tasks of a planned scan, and in what two plans of one scan differ."""

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from arco_catalog.iceberg.json import JsonValue

STATISTICS = ("column-sizes", "value-counts", "null-value-counts", "nan-value-counts", "lower-bounds", "upper-bounds")

MISSING = "missing"
NOT_PRUNED = "not pruned"
HAS_DELETES = "has the deletes of"
EQUALITY_LACKING = "lacks the equality deletes of"


@dataclass(frozen=True)
class ScanTask:
    """A data file and the delete files that apply to it, in the form of the REST specification, and the filter that
    its rows must still meet."""

    data_file: Mapping[str, Any]
    deletes: Sequence[Mapping[str, Any]]
    residual: JsonValue


@dataclass(frozen=True)
class ScanPlan:
    tasks: Sequence[ScanTask]

    @classmethod
    def of_java(cls, answer: Mapping[str, Any]) -> "ScanPlan":
        return cls([ScanTask(task["data-file"], task["deletes"], task["residual"]) for task in answer["tasks"]])

    def without_row_ids(self) -> "ScanPlan":
        """The plan as of files whose rows have no ids."""
        return ScanPlan([replace(task, data_file=_without_row_ids(task.data_file)) for task in self.tasks])

    def by_path(self) -> dict[str, ScanTask]:
        return {task.data_file["file-path"]: task for task in self.tasks}

    @property
    def repeated(self) -> Sequence[str]:
        """The data files with several tasks."""
        counts = Counter(task.data_file["file-path"] for task in self.tasks)
        return sorted(path for path, count in counts.items() if count > 1)


def _without_row_ids(file: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in file.items() if name != "first-row-id"}


def differences(theirs: ScanPlan, unfiltered: ScanPlan, ours: ScanPlan) -> list[str]:
    """In what our plan departs from theirs. Of residuals only true and false are compared: two filters may be
    equivalent. A delete file that the filter would rule out may be there: `unfiltered`, their plan without the filter,
    has the delete files of each data file."""
    expected, found, every = theirs.by_path(), ours.by_path(), unfiltered.by_path()
    missing = [f"{MISSING}: {path}" for path in sorted(expected.keys() - found.keys())]
    more = [f"{NOT_PRUNED}: {path}" for path in sorted(found.keys() - expected.keys())]
    both = sorted(expected.keys() & found.keys())
    return [
        *missing,
        *more,
        *(f"{path} has several tasks" for path in (*theirs.repeated, *ours.repeated)),
        *(each for path in both for each in _differences(path, expected[path], every[path].deletes, found[path])),
    ]


def _differences(
    path: str, expected: ScanTask, every_delete: Sequence[Mapping[str, Any]], found: ScanTask
) -> list[str]:
    differences = []
    if not _same(expected.data_file, found.data_file):
        differences.append(f"{path} is {plain(found.data_file)}, not {plain(expected.data_file)}")
    if "content" in expected.data_file and statistics(expected.data_file) != statistics(found.data_file):
        differences.append(f"{path} has {statistics(found.data_file)}, not {statistics(expected.data_file)}")
    theirs, ours, every = map(_names, (expected.deletes, found.deletes, every_delete))
    for name in sorted(theirs.keys() - ours.keys()):
        lacking = EQUALITY_LACKING if every[name].get("content") == "equality-deletes" else "lacks the deletes of"
        differences.append(f"{path} {lacking} {name}")
    differences += [f"{path} {HAS_DELETES} {name}" for name in sorted(ours.keys() - every.keys())]
    for name in sorted(every.keys() & ours.keys()):
        if not _same(every[name], ours[name]):
            differences.append(f"{name} is {plain(ours[name])}, not {plain(every[name])}")
    if isinstance(expected.residual, bool) and not isinstance(found.residual, bool) and not _is_unordered(found):
        differences.append(f"{path} has the residual {found.residual}, not {expected.residual}")
    return differences


def _is_unordered(task: ScanTask) -> bool:
    """Whether the partition has a null, a NaN or a zero. Java takes null for less than any value, NaN for more, and
    -0.0 for less than 0.0. Scans do not, so a filter may be left where Java finds that all rows match, or none."""
    return any(value is None or value == "NaN" or value == 0.0 for value in task.data_file.get("partition", []))


def _names(files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{each['file-path']}@{each.get('content-offset')}": each for each in files}


def _same(expected: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether two files are described alike. Java has but the path and the spec of a file of which it cannot write the
    JSON: its partition fields are all void, or have a column that was dropped."""
    if "content" not in expected:
        return {name: value for name, value in expected.items() if value is not None}.items() <= found.items()
    return plain(expected) == plain(found)


def plain(file: Mapping[str, Any]) -> dict[str, Any]:
    """A file without what an answer may leave out: statistics, and nulls; its partition's floats with single
    precision."""
    rest = {name: value for name, value in file.items() if name not in STATISTICS and value is not None}
    return {**rest, "partition": [_single(value) if isinstance(value, float) else value for value in rest["partition"]]}


def statistics(file: Mapping[str, Any]) -> dict[str, dict[int, Any]]:
    """The statistics of a file by kind and column. Empty ones are none."""
    found = {name: file.get(name) or {"keys": [], "values": []} for name in STATISTICS}
    return {name: dict(zip(each["keys"], each["values"], strict=True)) for name, each in found.items() if each["keys"]}


def _single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0]) if abs(value) < 3.5e38 else value
