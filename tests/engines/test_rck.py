"""Iceberg's REST Compatibility Kit, the newest with a kit to run, on local files. `make rck` runs the rest."""

from collections import Counter
from pathlib import Path

import pytest

from arco_catalog.http.lambda_adapter import Endpoint
from tools.rck.kits import CANNOT_PASS, KITS, Kit, Store
from tools.rck.report import Outcome, Result, counts, faults, read
from tools.rck.run import run

KIT = Kit("1.0", tests=3, not_run=frozenset({"views.b"}), endpoint=Endpoint.HTTP_API)
CANNOT = {"tables.c": "java.io.IOException"}
AS_IT_MUST = (
    Outcome("tables.a", Result.PASSED),
    Outcome("tables.c", Result.FAILED, "java.io.IOException: no such file"),
    Outcome("views.b", Result.ABORTED, "not supported"),
)
REPORT = """<?xml version='1.0' encoding='UTF-8'?>
<testsuite name="JUnit Jupiter">
<testcase name="views()" classname="org.apache.iceberg.rest.RESTCompatibilityKitViewCatalogTests">
<failure message="Expecting:
  one line" type="java.lang.AssertionError">java.lang.AssertionError: and its trace</failure><system-out>id</system-out>
</testcase>
<testcase name="spec(boolean)[2]" classname="org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests"/>
<testcase name="nested()" classname="org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests">
<skipped>org.opentest4j.TestAbortedException: not supported</skipped></testcase>
<testcase name="disabled()" classname="org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests">
<skipped>not configurable</skipped></testcase>
<testcase name="broken()" classname="org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests">
<error message="no" type="java.io.IOException">java.io.IOException: no</error></testcase>
</testsuite>"""


def test_all_that_can_pass_does(tmp_path: Path) -> None:
    kit = KITS[0]
    done = run(kit, Store.LOCAL, tmp_path)
    assert done.faults == []
    assert Counter(outcome.result for outcome in done.outcomes)[Result.PASSED] == 147
    assert kit.version == "1.11.0"


def test_one_test_cannot_pass_away_from_local_files() -> None:
    assert {store: len(tests) for store, tests in CANNOT_PASS.items()} == {
        store: int(store is not Store.LOCAL) for store in Store
    }


def test_a_report_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    file.write_text(REPORT)
    assert read(file) == [
        Outcome("tables.broken", Result.FAILED, "java.io.IOException: no"),
        Outcome("tables.disabled", Result.SKIPPED, "not configurable"),
        Outcome("tables.nested", Result.ABORTED, "org.opentest4j.TestAbortedException: not supported"),
        Outcome("tables.spec[2]", Result.PASSED),
        Outcome("views.views", Result.FAILED, "java.lang.AssertionError: Expecting: one line"),
    ]


def test_counts_name_every_result() -> None:
    assert counts(AS_IT_MUST) == "1 passed, 1 failed, 1 aborted, 0 skipped of 3"


def test_a_run_that_is_as_it_must_be_has_no_faults() -> None:
    assert faults(KIT, CANNOT, AS_IT_MUST) == []


@pytest.mark.parametrize(
    ("outcome", "fault"),
    [
        (Outcome("tables.a", Result.FAILED, "java.io.IOException: no"), "tables.a failed: java.io.IOException: no"),
        (Outcome("tables.a", Result.ABORTED, "an option is off"), "tables.a was not run: an option is off"),
        (Outcome("tables.a", Result.SKIPPED, "disabled"), "tables.a was not run: disabled"),
        (Outcome("tables.c", Result.FAILED, "RESTException: 500"), "tables.c failed: RESTException: 500"),
        (Outcome("tables.c", Result.PASSED), "tables.c passed, although kits.py lists it as one that cannot pass"),
        (Outcome("views.b", Result.PASSED), "views.b passed, although kits.py lists it as one that cannot pass"),
        (Outcome("views.b", Result.FAILED, "X: y"), "views.b failed: X: y"),
    ],
)
def test_whatever_is_not_as_it_must_be_is_a_fault(outcome: Outcome, fault: str) -> None:
    others = [other for other in AS_IT_MUST if other.test != outcome.test]
    assert faults(KIT, CANNOT, [*others, outcome]) == [fault]


def test_a_test_that_is_missing_is_a_fault() -> None:
    assert faults(KIT, CANNOT, AS_IT_MUST[1:]) == ["2 tests were found, not 3"]
