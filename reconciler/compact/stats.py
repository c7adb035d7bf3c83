"""What a run of `compact` did."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyiceberg.manifest import DataFile

from arco_catalog.iceberg.json import JsonObject
from reconciler.compact.work import Written
from reconciler.system.definition import SystemTable


@dataclass
class CompactStats:
    """What a run did: rows by table, and what it read for them."""

    rows: dict[str, int] = field(default_factory=dict)
    commits: int = 0
    read: int = 0
    overtaken: int = 0
    unreadable: list[str] = field(default_factory=list)
    unreadable_count: int = 0

    def took(self, parts: Sequence[Written]) -> None:
        """Counts what parts read, and could not."""
        for part in parts:
            self.read += part.read
            self.unreadable_count += len(part.unreadable)
            self.unreadable += [*part.unreadable][: max(0, 100 - len(self.unreadable))]

    def committed(self, table: SystemTable, added: Sequence[DataFile]) -> None:
        """Counts a commit, and the new rows in it."""
        self.commits += 1
        self.rows[table.name] = self.rows.get(table.name, 0) + sum(file.record_count for file in added)

    def to_json(self) -> JsonObject:
        """For the last line of a run."""
        return {
            "rows": {**self.rows},
            "commits": self.commits,
            "read": self.read,
            "overtaken": self.overtaken,
            "unreadable_count": self.unreadable_count,
            "unreadable": [*self.unreadable],
        }
