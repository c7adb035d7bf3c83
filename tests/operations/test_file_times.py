"""The time in a new file is the store's, as far as the machine's clock is wrong.

Iceberg's Java client refuses to build on metadata whose last-updated-ms is more than a minute ahead of its own clock
("Invalid update timestamp"), so one machine with a wrong clock would stop every Java writer of a table.
"""

import pytest

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.commit import commit_view
from arco_catalog.operations.create import create_view
from arco_catalog.operations.load import load_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.state.store_clock import PRECISION_MS
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime, WrongClock
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property, uuid7, view_request

MINUTES = 60_000


@pytest.fixture
def machine() -> WrongClock:
    return WrongClock(FakeRuntime())


@pytest.fixture
async def fixture(machine: WrongClock) -> CatalogFixture:
    fixture = CatalogFixture(MemoryStore(machine.right.now_ms), machine)
    await fixture.namespace("db")
    return fixture


def time_in(metadata: bytes) -> int:
    document = loads(metadata)
    assert isinstance(document, dict)
    time = document["last-updated-ms"]
    assert isinstance(time, int)
    return time


def near(time_ms: int, clock: FakeRuntime) -> bool:
    return abs(time_ms - clock.ms) <= 2 * PRECISION_MS


@pytest.mark.parametrize("ahead_ms", [-10 * MINUTES, 10 * MINUTES])
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("cold", [False, True])
async def test_a_commit_of_a_machine_whose_clock_is_wrong_has_the_time_of_the_store(
    fixture: CatalogFixture, machine: WrongClock, ahead_ms: int, keyed: bool, cold: bool
) -> None:
    """Also where the clock was set wrong after the last answer: the time of the store before the commit counts."""
    await fixture.table("t")
    machine.ahead_ms = ahead_ms
    process = fixture.another() if cold else fixture

    key = uuid7(machine.right.ms, machine) if keyed else None
    committed = await process.commit(set_property("a", "1"), key=key)

    assert near(time_in(committed.metadata), machine.right)
    pointer = await fixture.session().state.pointer(committed.entity)
    assert pointer is not None
    assert pointer.metadata.ms == time_in(committed.metadata)


@pytest.mark.parametrize("ahead_ms", [-10 * MINUTES, 10 * MINUTES])
async def test_what_is_made_on_such_a_machine_has_it_too(
    fixture: CatalogFixture, machine: WrongClock, ahead_ms: int
) -> None:
    for name in ("t", "u"):
        await fixture.table(name)
    view = view_request("v")
    machine.ahead_ms = ahead_ms

    made = await fixture.table("made")
    await create_view(fixture.session(view), NS, view)
    await commit_transaction(fixture.session(), [(NS, name, set_property("a", "1")) for name in ("t", "u")])
    changed = await commit_view(fixture.session(), NS, "v", set_property("a", "1"))

    assert near(time_in(made.metadata), machine.right)
    for name in ("t", "u"):
        assert near(time_in((await load_table(fixture.session(), NS, name)).metadata), machine.right)
    pointer = await fixture.session().state.pointer(getattr(changed, "entity", ""))
    assert pointer is not None
    assert near(pointer.metadata.ms, machine.right)


async def test_a_snapshot_of_now_is_taken_by_a_machine_that_is_behind(
    fixture: CatalogFixture, machine: WrongClock
) -> None:
    """The writer's clock is right, and so is its snapshot, which must not be later than the file that it is in."""
    made = await fixture.table("t")
    machine.ahead_ms = -10 * MINUTES
    append: JsonObject = {
        "requirements": [],
        "updates": [
            {
                "action": "add-snapshot",
                "snapshot": {
                    "snapshot-id": 1,
                    "sequence-number": 1,
                    "timestamp-ms": machine.right.ms,
                    "manifest-list": f"{made.metadata_location}.avro",
                    "summary": {"operation": "append"},
                    "schema-id": 0,
                },
            },
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
        ],
    }

    await fixture.another().commit(append)


async def test_a_time_is_always_later_than_that_of_the_base(fixture: CatalogFixture, machine: WrongClock) -> None:
    first = await fixture.table("t")
    second = await fixture.commit(set_property("a", "1"))
    third = await fixture.commit(set_property("a", "2"))

    assert time_in(first.metadata) < time_in(second.metadata) < time_in(third.metadata)
