"""The findings that a check keeps: a bounded number, and the same for one process as for several."""

import pytest

from arco_catalog.protocol.catalog import Session
from arco_catalog.upkeep.fsck import report
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import LIVE, Relation
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.report import FindingCollector, Report
from arco_catalog.upkeep.fsck.tally import MAX_FINDINGS, Tally

TABLE = Relation("01J", "table", "db.t", LIVE, "relation")


async def mend(session: Session) -> bool:
    return True


def missing(number: int) -> Finding:
    return Finding(Code.DATA_FILE_MISSING, f"file-{number:04}", "table db.t")


def test_a_report_has_so_many_findings_of_a_code_and_all_that_can_be_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MAX_FINDINGS", 3)
    gathered = FindingCollector()

    kept = [gathered.add(missing(number)) for number in range(5)]
    mendable = [gathered.add(Finding(Code.RECEIPT_MISSING, str(number), "", mend)) for number in range(5)]
    found = gathered.findings()

    assert (kept, mendable, gathered.count) == ([True, True, True, False, False], [True] * 5, 10)
    assert [each.where for each in found] == ["file-0000", "file-0001", "file-0002", *"01234", ""]
    assert (found[-1].code, found[-1].found) == (Code.DATA_FILE_MISSING, "and 2 more findings of this code")
    assert not Report(found, [], 1).ok


def test_parts_of_a_table_that_are_added_up_tell_what_one_look_does() -> None:
    whole, parts = Tally(), [Tally(), Tally()]
    for number in range(MAX_FINDINGS + 20):
        whole.count(missing(number))
        parts[number % 2].count(missing(number))
    for part in (whole, parts[0]):
        part.elsewhere["s3://elsewhere/t"] += 3
    parts[0].add(parts[1])

    assert len(parts[0].found) == len(whole.found) == MAX_FINDINGS
    assert [each.found for each in parts[0].findings(TABLE)[MAX_FINDINGS:]] == [
        each.found for each in whole.findings(TABLE)[MAX_FINDINGS:]
    ]
    assert [each.found for each in whole.findings(TABLE)[MAX_FINDINGS:]] == [
        "table db.t: and 20 more findings of this code",
        "table db.t: 3 files of the table are in this folder, outside of the table's locations",
    ]


def test_what_two_parts_tell_of_one_file_is_one_finding() -> None:
    one, other = Tally(), Tally()
    for tally, numbers in ((one, (1, 2)), (other, (2, 3))):
        for number in numbers:
            tally.count(missing(number))

    one.add(other)

    assert [each.where for each in one.findings(TABLE)] == ["file-0001", "file-0002", "file-0003"]
    assert one.counts == {Code.DATA_FILE_MISSING: 3}
