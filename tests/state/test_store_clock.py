"""A machine's clock is believed as far as the store's answers let it be right."""

import pytest

from arco_catalog.state.store_clock import PRECISION_MS, StoreClock

NOW = 1_767_225_600_000


@pytest.mark.parametrize(
    ("sent_ms", "received_ms", "store_ms", "now_ms"),
    [
        pytest.param(NOW, NOW + 20, NOW + 10, NOW, id="right"),
        pytest.param(NOW, NOW + 20_000, NOW + 100, NOW, id="right, and a slow answer"),
        pytest.param(NOW + 999, NOW + 999, NOW, NOW, id="right, and whole seconds"),
        pytest.param(NOW + 600_000, NOW + 600_000, NOW, NOW - 600_000 + PRECISION_MS, id="ahead"),
        pytest.param(NOW - 600_000, NOW - 600_000, NOW, NOW + 600_000, id="behind"),
        pytest.param(NOW - 600_000, NOW - 580_000, NOW, NOW + 580_000, id="behind, as far as a slow answer shows"),
    ],
)
def test_the_time_is_the_machines_but_for_what_the_store_proves_wrong(
    sent_ms: int, received_ms: int, store_ms: int, now_ms: int
) -> None:
    clock = StoreClock()
    assert clock.now_ms(NOW) == NOW

    clock.update(sent_ms, received_ms, store_ms)

    assert clock.now_ms(NOW) == now_ms


def test_a_clock_that_was_set_right_is_believed_again() -> None:
    clock = StoreClock()
    clock.update(NOW + 600_000, NOW + 600_000, NOW)

    clock.update(NOW, NOW, NOW)

    assert clock.now_ms(NOW) == NOW
