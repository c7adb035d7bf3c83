"""`make test-prove`: what docs/prove.md states of other catalogs is found at them, and shown by the replays there."""

import asyncio
from pathlib import Path

import pytest

from arco_catalog.prove.campaign import Campaign, CampaignOptions, CampaignReport, open_campaign
from arco_catalog.prove.replay_file import decode
from tests.prove.nessie import RUNNER, nessie
from tests.prove.test_shapes import SECONDS, bucket, summary
from tools.bench.peers.servers import reference
from tools.support.environment import PROJECT
from tools.support.s3_servers import versitygw

pytestmark = pytest.mark.slow
REPLAYS = PROJECT / "docs" / "prove"


@pytest.mark.needs(".jars/reference-server/complete")
def test_the_reference_server_loses_transactions(tmp_path: Path) -> None:
    with reference(f"file://{tmp_path}/reference", tmp_path, {}, {}) as server:
        assert search(server.uri).findings
        assert shown(server.uri, "iceberg-1.11.0-transaction.json") >= 15
        assert shown(server.uri, "iceberg-1.11.0-renamed.json") >= 15


@pytest.mark.needs(f".jars/{RUNNER.name}", ".tools/versitygw")
def test_nessie_replaces_the_first_commit_of_a_table(tmp_path: Path) -> None:
    with versitygw() as store:
        bucket(store)
        with nessie(store, "prove") as uri:
            assert search(uri).findings
            assert shown(uri, "nessie-0.99.0-first-commit.json") >= 15


def search(uri: str) -> CampaignReport:
    """Tests a catalog until the first finding, and prints the counts."""
    reports: list[CampaignReport] = []

    async def use(campaign: Campaign) -> None:
        reports.append(await campaign.run(lambda _: None))

    asyncio.run(open_campaign(CampaignOptions([uri], seconds=SECONDS), use))
    print(summary(reports[0]))
    return reports[0]


def shown(uri: str, name: str) -> int:
    """Returns in how many of 20 tries a replay of docs/prove shows what it is to show; prints it."""
    replay = decode((REPLAYS / name).read_text())
    tries: list[bool] = []

    async def use(campaign: Campaign) -> None:
        tries.extend([await campaign.reproduces(replay) for _ in range(20)])
        print(f"{name}: {sum(tries)} of 20 tries, {campaign.report.programs} runs")

    asyncio.run(open_campaign(CampaignOptions([uri]), use))
    return sum(tries)
