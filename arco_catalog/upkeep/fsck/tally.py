"""What a look at the files of one table found: bounded, and added up where several processes looked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Relation
from arco_catalog.upkeep.fsck.findings import Finding

MOST = 100
"""Findings of one code that are told of one table; all are counted."""


@dataclass(slots=True)
class Tally:
    """Findings, the first of each code; how many of each there are; and how many files lie in which folders that are
    not the table's, or that can't be reached."""

    found: list[Finding] = field(default_factory=list)
    counts: Counter[Code] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)
    unreachable: Counter[str] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        """Whether anything was found."""
        return bool(self.counts or self.elsewhere or self.unreachable)

    def tell(self, finding: Finding) -> None:
        """Counts a finding."""
        self.counts[finding.code] += 1
        if self.counts[finding.code] <= MOST:
            self.found.append(finding)

    def add(self, other: "Tally") -> None:
        """Adds what was found in another part of the table. What both tell of one file is one finding; of findings that
        are only counted that can't be known."""
        told = {(each.code, each.where) for each in self.found}
        room = Counter(dict.fromkeys(other.counts, MOST))
        room.subtract(each.code for each in self.found)
        self.counts += other.counts
        for each in other.found:
            if (each.code, each.where) in told:
                self.counts[each.code] -= 1
            elif room[each.code] > 0:
                room[each.code] -= 1
                self.found.append(each)
        self.elsewhere += other.elsewhere
        self.unreachable += other.unreachable

    def findings(self, relation: Relation) -> Sequence[Finding]:
        """What is told of the table."""
        called = relation.called
        more = [
            Finding(code, relation.name, f"{called}: and {count - MOST:,} more")
            for code, count in self.counts.items()
            if count > MOST
        ]
        folders = [
            Finding(code, folder, f"{called}: {count:,} files")
            for code, counted in (
                (Code.FILES_ELSEWHERE, self.elsewhere),
                (Code.FILES_OUT_OF_REACH, self.unreachable),
            )
            for folder, count in counted.most_common(MOST)
        ]
        return [*self.found, *more, *folders]
