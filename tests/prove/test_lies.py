"""Each lie of a catalog is found; a correct catalog has none."""

import asyncio

import pytest

from arco_catalog.prove.campaign import Campaign, CampaignOptions, open_campaign
from arco_catalog.prove.findings import Breaks
from arco_catalog.prove.replay_file import decode, encode
from tests.prove.lying_catalog import Lie, LyingCatalog

SEARCH_S = 300.0
"""What the design allows for finding a lie; each is found in seconds."""
SHRINK_S = 60.0
SEEDS = 10
"""How many searches a lie may take until more is found than that the catalog is weaker than linearizable: what a reader
sees first depends on chance."""
WEAKER = {Lie.STALE_LOADS, Lie.SHOWS_HALF_TRANSACTIONS, Lie.STALE_LISTINGS, Lie.LOSES_TABLES, Lie.ALWAYS_NOT_MODIFIED}
"""Lies that break the specification only where the last reads meet them."""


@pytest.mark.parametrize("lie", Lie)
async def test_a_lie_is_found(lie: Lie) -> None:
    classes: set[Breaks] = set()

    async def find(campaign: Campaign) -> None:
        report = await campaign.run(lambda _: None)
        assert report.program is not None, report.outcomes
        classes.update(finding.breaks for finding in report.findings)

    async with LyingCatalog(lie).listening() as uri:
        for seed in range(1, SEEDS):
            await open_campaign(CampaignOptions([uri], seconds=SEARCH_S, seed=seed), find)
            if lie in WEAKER or classes - {Breaks.LINEARIZABILITY}:
                break
    assert lie in WEAKER or classes - {Breaks.LINEARIZABILITY}


@pytest.mark.slow  # `make test-prove`
@pytest.mark.parametrize("lie", Lie)
async def test_a_small_replay_of_a_lie_shows_it_again(lie: Lie) -> None:
    async def find(campaign: Campaign) -> None:
        report = await campaign.run(lambda _: None)
        assert report.program is not None
        replay = await campaign.make_replay(report.program, report.findings[0].breaks, SHRINK_S)
        before = report.programs
        shown = sum([await campaign.reproduces(replay) for _ in range(20)])
        print(
            f"{lie}: {report.program.steps} operations, {replay.program.steps} of them in {shown} of 20 tries, "
            f"which took {report.programs - before} runs"
        )
        assert decode(encode(replay)) == replay
        assert replay.program.steps < report.program.steps
        assert shown >= 15, replay

    async with LyingCatalog(lie).listening() as uri:
        await open_campaign(CampaignOptions([uri], seconds=SEARCH_S, seed=1), find)


async def test_a_correct_catalog_has_no_findings() -> None:
    async def run(campaign: Campaign) -> None:
        report = await campaign.run(lambda _: None)
        assert not report.findings
        assert report.operations >= 2000
        assert (report.undecided, report.foreign) == (0, 0)
        assert {"commit done", "transaction done", "rename done", "drop done", "create refused"} <= {*report.outcomes}

    async with LyingCatalog().listening() as uri:
        await asyncio.wait_for(open_campaign(CampaignOptions([uri], operations=2000), run), SEARCH_S)
