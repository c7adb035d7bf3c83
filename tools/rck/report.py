"""Reads the results of a run of the REST Compatibility Kit, and compares them with the expected ones."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from xml.etree import ElementTree

from tools.rck.kits import Kit

_GROUPS = {
    "org.apache.iceberg.rest.RESTCompatibilityKitCatalogTests": "tables",
    "org.apache.iceberg.rest.RESTCompatibilityKitViewCatalogTests": "views",
}
CLASSES = tuple(_GROUPS)
_ABORTED = "org.opentest4j.TestAbortedException"


class Result(StrEnum):
    """The result of a test of the kit in JUnit's terms: an aborted test ran and found that it does not apply, a skipped
    one is disabled."""

    PASSED = "passed"
    FAILED = "failed"
    ABORTED = "aborted"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Outcome:
    """The result of one test of the kit, with the class and message of the error if it did not pass."""

    test: str
    result: Result
    why: str = ""


def read(file: Path) -> list[Outcome]:
    """Read the outcomes in JUnit's XML report, sorted by the names of tests."""
    cases = ElementTree.parse(file).getroot().iter("testcase")
    return sorted((_outcome(case) for case in cases), key=lambda outcome: outcome.test)


def _outcome(case: ElementTree.Element) -> Outcome:
    name = re.sub(r"\(.*\)", "", case.attrib["name"])  # as in testRemoveUnusedSpec(boolean)[1]
    test = f"{_GROUPS[case.attrib['classname']]}.{name}"
    for element in case:
        text = (element.text or "").strip()
        if element.tag in ("failure", "error"):
            return Outcome(test, Result.FAILED, _line(f"{element.get('type')}: {element.get('message')}"))
        if element.tag == "skipped":
            return Outcome(test, Result.ABORTED if text.startswith(_ABORTED) else Result.SKIPPED, _line(text))
    return Outcome(test, Result.PASSED)


def _line(text: str) -> str:
    return " ".join(text.split())[:400]


def counts(outcomes: Sequence[Outcome]) -> str:
    """The counts of outcomes as text, such as `146 passed, 1 failed, 9 aborted, 1 skipped of 157`."""
    found = Counter(outcome.result for outcome in outcomes)
    return f"{', '.join(f'{found[result]} {result}' for result in Result)} of {len(outcomes)}"


def faults(kit: Kit, cannot_pass: Mapping[str, str], outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each outcome that is not expected, and one if the number of tests is wrong. A test of `cannot_pass`
    must fail with the error given there; all others must pass, except those that the kit does not run."""
    found = [line for outcome in outcomes if (line := _fault(kit, cannot_pass, outcome))]
    if len(outcomes) != kit.tests:
        found.append(f"{len(outcomes)} tests were found, not {kit.tests}")
    return found


def _fault(kit: Kit, cannot_pass: Mapping[str, str], outcome: Outcome) -> str | None:
    test, error = outcome.test, cannot_pass.get(outcome.test)
    match outcome.result:
        case Result.PASSED if error or test in kit.not_run:
            return f"{test} passed, although kits.py lists it as one that cannot pass"
        case Result.FAILED if error is None or not outcome.why.startswith(f"{error}:"):
            return f"{test} failed: {outcome.why}"
        case Result.ABORTED | Result.SKIPPED if test not in kit.not_run:
            return f"{test} was not run: {outcome.why}"
    return None
