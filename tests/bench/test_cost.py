"""What a request costs is what it was counted to use, times its price."""

import pytest

from tools.bench.cost import ALARMS, MILLION, WALK_METRICS, Site, Usage, idle_month, idle_walk, usage
from tools.bench.prices import S3, S3_EXPRESS, SMALL_SERVICE


def test_a_million_requests_are_billed_item_by_item() -> None:
    used = Usage("load", puts=6, gets=1, depth=3, read=0, written=0, cpu_ms=0)

    assert used.store_dollars(S3) * MILLION == pytest.approx(6 * 5 + 0.4)
    assert used.lambda_ms(S3) == pytest.approx(3 * S3.step_ms)
    # Requests 0.20, the gateway 1.00, 2 KB of logs 0.95, and 0.204 s of one GB.
    assert used.compute_dollars(S3) * MILLION == pytest.approx(0.20 + 0.954 + 0.204 * 13.3334, abs=0.01)
    assert used.dollars(S3) * MILLION == pytest.approx(30.4 + 0.20 + 0.954 + 2.72 + 1.00, abs=0.01)


def test_bytes_cost_on_express_alone() -> None:
    used = Usage("load", puts=0, gets=0, depth=1, read=1 << 30, written=1 << 30, cpu_ms=0)

    assert used.store_dollars(S3) == 0
    assert used.store_dollars(S3_EXPRESS) == pytest.approx(0.0032 + 0.0006)


def test_less_memory_than_a_whole_cpu_stretches_the_cpu_time() -> None:
    used = Usage("load", puts=0, gets=0, depth=0, read=0, written=0, cpu_ms=10)

    assert used.lambda_ms(S3) == pytest.approx(10 * 1769 / 1024)


async def test_requests_are_counted_through_the_app() -> None:
    load = await usage("load", Site.load, warm=True)
    commit = await usage("commit", Site.commit, warm=True)

    assert (load.puts, load.gets, load.depth) == (0, 3, 1)
    assert (commit.puts + commit.gets, commit.depth) == (7, 3)
    assert commit.cpu_ms > 0


def test_an_idle_month_costs_less_than_a_service_that_must_stay_up() -> None:
    walk = Usage("walk", puts=1, gets=17, depth=18, read=100_000, written=0, cpu_ms=30)

    items = idle_month(walk, 1 << 30, S3)

    assert items["alarms"] == pytest.approx(ALARMS * 0.10)
    assert items["state"] == pytest.approx(0.023)
    assert sum(items.values()) < 10
    assert sum(item.a_month for item in SMALL_SERVICE) == pytest.approx(44.82, abs=0.01)


async def test_an_idle_walk_pays_for_the_probe_that_each_run_begins_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.bench.cost.IDLE_TABLES", 3)

    walk, _ = await idle_walk()

    assert walk.puts == 1 + 5  # a LIST, and what the probe writes or tries to
    assert WALK_METRICS == 4
