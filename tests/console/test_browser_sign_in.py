"""People sign in to the console at real issuers, in Chromium: what they see, and what attackers try
(console/browser/sign-in.test.mjs)."""

from collections.abc import Mapping

import pytest

from tests.console.chromium import needs_chromium, play_at, scenarios_in
from tests.console.people_lake import served_people

FILE = "sign-in.test.mjs"
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What went wrong in each scenario."""
    return play_at(served_people(tmp_path_factory.mktemp("people")), FILE)


@pytest.mark.parametrize("scenario", scenarios_in(FILE))
def test_in_chromium(scenario: str, outcomes: Mapping[str, str]) -> None:
    assert not outcomes[scenario], outcomes[scenario]
