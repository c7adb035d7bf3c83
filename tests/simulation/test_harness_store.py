"""What the simulated store does where the contract leaves it free: orders, versions, and who comes first."""

import asyncio
import re
from collections import Counter
from typing import cast

import pytest

from storage_backends import ABSENT, ANY, Applied, Matches, ObjectStore
from tests.simulation.bucket import Bucket, Versions, digest, generation
from tests.simulation.explore import Scenario, trace
from tests.simulation.loop import SimulatedLoop
from tests.simulation.world import World

KEY = "a/key"


@pytest.fixture
async def store() -> ObjectStore:
    return World(cast(SimulatedLoop, asyncio.get_running_loop())).handle("p1")


async def put(store: ObjectStore, key: str) -> None:
    """Writes whatever is there."""
    assert isinstance(await store.put(key, b"x", ANY), Applied)


class TestListings:
    async def test_a_listing_has_every_object_once_in_pages_of_no_order(self, store: ObjectStore) -> None:
        keys = [f"in/{number:02}" for number in range(12)]
        for key in (*keys, "other"):
            await put(store, key)

        pages = [await store.list("in/")]
        while pages[-1].after is not None:
            pages.append(await store.list("in/", pages[-1].after))

        assert [len(page.entries) for page in pages] == [5, 5, 2]
        listed = [entry.key for page in pages for entry in page.entries]
        assert sorted(listed) == keys
        assert listed != keys

    async def test_a_page_goes_on_where_it_stopped_although_objects_come_and_go(self, store: ObjectStore) -> None:
        keys = {f"in/{number:02}" for number in range(12)}
        for key in sorted(keys):
            await put(store, key)

        page = await store.list("in/")
        seen = {entry.key for entry in page.entries}
        await store.delete(page.entries[-1].key)
        await put(store, "in/new")
        while page.after is not None:
            page = await store.list("in/", page.after)
            assert not seen & {entry.key for entry in page.entries}
            seen |= {entry.key for entry in page.entries}

        assert keys <= seen


@pytest.mark.parametrize(("versions", "comes_back"), [(digest, True), (generation, False)])
def test_an_old_version_is_valid_again_when_its_bytes_come_back(versions: Versions, comes_back: bool) -> None:
    bucket = Bucket(lambda: 0, versions)
    first = bucket.put(KEY, b"on", ABSENT)
    assert isinstance(first, Applied)
    bucket.put(KEY, b"off", ANY)
    bucket.put(KEY, b"on", ANY)
    assert isinstance(bucket.put(KEY, b"broken", Matches(first.version)), Applied) is comes_back


class TestInterleaving:
    """Seeds reach every order in which calls can land."""

    @staticmethod
    def landings(world: World) -> str:
        return "".join(event.process for event in world.history if event.step == "lands")

    def test_every_order_of_two_processes_with_three_calls_each_is_reached(self) -> None:
        orders = Counter(self.landings(trace(one_after_the_other(3), seed)) for seed in range(1_000))
        assert len(orders) == 20  # six over three

    def test_one_process_can_do_all_its_work_between_two_calls_of_another(self) -> None:
        orders = [self.landings(trace(one_after_the_other(12), seed)) for seed in range(600)]
        in_the_middle = re.compile("a{3,}b{12}a{3,}|b{3,}a{12}b{3,}")
        assert any(map(in_the_middle.fullmatch, orders))

    def test_calls_beside_each_other_land_in_any_order(self) -> None:
        async def beside_each_other(world: World) -> None:
            await asyncio.gather(*(put(world.handle("p1"), key) for key in "abc"))

        orders = {
            "".join(event.key for event in trace(beside_each_other, seed).history if event.step == "lands")
            for seed in range(200)
        }
        assert len(orders) == 6


def one_after_the_other(calls: int) -> Scenario:
    """Two processes beside each other, each making its calls in sequence."""

    async def work(store: ObjectStore) -> None:
        for _ in range(calls):
            await store.get(KEY)

    async def scenario(world: World) -> None:
        await asyncio.gather(work(world.handle("a")), work(world.handle("b")))

    return scenario
