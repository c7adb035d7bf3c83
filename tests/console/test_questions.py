"""Ten questions about a catalog, each answered from the console in at most four clicks
(console/browser/questions.test.mjs)."""

from collections.abc import Mapping

import pytest

from tests.console.chromium import needs_chromium, play_at, scenarios_in
from tests.console.question_lake import served_questions

FILE = "questions.test.mjs"
pytestmark = needs_chromium


@pytest.fixture(scope="module", params=[1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What went wrong in each scenario, at the catalog of a seed."""
    return play_at(served_questions(tmp_path_factory.mktemp("questions"), request.param), FILE)


@pytest.mark.parametrize("scenario", scenarios_in(FILE))
def test_is_answered(scenario: str, outcomes: Mapping[str, str]) -> None:
    assert not outcomes[scenario], outcomes[scenario]
