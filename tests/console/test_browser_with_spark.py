"""The console in Chromium, with a table and a view that Spark wrote (console/browser/spark.test.mjs)."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.console.chromium import needs_chromium, play, scenarios_in
from tests.console.lake import Lake, served_lake
from tests.engines.spark_shell import LOCAL, spark_shell

FILE = "spark.test.mjs"
pytestmark = [needs_chromium, pytest.mark.needs("java", "mvn"), pytest.mark.slow]
STATEMENTS = (
    "CREATE TABLE sales.from_spark (id BIGINT NOT NULL, day DATE) USING iceberg PARTITIONED BY (months(day))",
    "INSERT INTO sales.from_spark VALUES (1, DATE'2026-11-01'), (2, DATE'2026-11-02'), (3, DATE'2026-11-03')",
    "ALTER TABLE sales.from_spark CREATE BRANCH audit",
    "DELETE FROM sales.from_spark WHERE id = 2",
    "ALTER TABLE sales.from_spark ADD COLUMN note STRING COMMENT 'What the shop wrote'",
    "CREATE VIEW sales.spark_view AS SELECT id FROM sales.from_spark",
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What went wrong in each scenario."""
    return asyncio.run(_play(tmp_path_factory.mktemp("console"), tmp_path_factory.mktemp("spark")))


async def _play(folder: Path, scratch: Path) -> Mapping[str, str]:
    async with served_lake(folder) as lake:
        await asyncio.to_thread(_write, lake, scratch)
        return await play(FILE, lake.settings)


def _write(lake: Lake, scratch: Path) -> None:
    uri, root = lake.server.uri, lake.root
    login = {
        "credential": f"{root.client_id}:{root.secret}",
        "scope": "PRINCIPAL_ROLE:ALL",
        "oauth2-server-uri": f"{uri}/v1/oauth/tokens",
    }
    with spark_shell({"lake": {"uri": uri, "warehouse": "arco", **LOCAL, **login}}, scratch) as sql:
        for statement in STATEMENTS:
            sql(statement)


@pytest.mark.parametrize("scenario", scenarios_in(FILE))
def test_in_chromium(scenario: str, outcomes: Mapping[str, str]) -> None:
    assert not outcomes[scenario], outcomes[scenario]
