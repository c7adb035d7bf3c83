"""The inconsistencies of the files of one table, in bounded memory; those of several processes can be added."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Relation
from arco_catalog.upkeep.fsck.findings import Finding

MAX_FINDINGS = 100
"""Findings of one code that a tally keeps for a table; all are counted."""


@dataclass(slots=True)
class Tally:
    """The inconsistencies found in the files of one table: the first findings of each code, the number of all findings
    of each code, and for directories outside of the table's locations and borrowed folders, or out of reach, the number
    of files in them."""

    found: list[Finding] = field(default_factory=list)
    counts: Counter[Code] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)
    unreachable: Counter[str] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        """Whether the tally has any finding."""
        return bool(self.counts or self.elsewhere or self.unreachable)

    def count(self, finding: Finding) -> None:
        """Counts a finding about the table by its code, and keeps it if it is among the first `MAX_FINDINGS` of that
        code."""
        self.counts[finding.code] += 1
        if self.counts[finding.code] <= MAX_FINDINGS:
            self.found.append(finding)

    def add(self, other: "Tally") -> None:
        """Adds the findings of another part of the same table. Equal findings about one file count once, as far as both
        tallies have kept them."""
        known = {(each.code, each.where) for each in self.found}
        room = Counter(dict.fromkeys(other.counts, MAX_FINDINGS))
        room.subtract(each.code for each in self.found)
        self.counts += other.counts
        for each in other.found:
            if (each.code, each.where) in known:
                self.counts[each.code] -= 1
            elif room[each.code] > 0:
                room[each.code] -= 1
                self.found.append(each)
        self.elsewhere += other.elsewhere
        self.unreachable += other.unreachable

    def findings(self, relation: Relation) -> Sequence[Finding]:
        """Returns the findings about the table: the kept ones, one for each code that has more than `MAX_FINDINGS` with
        the number of further ones, and one for each folder outside of the table's locations and borrowed folders, or
        out of reach, of either kind at most `MAX_FINDINGS`, the largest first."""
        called = relation.called
        more = [
            Finding(code, relation.name, f"{called}: and {count - MAX_FINDINGS:,} more findings of this code")
            for code, count in self.counts.items()
            if count > MAX_FINDINGS
        ]
        folders = [
            Finding(code, folder, f"{called}: {count:,} files of the table are in this folder{note}")
            for code, counted, note in (
                (Code.FILES_ELSEWHERE, self.elsewhere, ", outside of the table's locations"),
                (Code.FILES_OUT_OF_REACH, self.unreachable, ", which this check can't reach"),
            )
            for folder, count in counted.most_common(MAX_FINDINGS)
        ]
        return [*self.found, *more, *folders]
