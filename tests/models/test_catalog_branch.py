"""The model of a branch of a catalog keeps every file and every commit, and loses one as soon as a rule is left out
(docs/design/branches.md)."""

from dataclasses import replace

import pytest

from tests.models.catalog_branch import CatalogBranch, Rules, Scenario
from tests.models.checker import explore

MAX_STATES = 3_000_000
SMALL = (
    Scenario(removals=1),
    Scenario(appends=2, removals=1, branch_appends=0),
    Scenario(appends=2, orphans=1, branch_appends=0),
    Scenario(promotions=1),
    Scenario(branch_appends=2, promotions=1, orphans=1),
)
LARGE = (
    Scenario(appends=2, removals=2, branch_appends=1, promotions=1, orphans=1),
    Scenario(appends=3, removals=1, branch_appends=1, orphans=2),
    Scenario(appends=1, removals=1, branch_appends=2, promotions=2, orphans=1),
)
KEEPS_ALL = Rules()
BRANCH, MAIN, LOST = "a file of the branch is deleted", "a file of main is deleted", "a commit to main is lost"
LEFT_OUT = {
    "announced before the cut": (replace(KEEPS_ALL, announces=False, waits=False), Scenario(0, 1, 0), BRANCH),
    "the cut waits": (replace(KEEPS_ALL, waits=False), Scenario(0, 1, 0), BRANCH),
    "removals are refused": (replace(KEEPS_ALL, refuses_removals=False), Scenario(0, 1, 0), BRANCH),
    "the base stays in the log": (replace(KEEPS_ALL, keeps_base_in_log=False), Scenario(2, 0, 0, orphans=1), BRANCH),
    "the log is whole until the list": (
        replace(KEEPS_ALL, keeps_log_while_announced=False),
        Scenario(2, 0, 0, orphans=1),
        BRANCH,
    ),
    "own locations": (replace(KEEPS_ALL, has_own_location=False), Scenario(0, 0, 1, orphans=1), BRANCH),
    "promotions compare main": (replace(KEEPS_ALL, compares_main=False), Scenario(1, 0, 1, 1), LOST),
    "closed before the collection": (replace(KEEPS_ALL, closes_first=False), Scenario(0, 0, 1, 1), MAIN),
    "promoted files stay": (replace(KEEPS_ALL, keeps_promoted=False), Scenario(0, 0, 1, 1), MAIN),
}


@pytest.mark.parametrize("scenario", SMALL, ids=str)
def test_a_branch_and_main_keep_their_files_and_commits(scenario: Scenario) -> None:
    assert explore(CatalogBranch(scenario), MAX_STATES).violation is None


@pytest.mark.slow
@pytest.mark.parametrize("scenario", LARGE, ids=str)
def test_a_branch_and_main_keep_their_files_and_commits_in_larger_scenarios(scenario: Scenario) -> None:
    assert explore(CatalogBranch(scenario), MAX_STATES).violation is None


@pytest.mark.parametrize(("rules", "scenario", "violation"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_each_rule_that_is_left_out_loses_a_file_or_a_commit(rules: Rules, scenario: Scenario, violation: str) -> None:
    assert explore(CatalogBranch(scenario), MAX_STATES).violation is None

    found = explore(CatalogBranch(scenario, rules), MAX_STATES)

    assert found.violation == violation
    assert found.trace
