"""Changes from the console in Chromium, at a real server: each of them, those that are refused or lose their answers,
and the dialogs before them (console/browser)."""

import json
from collections.abc import Callable, Mapping
from functools import cache

import pytest

from arco_catalog.planning.privileges import GRANTABLE
from tests.console.changes_lake import served_changes
from tests.console.chromium import CONSOLE, needs_chromium, play_at, scenarios_in

FILES = ("changes.test.mjs", "refused-changes.test.mjs", "dialogs.test.mjs")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Mapping[str, str]]:
    """Plays a file once, at a server of its own, and returns what went wrong in each of its scenarios."""
    return cache(lambda file: play_at(served_changes(tmp_path_factory.mktemp("changes")), file))


@needs_chromium
@pytest.mark.parametrize(("file", "scenario"), [(file, each) for file in FILES for each in scenarios_in(file)])
def test_in_chromium(file: str, scenario: str, played: Callable[[str], Mapping[str, str]]) -> None:
    assert not played(file)[scenario], played(file)[scenario]


def test_the_console_offers_the_privileges_that_can_be_granted() -> None:
    offered = json.loads((CONSOLE / "src" / "privileges.json").read_text())

    assert {kind: set(privileges) for kind, privileges in offered.items()} == GRANTABLE
