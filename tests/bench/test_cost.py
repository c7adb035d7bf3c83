"""What a request costs is what it was counted to use, times its price."""

import pytest

from tools.bench.cost import ALARM_METRICS, RUNS_A_MONTH, Site, Usage, idle_month, idle_runs, quiet_metrics, usage
from tools.bench.prices import (
    AZURE,
    CLOUD_RUN,
    CONTAINER_APPS,
    DEPLOYMENTS,
    FUNCTIONS,
    GCS,
    MILLION,
    ON_AZURE_CONTAINERS,
    ON_AZURE_FUNCTIONS,
    ON_GCS,
    ON_S3,
    S3,
    S3_EXPRESS,
    SMALL_SERVICE,
)


def test_a_million_requests_are_billed_item_by_item() -> None:
    used = Usage("load", puts=6, gets=1, depth=3, read=0, written=0, cpu_ms=0)

    assert used.store_dollars(S3) * MILLION == pytest.approx(6 * 5 + 0.4)
    assert used.billed_ms(ON_S3) == pytest.approx(3 * S3.step_ms)
    # Requests 0.20, the gateway 1.00, 2 KB of logs 0.95, and 0.204 s of one GB.
    assert used.compute_dollars(ON_S3) * MILLION == pytest.approx(0.20 + 0.954 + 0.204 * 13.3334, abs=0.01)
    assert used.dollars(ON_S3) * MILLION == pytest.approx(30.4 + 0.20 + 0.954 + 2.72 + 1.00, abs=0.01)


def test_bytes_cost_on_express_alone() -> None:
    used = Usage("load", puts=0, gets=0, depth=1, read=1 << 30, written=1 << 30, cpu_ms=0)

    assert used.store_dollars(S3) == 0
    assert used.store_dollars(S3_EXPRESS) == pytest.approx(0.0032 + 0.0006)


def test_less_memory_than_a_whole_cpu_stretches_the_cpu_time() -> None:
    used = Usage("load", puts=0, gets=0, depth=0, read=0, written=0, cpu_ms=10)

    assert used.billed_ms(ON_S3) == 18  # 10 ms at 1,024 of the 1,769 MB that buy a CPU, in whole milliseconds


def test_time_is_billed_in_the_steps_of_each_cloud() -> None:
    assert [CLOUD_RUN.billed_ms(waited, 0) for waited in (0, 68, 101)] == [100, 100, 200]
    assert [FUNCTIONS.billed_ms(waited, 0) for waited in (1, 1_000, 1_001)] == [1_000, 1_000, 1_100]
    assert CONTAINER_APPS.billed_ms(900, 60) == 2_000  # half a CPU takes 120 ms for 60


def test_a_compare_and_swap_waits_for_longer_than_other_calls() -> None:
    used = Usage("commit", puts=6, gets=1, depth=3, read=0, written=0, cpu_ms=0, swaps=1)

    assert used.billed_ms(ON_GCS) == 900  # 2 * 68 + 700, in steps of 100
    assert used.billed_ms(ON_AZURE_FUNCTIONS) == 1_000
    assert used.billed_ms(ON_S3) == 3 * 68


def test_a_million_requests_elsewhere_are_billed_item_by_item() -> None:
    used = Usage("commit", puts=6, gets=1, depth=3, read=0, written=0, cpu_ms=0, swaps=1)

    assert used.store_dollars(GCS) * MILLION == pytest.approx(6 * 5 + 0.4)
    # Requests 0.40, 2 KB of logs 0.95, and 0.9 s of one CPU and one GB.
    assert used.dollars(ON_GCS) * MILLION == pytest.approx(30.4 + 0.40 + 0.954 + 0.9 * 26.5, abs=0.01)
    assert used.store_dollars(AZURE) * MILLION == pytest.approx(6 * 6.5 + 0.5)
    # 2 KB of logs 4.39, and a second of 2 GB, the least that is billed.
    assert used.dollars(ON_AZURE_FUNCTIONS) * MILLION == pytest.approx(39.5 + 0.40 + 4.387 + 52.0, abs=0.01)
    assert used.dollars(ON_AZURE_CONTAINERS) * MILLION == pytest.approx(39.5 + 0.40 + 4.387 + 15.0, abs=0.01)


async def test_requests_are_counted_through_the_app() -> None:
    load = await usage("load", Site.load, warm=True)
    commit = await usage("commit", Site.commit, warm=True)

    assert (load.puts, load.gets, load.depth) == (0, 2, 1)
    assert (commit.puts + commit.gets, commit.depth, commit.swaps) == (7, 3, 1)
    assert commit.cpu_ms > 0


def test_an_idle_month_costs_less_than_a_service_that_must_stay_up() -> None:
    runs = dict.fromkeys(RUNS_A_MONTH, Usage("run", puts=1, gets=17, depth=18, read=100_000, written=0, cpu_ms=30))

    items = idle_month(runs, 1 << 30, ON_S3)

    assert items["alarms"] == pytest.approx(ALARM_METRICS * 0.10)
    assert items["state"] == pytest.approx(0.023)
    for deployment in DEPLOYMENTS:
        assert 0 < sum(idle_month(runs, 1 << 30, deployment).values()) < 10
    assert idle_month(runs, 1 << 30, ON_GCS)["schedule"] == pytest.approx(0.30)
    assert sum(item.a_month for item in SMALL_SERVICE) == pytest.approx(44.82, abs=0.01)


def test_a_quiet_catalog_pays_for_three_metrics_of_each_hour_and_three_of_one_hour_a_day() -> None:
    assert quiet_metrics() == pytest.approx(3 + 3 / 24)


async def test_each_idle_run_pays_for_the_probe_that_it_begins_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.bench.cost.IDLE_TABLES", 3)

    runs, _ = await idle_runs()

    probe = 5  # what it writes, or tries to
    assert runs["tasks"].puts == 2 + probe  # LISTs: of realms, and of tasks that are due
    assert runs["reconcile"].puts == 2 + probe
    assert runs["collect"].puts > runs["tasks"].puts  # one LIST a prefix
