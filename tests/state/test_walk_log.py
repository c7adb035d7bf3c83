"""What the reconciler remembers, in today's form and in that of earlier versions."""

import pytest

from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.state.access import Caches, State
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.walk_log import SHARDS, Span, Walked, WalkLog, shard_of
from storage_backends import ANY, Found, When
from storage_backends.base import Outcome
from storage_backends.memory import MemoryStore
from tests.operations.clockwork import Clockwork

DONE = Walked("v7", "f9")
CUT = Walked("", "f9", (Span(MetadataFile("f4", 4), "f1"), Span(MetadataFile("f0", 1), None, failed=True)))


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def process(store: MemoryStore) -> State:
    return State(store, Paths("wh"), Caches.of(1 << 20), Clockwork())


async def document(store: MemoryStore, shard: int) -> JsonObject:
    found = await store.get(Paths("wh").walk_log(shard))
    assert isinstance(found, Found)
    body = loads(found.body)
    assert isinstance(body, dict)
    return body


async def test_what_is_noted_is_read_again(store: MemoryStore) -> None:
    log = WalkLog()
    log.note("done", DONE)
    log.note("cut", CUT)
    log.note("undecided", Walked("", "f9"))
    log.pass_turn("cut")
    await log.write(process(store))

    again = await WalkLog.read(process(store))

    assert again.walked == {"done": DONE, "cut": CUT, "undecided": Walked("", "f9")}
    assert (again.after, again.damaged) == ("cut", [])
    assert [walked.complete for walked in (DONE, CUT, Walked("", "f9"))] == [True, False, False]


async def test_the_log_of_an_earlier_version_is_read(store: MemoryStore) -> None:
    old: JsonObject = {"version": 1, "walked": {"done": {"version": "v7", "file": "f9"}, "older": {"version": "v1"}}}
    await store.put(Paths("wh").walk_log(0), dumps(old), ANY)

    log = await WalkLog.read(process(store))

    assert log.walked == {"done": DONE, "older": Walked("v1", "")}
    assert log.after is None


async def test_an_earlier_version_sees_nothing_of_what_is_not_walked_to_the_end(store: MemoryStore) -> None:
    log = WalkLog()
    log.note("cut", CUT)
    await log.write(process(store))

    assert (await document(store, shard_of("cut")))["walked"] == {}


async def test_runs_at_once_do_not_undo_each_others_progress(store: MemoryStore) -> None:
    one, other = await WalkLog.read(process(store)), await WalkLog.read(process(store))
    [first, second, *_] = [name for name in map(str, range(100)) if shard_of(name) == 3]
    one.note(first, DONE)
    other.note(second, DONE)

    await one.write(process(store))
    await other.write(process(store))

    assert (await WalkLog.read(process(store))).walked == {first: DONE, second: DONE}


class Overtaken(MemoryStore):
    """Another run writes the shard just before ours, so many times."""

    times = 0

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        if self.times > 0:
            self.times -= 1
            entry: JsonObject = {"version": "v", "file": str(self.times)}
            await super().put(key, dumps({"version": 1, "walked": {"theirs": entry}}), ANY)
        return await super().put(key, body, when)


@pytest.mark.parametrize(("times", "kept"), [(0, True), (2, True), (1_000, False)])
async def test_a_shard_that_others_write_is_tried_again_a_few_times(times: int, kept: bool) -> None:
    store = Overtaken()
    store.times = times
    log = WalkLog()
    log.note("ours", DONE)
    await log.write(process(store))

    store.times = 0
    again = (await WalkLog.read(process(store))).walked
    assert ("ours" in again, "theirs" in again) == (kept, times > 0)


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"version":9}', b'{"version":1,"walked":{"e":{"file":"f"}}}'])
async def test_a_shard_that_cannot_be_read_is_told_and_written_anew(store: MemoryStore, damage: bytes) -> None:
    key = Paths("wh").walk_log(shard_of("e"))
    await store.put(key, damage, ANY)

    log = await WalkLog.read(process(store))
    [damaged] = log.damaged
    assert key in damaged
    assert log.walked == {}

    log.note("e", DONE)
    await log.write(process(store))
    assert (await WalkLog.read(process(store))).walked == {"e": DONE}


async def test_only_what_changed_is_written(store: MemoryStore) -> None:
    log = await WalkLog.read(process(store))
    await log.write(process(store))
    assert store.keys() == []

    log.note("e", DONE, files=4)
    assert log.unwritten == 5
    await log.write(process(store))
    assert (store.keys(), log.unwritten) == ([Paths("wh").walk_log(shard_of("e"))], 0)
    assert 0 <= shard_of("e") < SHARDS
