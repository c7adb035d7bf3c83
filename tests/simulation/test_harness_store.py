"""Without faults, the simulated store keeps the contract of design.md section 4; latencies reach every interleaving."""

import asyncio
import re
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from storage_backends import (
    ABSENT,
    ANY,
    Applied,
    Found,
    InvalidKey,
    Matches,
    Missing,
    ObjectStore,
    Refused,
    Unchanged,
    Version,
)
from tests.simulation.bucket import Bucket, Versions, digest, generation
from tests.simulation.explore import trace
from tests.simulation.loop import SimulatedLoop
from tests.simulation.runtime import EPOCH_MS
from tests.simulation.world import World

T = TypeVar("T")
KEY = "a/key"


@pytest.fixture(params=[digest, generation])
def world(request: pytest.FixtureRequest) -> World:
    return World(SimulatedLoop(1), versions=request.param)


@pytest.fixture
def store(world: World) -> ObjectStore:
    return world.handle("p1")


async def put(store: ObjectStore, body: bytes, key: str = KEY) -> Version:
    """Writes whatever is there."""
    outcome = await store.put(key, body, ANY)
    assert isinstance(outcome, Applied)
    return outcome.version


class TestTheContract:
    def test_what_was_written_is_read(self, world: World, store: ObjectStore) -> None:
        async def main() -> None:
            version = await put(store, b"hello")
            found = await store.get(KEY)
            assert isinstance(found, Found)
            assert (found.body, found.version) == (b"hello", version)
            assert isinstance(await store.get("another"), Missing)

        world.loop.run(main())

    def test_a_second_create_is_refused(self, world: World, store: ObjectStore) -> None:
        async def main() -> None:
            first = await store.put(KEY, b"1", ABSENT)
            second = await store.put(KEY, b"2", ABSENT)
            assert isinstance(first, Applied)
            assert isinstance(second, Refused)
            assert second.version == first.version

        world.loop.run(main())
        assert world.snapshot() == {KEY: b"1"}

    def test_a_replacement_needs_the_current_version(self, world: World, store: ObjectStore) -> None:
        async def main() -> None:
            first = await put(store, b"1")
            assert isinstance(await store.put(KEY, b"2", Matches(first)), Applied)
            assert isinstance(await store.put(KEY, b"3", Matches(first)), Refused)
            missing = await store.put("another", b"4", Matches(first))
            assert isinstance(missing, Refused)
            assert missing.version is None

        world.loop.run(main())
        assert world.snapshot() == {KEY: b"2"}

    def test_a_deletion_needs_the_version_that_it_names(self, world: World, store: ObjectStore) -> None:
        async def main() -> None:
            first = await put(store, b"1")
            second = await put(store, b"2")
            assert isinstance(await store.delete(KEY, Matches(first)), Refused)
            deleted = await store.delete(KEY, Matches(second))
            assert isinstance(deleted, Applied)
            assert deleted.version == second
            missing = await store.delete(KEY, Matches(second))
            assert isinstance(missing, Refused)
            assert missing.version is None
            assert isinstance(await store.delete(KEY), Applied)

        world.loop.run(main())
        assert world.snapshot() == {}

    def test_an_object_is_sent_only_if_it_changed(self, world: World, store: ObjectStore) -> None:
        async def main() -> None:
            first = await put(store, b"1")
            assert isinstance(await store.get(KEY, first), Unchanged)
            await put(store, b"2")
            assert isinstance(await store.get(KEY, first), Found)

        world.loop.run(main())

    def test_a_range_ends_with_its_object(self, world: World, store: ObjectStore) -> None:
        async def main() -> None:
            version = await put(store, b"0123456789")
            for start, length, expected in ((0, 4, b"0123"), (8, 4, b"89"), (20, 1, b"")):
                found = await store.get_range(KEY, start, length)
                assert isinstance(found, Found)
                assert (found.body, found.version) == (expected, version)
            assert isinstance(await store.get_range("another", 0, 1), Missing)

        world.loop.run(main())

    def test_a_listing_has_every_object_once_in_pages_of_no_order(self, world: World, store: ObjectStore) -> None:
        keys = [f"in/{number:02}" for number in range(12)]

        async def main() -> list[str]:
            for key in (*keys, "other"):
                await put(store, b"x", key)
            pages = [await store.list("in/")]
            while pages[-1].after is not None:
                pages.append(await store.list("in/", pages[-1].after))
            assert [len(page.entries) for page in pages] == [5, 5, 2]
            return [entry.key for page in pages for entry in page.entries]

        listed = world.loop.run(main())
        assert sorted(listed) == keys
        assert listed != keys

    def test_a_page_goes_on_where_it_stopped_although_objects_come_and_go(
        self, world: World, store: ObjectStore
    ) -> None:
        async def main() -> set[str]:
            for number in range(12):
                await put(store, b"x", f"in/{number:02}")
            page = await store.list("in/")
            seen = {entry.key for entry in page.entries}
            await store.delete(page.entries[-1].key)
            await put(store, b"x", "in/new")
            while page.after is not None:
                page = await store.list("in/", page.after)
                assert not seen & {entry.key for entry in page.entries}
                seen |= {entry.key for entry in page.entries}
            return seen

        assert {f"in/{number:02}" for number in range(12)} <= world.loop.run(main())

    def test_every_answer_has_the_stores_own_time_in_whole_seconds(self, world: World, store: ObjectStore) -> None:
        async def main() -> None:
            await asyncio.sleep(60)
            written = await store.put(KEY, b"1", ANY)
            await asyncio.sleep(60)
            page = await store.list("a/")
            found = await store.get(KEY)
            assert isinstance(written, Applied)
            assert isinstance(found, Found)
            assert found.written_ms == page.entries[0].written_ms == written.now_ms
            times = [written.now_ms, page.now_ms, found.now_ms]
            assert times == sorted(times)
            assert [time % 1_000 for time in times] == [0, 0, 0]
            assert 60_000 <= times[0] - EPOCH_MS < times[1] - 59_000 - EPOCH_MS < 65_000

        world.loop.run(main())

    def test_what_names_no_object_is_refused(self, world: World, store: ObjectStore) -> None:
        async def raises(error: type[Exception], call: Coroutine[Any, Any, object]) -> None:
            with pytest.raises(error):
                await call

        async def main() -> None:
            for key in ("", "a//b", "../a", "a\n"):
                await raises(InvalidKey, store.get(key))
                await raises(InvalidKey, store.get_range(key, 0, 1))
                await raises(InvalidKey, store.put(key, b"", ANY))
                await raises(InvalidKey, store.delete(key))
            await raises(ValueError, store.delete(KEY, ABSENT))
            await raises(ValueError, store.get_range(KEY, -1, 1))

        world.loop.run(main())
        assert world.history == []

    @pytest.mark.parametrize("seed", range(5))
    def test_racing_increments_lose_nothing(self, seed: int) -> None:
        world = World(SimulatedLoop(seed))

        async def increment(store: ObjectStore) -> None:
            while True:
                found = await store.get(KEY)
                count, when = (int(found.body), Matches(found.version)) if isinstance(found, Found) else (0, ABSENT)
                if isinstance(await store.put(KEY, b"%d" % (count + 1), when), Applied):
                    return

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(8):
                    group.create_task(increment(world.handle(f"p{number}")))

        world.loop.run(main())
        assert world.snapshot() == {KEY: b"8"}


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
            await asyncio.gather(*(put(world.handle("p1"), b"x", key) for key in "abc"))

        orders = {
            "".join(event.key for event in trace(beside_each_other, seed).history if event.step == "lands")
            for seed in range(200)
        }
        assert len(orders) == 6


def one_after_the_other(calls: int) -> Any:
    """Two processes beside each other, each making its calls in sequence."""

    async def work(store: ObjectStore) -> None:
        for _ in range(calls):
            await store.get(KEY)

    async def scenario(world: World) -> None:
        await asyncio.gather(work(world.handle("a")), work(world.handle("b")))

    return scenario
