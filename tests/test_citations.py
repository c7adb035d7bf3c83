"""Whatever the repository cites is in the repository: pages and rules of docs/design, decisions, and files that its
pages link to. What lies beside a checkout is cited nowhere, since nobody else has it."""

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DESIGN = ROOT / "docs/design"
DECISIONS = ROOT / "docs/decisions"

CITATION = re.compile(r"\bdocs/design/(?P<page>[\w.-]*\w)(?:#(?P<anchor>[\w-]+))?")
OLD = re.compile(r"(?<![\w-])(?:design|protocols)\.md\b", re.IGNORECASE)
"""The pages that the design was once: their numbers of sections mean nothing any more."""
BARE_RULE = re.compile(r"(?<!-)\brules?\s+(?:#\s+)?\d", re.IGNORECASE)
"""Each page numbers its own rules, so a number alone leads nowhere."""
RULE = re.compile(r'(?m)^(?P<number>\d+)\. <a id="rule-(?P<anchor>\d+)"></a>')
RULE_LINK = re.compile(r"\[[^\]]*?rules?\s+(?P<said>\d+)[^\]]*\]\([^)\s]*#rule-(?P<anchor>\d+)\)")

OUTSIDE = re.compile(
    r"(?<![\w./-])(?:\.\./)*(?:shared|notes|seeds|repro)/[\w*{]"
    rf"|\bdesign/(?!(?:{'|'.join(page.stem for page in DESIGN.glob('*.md'))})\.md)[\w-]+\.md"
    r"|\b(?:faults|limits|naming|iceberg-semantics|seed-requirements)\.md"
    r"|\b[Ss]eeds? 0\d\d\b"
)
MADE = re.compile(r"\.(?!ci$|github$).*|__pycache__|dist|build|built|node_modules|.*\.egg-info")
"""Folders of what `.gitignore` keeps out, and of git itself."""
LINK = re.compile(r"\]\((?!https?:|mailto:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
BREAK = r"(?:\s|[#>|*](?=\s))*"  # a line may end anywhere, and the next begin as a comment or in a table
DECISION = re.compile(rf"\bdocs/decisions/(?P<path>\d{{4}})|\b[Dd]ecisions?{BREAK}(?P<plain>\d{{1,2}})\b(?!\.\d)")


@cache
def texts() -> dict[str, str]:
    """Every text file of the repository by its path, but for this one, which cites what is not there; and for what is
    made or fetched beside them."""
    found: dict[str, str] = {}
    for folder, below, files in os.walk(ROOT):
        below[:] = sorted(name for name in below if not MADE.fullmatch(name))
        for file in sorted(Path(folder) / name for name in files if name != ".git"):
            if file.is_symlink() or file == Path(__file__).resolve() or b"\0" in (body := file.read_bytes()):
                continue
            found[file.relative_to(ROOT).as_posix()] = body.decode(errors="replace")
    return found


def anchors_of(page: str) -> set[str]:
    """What a link into a page may name: its headings, as GitHub and others spell them, and its own anchors."""
    headings = re.findall(r"^#{1,6} (.+)$", page, re.MULTILINE)
    spelled = {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
    return spelled | set(re.findall(r'<a id="([^"]+)"', page))


@cache
def anchors_of_the_design() -> dict[str, set[str]]:
    """What can be cited of each page of the design."""
    return {page.name: anchors_of(page.read_text()) for page in DESIGN.glob("*.md")}


def unresolved(text: str, design: Mapping[str, set[str]]) -> list[str]:
    """Citations of pages that the design does not have, or of anchors that are not on them."""
    return [
        cited[0]
        for cited in CITATION.finditer(text)
        if cited["page"] not in design or (cited["anchor"] is not None and cited["anchor"] not in design[cited["page"]])
    ]


def test_every_citation_of_the_design_resolves() -> None:
    found = [(path, text) for path, text in texts().items() if CITATION.search(text)]
    assert len(found) > 60
    assert [(path, wrong) for path, text in found if (wrong := unresolved(text, anchors_of_the_design()))] == []


def test_nothing_cites_the_design_by_section() -> None:
    assert [f"{path}: {found[0]}" for path, text in texts().items() for found in OLD.finditer(text)] == []


def test_code_cites_rules_by_their_page() -> None:
    code = {path: text for path, text in texts().items() if path.endswith((".py", ".tf", ".sh"))}
    assert [f"{path}: {found[0]}" for path, text in code.items() for found in BARE_RULE.finditer(text)] == []


def test_each_rule_has_the_anchor_of_its_number() -> None:
    for page in DESIGN.glob("*.md"):
        rules = [(int(rule["number"]), int(rule["anchor"])) for rule in RULE.finditer(page.read_text())]
        assert rules == [(number, number) for number in range(1, len(rules) + 1)], page.name
        assert len(rules) == page.read_text().count("<a id="), page.name


def test_links_to_rules_say_their_numbers() -> None:
    links = [(path, link) for path, text in texts().items() for link in RULE_LINK.finditer(text)]
    assert len(links) > 20
    assert [f"{path}: {link[0]}" for path, link in links if link["said"] != link["anchor"]] == []


def test_nothing_points_outside_of_the_repository() -> None:
    wrong = [
        f"{path}: {text[found.start() : found.start() + 60]!r}"
        for path, text in texts().items()
        for found in OUTSIDE.finditer(text)
    ]
    assert wrong == []


def test_every_decision_that_is_cited_is_there() -> None:
    written = {int(page.name[:4]) for page in DECISIONS.glob("[0-9]*.md")}
    found = [(path, cited) for path, text in texts().items() for cited in DECISION.finditer(text)]
    assert len(found) > 30
    assert [f"{path}: {cited[0]}" for path, cited in found if int(cited["path"] or cited["plain"]) not in written] == []


def leads_somewhere(page: Path, link: re.Match[str]) -> bool:
    """Whether a link of this page leads to a file of the repository, and to a part of it that is there."""
    target = (page.parent / link["path"]).resolve() if link["path"] else page
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return link["anchor"] is None or link["anchor"] in anchors_of(target.read_text())


def test_links_between_pages_lead_somewhere() -> None:
    pages = {path: text for path, text in texts().items() if path.endswith(".md")}
    links = [(path, link) for path, text in pages.items() for link in LINK.finditer(text)]
    assert len(links) > 20
    assert [f"{path}: {link[0]}" for path, link in links if not leads_somewhere(ROOT / path, link)] == []


PLANTED = {"commit.md": {"rule-1", "evidence"}}


@pytest.mark.parametrize(
    "text", ["docs/design/commit.md", "(docs/design/commit.md#rule-1,\ndocs/design/commit.md#evidence)."]
)
def test_a_citation_of_what_is_there_resolves(text: str) -> None:
    assert CITATION.search(text)
    assert unresolved(text, PLANTED) == []


@pytest.mark.parametrize(
    "text", ["docs/design/commits.md", "docs/design/commit.md#rule-11", "docs/design/commit#rule-1"]
)
def test_a_citation_of_what_is_not_there_is_found(text: str) -> None:
    assert unresolved(f"as ({text}) says.", PLANTED) == [text]


@pytest.mark.parametrize(
    "text", ["design.md 6.2, rule 5", "(section 8 of docs/design.md)", "Design.md", "docs/protocols.md"]
)
def test_a_citation_of_a_page_of_old_is_found(text: str) -> None:
    assert OLD.search(text)


@pytest.mark.parametrize("text", ["(rule 4)", "Rules 1 and 5", "no call later (rule\n    # 5)"])
def test_a_rule_without_its_page_is_found(text: str) -> None:
    assert BARE_RULE.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "shared/specs/x.yaml",
        "../shared/design.md",
        "see notes/limits.md",
        "seeds/004.txt",
        "seed 004, section 2",
        "design/planning.md",
    ],
)
def test_a_path_that_leads_outside_is_found(text: str) -> None:
    assert OUTSIDE.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "arco_catalog/shared/x",
        "release notes",
        "--seed 7",
        "seed 100000",
        "docs/design/store.md",
        "](../design/commit.md)",
    ],
)
def test_a_path_that_stays_inside_is_not(text: str) -> None:
    assert not OUTSIDE.search(text)
