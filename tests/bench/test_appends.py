"""What `make bench-appends` measures, in a short run without delay."""

import pytest

from tools.bench.appends import measure


@pytest.mark.parametrize("servers", [1, 2])
async def test_appends_conflicts_and_calls_are_counted(servers: int) -> None:
    found = await measure(servers, writers=3, seconds=0.2, delay_ms=0)

    assert found.durations
    assert found.calls >= 5 * len(found.durations)
    assert found.seconds >= 0.2
    assert found.row(servers).count("|") == 7
