"""Every page of a decision has one form: number and title, status, date, context, options, decision."""

import re
from pathlib import Path

import pytest

DECISIONS = Path(__file__).resolve().parents[2] / "docs/decisions"
PAGES = sorted(DECISIONS.glob("[0-9]*.md"))
SECTIONS = ("Context", "Options", "Decision")
HEAD = re.compile(
    r"# (?P<number>[1-9]\d*)\. \S.*\n\n"
    r"- Status: (?:accepted|superseded by \[decision (?P<successor>\d+)\]\((?P<page>\d{4}-[\w-]+\.md)\))\n"
    r"- Date: 20\d\d-[01]\d-[0-3]\d\n\n"
    r"## Context\n"
)


def faults(name: str, text: str) -> list[str]:
    """Where a page departs from the form."""
    found = []
    head = HEAD.match(text)
    if head is None:
        found.append("title, status, date and context are not the first lines")
    elif int(head["number"]) != int(name[:4]):
        found.append("the title has another number than the file")
    parts = re.findall(r"(?m)^## (.+)\n+(.*)$", text)
    if [title for title, _ in parts if title in SECTIONS] != list(SECTIONS):
        found.append("context, options and decision are not there once each, in this order")
    found += [f"{title} is empty" for title, first in parts if not first or first.startswith("## ")]
    options = re.search(r"(?ms)^## Options\n(.*?)^## ", text)
    if options is not None and len(re.findall(r"(?m)^- ", options[1])) < 2:
        found.append("there are fewer than two options")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_decision_has_the_form(page: Path) -> None:
    assert faults(page.name, page.read_text()) == []


def test_decisions_are_numbered_without_a_gap() -> None:
    assert [int(page.name[:4]) for page in PAGES] == list(range(1, len(PAGES) + 1))


def test_a_superseded_decision_names_one_that_is_there() -> None:
    heads = [head for page in PAGES if (head := HEAD.match(page.read_text())) and head["successor"]]
    assert [head[0] for head in heads if not (DECISIONS / head["page"]).exists()] == []


GOOD = """# 7. A title

- Status: accepted
- Date: 2026-11-21

## Context

Something is so.

## Options

- One.
- Another.

## Decision

The other.
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# 7.", "# 8."),
        ("# 7.", "# 0007:"),
        ("- Status: accepted\n", ""),
        ("accepted", "superseded"),
        ("- Date: 2026-11-21\n", ""),
        ("2026-11-21", "November"),
        ("## Context", "## Background"),
        ("Something is so.\n\n", ""),
        ("- Another.\n", ""),
        ("## Decision", "## What is done"),
        ("The other.\n", ""),
    ],
)
def test_a_departure_from_the_form_is_found(old: str, new: str) -> None:
    assert faults("0007-a-title.md", GOOD) == []
    assert faults("0007-a-title.md", GOOD.replace(old, new)) != []
