"""Changes of one registry by many processes at once: in a registry with proposals none of them waits long or fails, and
a change costs a bounded number of calls. Times are those of the simulated world, so a run is repeatable."""

import logging

import pytest

from tests.simulation.contention import BESIDE, contend


@pytest.fixture(autouse=True)
def no_warnings_about_dropped_writes() -> None:
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)


@pytest.mark.parametrize(("processes", "worst_s", "calls"), [(1, 0.1, 10.1), (2, 0.4, 17), (12, 0.5, 21)])
def test_creates_of_several_processes_share_registry_commits(processes: int, worst_s: float, calls: float) -> None:
    """Also where a commit object is whole again, at least one of 64."""
    result = contend(processes, 1, seconds=10.0)

    assert not result.errors
    assert result.quantile(1.0) < worst_s
    assert result.calls_per_change <= calls


def test_mixed_changes_of_several_processes_share_registry_commits() -> None:
    result = contend(8, 2, seconds=3.0, is_mixed=True)

    assert not result.errors
    assert result.quantile(1.0) < 1.0
    assert result.calls_per_change <= 22


@pytest.mark.parametrize(("work", "worst_s"), [("transaction", 1.0), ("location", 1.3), ("cancellation", 0.6)])
def test_work_beside_creates_neither_waits_long_nor_makes_them_wait(work: str, worst_s: float) -> None:
    """It takes one registry commit (a cancellation) to three (a location that replaces another), one after the
    other."""
    result = contend(12, 1, seconds=4.0, beside=BESIDE[work])

    assert not result.errors
    assert max(result.beside_s) < worst_s
    assert result.quantile(1.0) < 0.6
    assert result.per_second > 35


def test_without_proposals_one_process_starves_another() -> None:
    assert contend(2, 1, seconds=5.0, with_proposals=False).quantile(1.0) > 2.0


@pytest.mark.parametrize("clients", [1, 2])
def test_where_an_object_takes_one_write_a_second_changes_share_it_and_one_process_swaps(clients: int) -> None:
    result = contend(16, clients, seconds=10.0, one_write_a_second=True)

    assert not result.errors
    assert result.per_second > 12 * clients
    assert result.quantile(1.0) < 1.5
    assert result.swaps / result.seconds <= 3


def test_where_the_store_shows_only_by_refusals_that_it_takes_one_write_a_second_no_change_starves() -> None:
    result = contend(16, 1, seconds=10.0, one_write_a_second=True, url="memory:///")

    assert not result.errors
    assert result.per_second > 8
    assert result.quantile(1.0) < 5.0
