"""The console in Chromium, at a real server: what people do with it (console/browser/scenarios.test.mjs)."""

from collections.abc import Mapping

import pytest

from tests.console.chromium import needs_chromium, play_at, scenarios_in
from tests.console.lake import served_lake

FILE = "scenarios.test.mjs"
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What went wrong in each scenario."""
    return play_at(served_lake(tmp_path_factory.mktemp("console")), FILE)


@pytest.mark.parametrize("scenario", scenarios_in(FILE))
def test_in_chromium(scenario: str, outcomes: Mapping[str, str]) -> None:
    assert not outcomes[scenario], outcomes[scenario]
