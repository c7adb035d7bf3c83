"""How long a worker believes in its lease (docs/design/tasks.md#rule-4)."""

import pytest

from arco_catalog.tasks.lease import Lease, LeaseLost
from tests.support.fake_runtime import FakeRuntime


class TwoClocks(FakeRuntime):
    boot = 0

    def boot_ms(self) -> int:
        return self.boot


def clocks() -> tuple[TwoClocks, Lease]:
    runtime = TwoClocks()
    return runtime, Lease.from_now(runtime, 300_000)


@pytest.mark.parametrize(("wall_ms", "boot_ms"), [(1_000, 0), (0, 1_000), (1_000, 500), (500, 1_000)])
def test_the_larger_of_two_clocks_counts(wall_ms: int, boot_ms: int) -> None:
    runtime, lease = clocks()
    runtime.ms += wall_ms
    runtime.boot = boot_ms
    assert lease.left_ms() == 300_000 - 20_000 - 1_000


def test_a_lease_ends_one_calls_time_out_early() -> None:
    runtime, lease = clocks()
    runtime.ms += 279_999
    lease.check()
    runtime.ms += 1
    with pytest.raises(LeaseLost):
        lease.check()


def test_a_wall_clock_that_went_backwards_ends_a_lease() -> None:
    runtime, lease = clocks()
    runtime.ms -= 1
    with pytest.raises(LeaseLost):
        lease.check()
