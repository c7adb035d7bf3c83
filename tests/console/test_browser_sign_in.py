"""People sign in to the console at real issuers, in Chromium: what they see, and what attackers try
(console/browser/sign-in.test.mjs)."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.console.chromium import needs_chromium, play, scenarios_in
from tests.console.people_lake import served_people

FILE = "sign-in.test.mjs"
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What went wrong in each scenario."""
    return asyncio.run(_play(tmp_path_factory.mktemp("people")))


async def _play(folder: Path) -> Mapping[str, str]:
    async with served_people(folder) as lake:
        return await play(FILE, lake.settings)


@pytest.mark.parametrize("scenario", scenarios_in(FILE))
def test_in_chromium(scenario: str, outcomes: Mapping[str, str]) -> None:
    assert not outcomes[scenario], outcomes[scenario]
