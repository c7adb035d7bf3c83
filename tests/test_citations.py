"""Whatever the repository cites is in the repository: sections and rules of docs/design.md, decisions, and files that
its pages link to. What lies beside a checkout is cited nowhere, since nobody else has it."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DESIGN = ROOT / "docs/design.md"
DECISIONS = ROOT / "docs/decisions"

NUMBER = r"\d{1,2}(?:\.\d{1,2})?(?![\w.]*\d)"
BREAK = r"(?:\s|[#>|*](?=\s))*"  # a line may end anywhere, and the next begin as a comment or in a table
JOINED = rf"{BREAK}(?:,|;|and|to|or|-|/){BREAK}"
RULES = rf"(?:{BREAK},?{BREAK}rules?{BREAK}(?P<rules>\d+(?:{JOINED}\d+(?!\.?\d))*))"
NAME = rf"(?:{BREAK},{BREAK}[\"“](?P<name>[^\"”]+)[\"”])"
PLACE = re.compile(rf"(?:sections?{BREAK})?(?P<section>{NUMBER})(?:{RULES}|{NAME})?", re.IGNORECASE)
FILE = re.compile(rf"design\.md[`*)\]]*{BREAK}[,(]?{BREAK}", re.IGNORECASE)
BACKWARDS = re.compile(
    rf"sections?{BREAK}(?P<section>{NUMBER}){BREAK}of{BREAK}[`*\[]*(?:docs/)?design\.md", re.IGNORECASE
)

OUTSIDE = re.compile(
    r"(?<![\w./-])(?:\.\./)*(?:shared|notes|seeds|repro)/[\w*{]"
    r"|\bdesign/\w+\.md"
    r"|\b(?:faults|limits|naming|iceberg-semantics|seed-requirements)\.md"
    r"|\b[Ss]eeds? 0\d\d\b"
)
MADE = re.compile(r"\.(?!ci$|github$).*|__pycache__|dist|build|.*\.egg-info")
"""Folders of what `.gitignore` keeps out, and of git itself."""
LINK = re.compile(r"\]\((?!https?:|mailto:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
DECISION = re.compile(rf"\bdocs/decisions/(?P<path>\d{{4}})|\b[Dd]ecisions?{BREAK}(?P<plain>\d{{1,2}})\b(?!\.\d)")


@dataclass(frozen=True)
class Citation:
    """A section of the design, and one of its rules or named parts, if it says which."""

    section: str
    rule: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Design:
    """What can be cited of a page: numbered headings, `rule-N` anchors, and names of parts by section."""

    sections: frozenset[str]
    rules: frozenset[tuple[str, str]]
    names: frozenset[tuple[str, str]]

    def has(self, cited: Citation) -> bool:
        if cited.rule is not None and (cited.section, cited.rule) not in self.rules:
            return False
        if cited.name is not None and (cited.section, cited.name) not in self.names:
            return False
        return cited.section in self.sections


def parts_of(page: str) -> Design:
    """Reads a page. A part without a number belongs to the numbered heading before it."""
    sections, rules, names = set[str](), set[tuple[str, str]](), set[tuple[str, str]]()
    section = ""
    for line in page.splitlines():
        if heading := re.match(r"#{2,4} (?:(\d+(?:\.\d+)?)\.? )?(.+)", line):
            section = heading[1] or section
            sections.add(section)
            names.add((section, heading[2]))
        rules |= {(section, rule) for rule in re.findall(r'<a id="rule-(\d+)">', line)}
    return Design(frozenset(sections), frozenset(rules), frozenset(names))


def citations_in(text: str) -> Iterator[Citation]:
    """Every section that a text cites of the design, however it is written."""
    for backwards in BACKWARDS.finditer(text):
        yield Citation(backwards["section"])
    for mention in FILE.finditer(text):
        place = PLACE.match(text, mention.end())
        while place is not None:
            rules = re.findall(r"\d+", place["rules"] or "")
            yield Citation(place["section"], name=place["name"])
            yield from (Citation(place["section"], rule=rule) for rule in rules)
            joined = re.compile(JOINED).match(text, place.end())
            place = None if joined is None else PLACE.match(text, joined.end())


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


def test_every_citation_of_the_design_resolves() -> None:
    design = parts_of(DESIGN.read_text())
    cited = {path: [*citations_in(text)] for path, text in texts().items()}
    assert sum(map(len, cited.values())) > 80
    wrong = [f"{path}: {one}" for path, found in cited.items() for one in found if not design.has(one)]
    assert wrong == []


def test_code_cites_the_design_by_section() -> None:
    """Whoever only names the page leaves its reader to search."""
    vague = [
        f"{path}: {text[mention.start() : mention.start() + 60]!r}"
        for path, text in texts().items()
        if path.endswith((".py", ".tf", ".sh"))
        for mention in FILE.finditer(text)
        if PLACE.match(text, mention.end()) is None and not BACKWARDS.search(text[: mention.end()].splitlines()[-1])
    ]
    assert vague == []


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("design.md 6.2", ["6.2"]),
        ("(design.md, section 6.4)", ["6.4"]),
        ("design.md, 6.2; table spec", ["6.2"]),
        ("design.md, 6.2,\n    rule 5)", ["6.2", "6.2 rule 5"]),
        ("(design.md 6.2 rule 2, 6.3)", ["6.2", "6.2 rule 2", "6.3"]),
        ("Design.md 6.2, rules 1 and 5 are about this", ["6.2", "6.2 rule 1", "6.2 rule 5"]),
        ("design.md 6.1 to 6.5", ["6.1", "6.5"]),
        ("design.md 5 and 6.6", ["5", "6.6"]),
        ("# (design.md,\n# section 8)", ["8"]),
        ('design.md 5, "Registry"; docs/decisions', ["5 Registry"]),
        ("(section 8 of design.md)", ["8"]),
        ("[design.md](../design.md) 6.7 lets plans move", ["6.7"]),
        ("design.md 5: Commits 12 and 13", ["5"]),
        ("`design.md` is the architecture", []),
    ],
)
def test_citations_are_found_however_they_are_written(text: str, expected: list[str]) -> None:
    found = [*citations_in(text)]
    written = [one.section + (f" rule {one.rule}" if one.rule else f" {one.name}" if one.name else "") for one in found]
    assert list(dict.fromkeys(written)) == expected


def test_a_citation_of_what_is_not_there_is_found() -> None:
    page = parts_of('## 6. Protocols\n### 6.2 Commit\n1. <a id="rule-1"></a>Order\n## 5. State\n### Entities\n')
    assert page.has(Citation("6.2", rule="1"))
    assert page.has(Citation("5", name="Entities"))
    wrong = (Citation("6.3"), Citation("6.2", rule="2"), Citation("5", rule="1"), Citation("5", name="Registry"))
    assert not any(page.has(one) for one in wrong)


@pytest.mark.parametrize(
    "text",
    [
        "shared/specs/x.yaml",
        "../shared/design.md",
        "see notes/limits.md",
        "seeds/004.txt",
        "seed 004, section 2",
        "design/tasks.md",
    ],
)
def test_a_path_that_leads_outside_is_found(text: str) -> None:
    assert OUTSIDE.search(text)


@pytest.mark.parametrize(
    "text", ["arco_catalog/shared/x", "release notes", "--seed 7", "seed 100000", "docs/design.md"]
)
def test_a_path_that_stays_inside_is_not(text: str) -> None:
    assert not OUTSIDE.search(text)
