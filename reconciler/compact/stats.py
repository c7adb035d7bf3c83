"""The counts of a run of `compact`."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyiceberg.manifest import DataFile

from arco_catalog.iceberg.json import JsonObject
from reconciler.compact.work import PartResult
from reconciler.system.definition import SystemTable


@dataclass
class CompactStats:
    """The counts of a run of `compact`: new rows by table, commits, objects that were read, in `overtaken` how often a
    step was repeated since a commit of another run superseded it, and objects that could not be read, with messages for
    the first 100."""

    rows: dict[str, int] = field(default_factory=dict)
    commits: int = 0
    read: int = 0
    overtaken: int = 0
    unreadable: list[str] = field(default_factory=list)
    unreadable_count: int = 0

    def add(self, parts: Sequence[PartResult]) -> None:
        """Counts the objects that these parts have read, and the ones that they could not read; notes at most 100 of
        the latter."""
        for part in parts:
            self.read += part.read
            self.unreadable_count += len(part.unreadable)
            self.unreadable += [*part.unreadable][: max(0, 100 - len(self.unreadable))]

    def committed(self, table: SystemTable, added: Sequence[DataFile]) -> None:
        """Counts a commit to a table, and the rows of the files that it added."""
        self.commits += 1
        self.rows[table.name] = self.rows.get(table.name, 0) + sum(file.record_count for file in added)

    def to_json(self) -> JsonObject:
        """Returns the counts as JSON, for the last line of a run."""
        return {
            "rows": {**self.rows},
            "commits": self.commits,
            "read": self.read,
            "overtaken": self.overtaken,
            "unreadable_count": self.unreadable_count,
            "unreadable": [*self.unreadable],
        }
