"""Appends to one table by writers of several servers at once: none waits for long behind those of another server. Times
are those of the simulated world, so a run is repeatable."""

import pytest

from arco_catalog.protocol import pointer_turns
from tests.simulation.append_contention import contend


def test_one_server_makes_twenty_rebased_appends_a_second_also_of_long_metadata() -> None:
    result = contend(1, 16, seconds=12.0)

    assert not result.errors
    assert result.conflicts == 0
    assert result.per_second > 23
    assert result.quantile(1.0) < 0.9
    assert result.calls_per_change <= 13.1


@pytest.mark.parametrize(
    ("servers", "writers", "a_second", "worst_s", "calls"),
    [(2, 1, 13.0, 1.6, 14), (2, 8, 20.0, 2.4, 16), (4, 4, 17.0, 4.2, 22), (12, 1, 10.0, 5.0, 44)],
)
def test_writers_of_several_servers_take_turns(
    servers: int, writers: int, a_second: float, worst_s: float, calls: float
) -> None:
    result = contend(servers, writers, seconds=10.0)

    assert not result.errors
    assert result.per_second > a_second
    assert result.quantile(1.0) < worst_s
    assert result.calls_per_change <= calls


def test_without_turns_one_server_starves_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointer_turns, "LOSSES", 1_000)
    assert contend(2, 1, seconds=8.0).quantile(1.0) > 4.0


@pytest.mark.parametrize(("servers", "transactions", "worst_s"), [(1, 1, 2.0), (4, 2, 5.0), (0, 8, 8.0)])
def test_transactions_take_turns(servers: int, transactions: int, worst_s: float) -> None:
    result = contend(servers, 1, seconds=10.0, transactions=transactions)

    assert not result.errors
    assert len(result.beside_s) > 10
    assert max(result.beside_s) < worst_s


def test_without_turns_one_writer_starves_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointer_turns, "LOSSES", 1_000)
    assert max(contend(1, 1, seconds=5.0, transactions=1).beside_s) > 4.0


def test_conflicts_are_counted_where_appends_are_not_rebased() -> None:
    result = contend(2, 2, seconds=2.0, rebase=False)

    assert result.conflicts > 0
    assert str(result).split()[6:8] == [str(result.conflicts), str(result.errors.total())]
