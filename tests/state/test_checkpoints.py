"""What the reconciler remembers, in today's form and in that of earlier versions."""

from itertools import count

import pytest

from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.state.access import Caches, State
from arco_catalog.state.checkpoints import SHARDS, Checkpoints, Span, WalkCheckpoint, shard_of
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import MetadataFile
from storage_backends import ANY, Found
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import Rule, ScriptedStore, put

DONE = WalkCheckpoint("v7", "f9")
CUT = WalkCheckpoint("", "f9", (Span(MetadataFile("f4", 4), "f1"), Span(MetadataFile("f0", 1), None, failed=True)))


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def process(store: MemoryStore) -> State:
    return State(store, Paths("wh"), Caches.of(1 << 20), FakeRuntime())


async def document(store: MemoryStore, shard: int) -> JsonObject:
    found = await store.get(Paths("wh").checkpoints(shard))
    assert isinstance(found, Found)
    body = loads(found.body)
    assert isinstance(body, dict)
    return body


async def test_what_is_noted_is_read_again(store: MemoryStore) -> None:
    checkpoints = Checkpoints()
    checkpoints.record("done", DONE)
    checkpoints.record("cut", CUT)
    checkpoints.record("undecided", WalkCheckpoint("", "f9"))
    checkpoints.pass_turn("cut")
    await checkpoints.write(process(store))

    again = await Checkpoints.read(process(store))

    assert again.by_entity == {"done": DONE, "cut": CUT, "undecided": WalkCheckpoint("", "f9")}
    assert (again.after, again.damaged) == ("cut", [])
    assert [walked.complete for walked in (DONE, CUT, WalkCheckpoint("", "f9"))] == [True, False, False]


async def test_the_log_of_an_earlier_version_is_read(store: MemoryStore) -> None:
    old: JsonObject = {"version": 1, "walked": {"done": {"version": "v7", "file": "f9"}, "older": {"version": "v1"}}}
    await store.put(Paths("wh").checkpoints(0), dumps(old), ANY)

    checkpoints = await Checkpoints.read(process(store))

    assert checkpoints.by_entity == {"done": DONE, "older": WalkCheckpoint("v1", "")}
    assert checkpoints.after is None


async def test_an_earlier_version_sees_nothing_of_what_is_not_walked_to_the_end(store: MemoryStore) -> None:
    checkpoints = Checkpoints()
    checkpoints.record("cut", CUT)
    await checkpoints.write(process(store))

    assert (await document(store, shard_of("cut")))["walked"] == {}


async def test_runs_at_once_do_not_undo_each_others_progress(store: MemoryStore) -> None:
    one, other = await Checkpoints.read(process(store)), await Checkpoints.read(process(store))
    [first, second, *_] = [name for name in map(str, range(100)) if shard_of(name) == 3]
    one.record(first, DONE)
    other.record(second, DONE)

    await one.write(process(store))
    await other.write(process(store))

    assert (await Checkpoints.read(process(store))).by_entity == {first: DONE, second: DONE}


@pytest.mark.parametrize(("times", "kept"), [(0, True), (2, True), (1_000, False)])
async def test_a_shard_that_others_write_is_tried_again_a_few_times(times: int, kept: bool) -> None:
    """Another run writes the shard just before ours, so many times."""
    store, left = ScriptedStore(), count(times - 1, -1)

    async def overtake() -> None:
        entry: JsonObject = {"version": "v", "file": str(next(left))}
        theirs = dumps({"version": 1, "walked": {"theirs": entry}})
        await store.put(Paths("wh").checkpoints(shard_of("ours")), theirs, ANY)

    store.rules = [Rule(put(), first=overtake, times=times)]
    checkpoints = Checkpoints()
    checkpoints.record("ours", DONE)
    await checkpoints.write(process(store))

    store.rules = []
    again = (await Checkpoints.read(process(store))).by_entity
    assert ("ours" in again, "theirs" in again) == (kept, times > 0)


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"version":9}', b'{"version":1,"walked":{"e":{"file":"f"}}}'])
async def test_an_unreadable_shard_is_reported_and_written_anew(store: MemoryStore, damage: bytes) -> None:
    key = Paths("wh").checkpoints(shard_of("e"))
    await store.put(key, damage, ANY)

    checkpoints = await Checkpoints.read(process(store))
    [damaged] = checkpoints.damaged
    assert key in damaged
    assert checkpoints.by_entity == {}

    checkpoints.record("e", DONE)
    await checkpoints.write(process(store))
    assert (await Checkpoints.read(process(store))).by_entity == {"e": DONE}


async def test_only_what_changed_is_written(store: MemoryStore) -> None:
    checkpoints = await Checkpoints.read(process(store))
    await checkpoints.write(process(store))
    assert store.keys() == []

    checkpoints.record("e", DONE, files=4)
    assert checkpoints.unwritten == 5
    await checkpoints.write(process(store))
    assert (store.keys(), checkpoints.unwritten) == ([Paths("wh").checkpoints(shard_of("e"))], 0)
    assert 0 <= shard_of("e") < SHARDS
