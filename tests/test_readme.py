"""tests/README.md tells of every folder of tests, of every planted bug, and of nothing that is not there."""

import inspect
import re

from tests.simulation import (
    rule_mutations,
    rule_mutations_for_appends,
    rule_mutations_for_collections,
    rule_mutations_for_copies,
    rule_mutations_for_cuts,
    rule_mutations_for_decisions,
    rule_mutations_for_expiries,
    rule_mutations_for_feeds,
    rule_mutations_for_fences,
    rule_mutations_for_idle_processes,
    rule_mutations_for_keys,
    rule_mutations_for_polaris,
    rule_mutations_for_programs,
    rule_mutations_for_proposals,
    rule_mutations_for_purges,
    rule_mutations_for_realms,
)
from tests.simulation.access import policy_mutations
from tests.tasks import test_leases_left_out
from tests.upkeep.collection import test_collections_left_out
from tests.upkeep.purge import test_anti_join_left_out, test_inventories_left_out, test_neighbours_left_out
from tools.support.environment import PROJECT

TESTS = PROJECT / "tests"
PAGE = (TESTS / "README.md").read_text()
MAKEFILE = "".join((PROJECT / name).read_text() for name in ("Makefile", "fetch.mk", "slow.mk"))


def cells(heading: str, column: int) -> list[str]:
    """The code spans in a column of the table below a heading."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| ")]
    return [span for row in rows for span in re.findall(r"`([^`]+)`", row[column])]


def planted() -> set[str]:
    """The names of all planted bugs."""
    modules = (
        rule_mutations,
        rule_mutations_for_appends,
        rule_mutations_for_collections,
        rule_mutations_for_copies,
        rule_mutations_for_cuts,
        rule_mutations_for_decisions,
        rule_mutations_for_expiries,
        rule_mutations_for_feeds,
        rule_mutations_for_fences,
        rule_mutations_for_idle_processes,
        rule_mutations_for_keys,
        rule_mutations_for_polaris,
        rule_mutations_for_programs,
        rule_mutations_for_proposals,
        rule_mutations_for_purges,
        rule_mutations_for_realms,
        policy_mutations,
        test_anti_join_left_out,
        test_leases_left_out,
        test_inventories_left_out,
        test_neighbours_left_out,
        test_collections_left_out,
    )
    functions = [(module, *found) for module in modules for found in inspect.getmembers(module, inspect.isfunction)]
    return {
        name
        for module, name, function in functions
        if function.__module__ == module.__name__ and [*inspect.signature(function).parameters] == ["patch"]
    }


def test_every_folder_of_tests_has_a_row() -> None:
    folders = {file.parent.relative_to(TESTS).parts[0] for file in TESTS.glob("*/**/test_*.py")}
    assert sorted(cells("Rooms", 0)) == sorted(folders)


def test_every_planted_bug_stands_beside_its_rule() -> None:
    told = cells("Where each rule of the protocols is proved", 2)
    assert len(planted()) > 40
    assert {*told} == planted()  # one may stand beside several rules


def test_every_rule_of_the_design_has_a_row() -> None:
    told = set(re.findall(r"\(\.\./docs/design/([\w-]+)\.md#rule-(\d+)\)", PAGE))
    pages = (PROJECT / "docs/design").glob("*.md")
    rules = {(page.stem, rule) for page in pages for rule in re.findall(r'<a id="rule-(\d+)">', page.read_text())}
    assert len(rules) > 40
    assert told == rules


def test_every_file_that_a_rule_names_is_there() -> None:
    named = {span for span in re.findall(r"`([\w/]+\.py)`", PAGE) if "/" in span}
    assert len(named) > 25
    assert sorted(span for span in named if not (TESTS / span).exists() and not (PROJECT / span).exists()) == []


def test_every_target_that_is_named_is_one() -> None:
    named = set(re.findall(r"`make ([\w-]+)`", PAGE))
    targets = set(re.findall(r"(?m)^([a-z-]+):", MAKEFILE))
    benches = {f"bench-{path.stem}" for path in (PROJECT / "tools/bench").iterdir()}
    assert len(named) > 6
    assert named <= targets | benches


def test_every_folder_that_make_runs_by_itself_is_there() -> None:
    [listed] = re.findall(r"(?m)^PARTS := ((?:.*\\\n)*.*)$", MAKEFILE)
    folders = re.findall(r"tests/\w+", listed)
    assert len(folders) > 5
    assert all((PROJECT / folder).is_dir() for folder in folders)


def test_every_folder_that_runs_on_other_pythons_is_there() -> None:
    brief, more = re.findall(r"(?m)^(?:test-pythons: )?CORE [:+]= (.*)$", MAKEFILE)
    folders = {*brief.split(), *more.split()}
    assert {"iceberg", "state", "operations", "http"} <= folders <= {path.name for path in TESTS.iterdir()}


def test_every_test_that_is_left_out_on_another_python_is_there() -> None:
    [left_out] = re.findall(r"(?m)^LONG_ON_PYTHONS := ((?:.*\\\n)*.*)$", MAKEFILE)
    names = set(re.findall(r"\w+", left_out))
    assert len(names) > 5
    assert [name for name in sorted(names) if not [*TESTS.rglob(f"test_{name}.py")]] == []
