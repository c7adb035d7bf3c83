"""What `make bench-appends` measures, in short runs without delay."""

import pytest

from tools.bench.appends import measure


@pytest.mark.parametrize("servers", [1, 2])
async def test_appends_conflicts_and_calls_are_counted(servers: int) -> None:
    found = await measure(servers, writers=3, seconds=0.2, delay_ms=0)

    assert found.durations
    assert found.calls >= 5 * len(found.durations)
    assert found.seconds >= 0.2
    assert found.row(servers).count("|") == 7


@pytest.mark.parametrize("servers", [1, 2])
async def test_rebased_appends_meet_no_conflict(servers: int) -> None:
    found = await measure(servers, writers=3, seconds=0.2, delay_ms=0, rebase=True)

    assert found.durations
    assert (found.conflicts, found.given_up) == (0, 0)
