"""Processes that were idle while others moved what they remember further than pointers and history reach."""

from collections.abc import Callable, Coroutine
from typing import Any

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from tests.simulation.clients import AS_DEPLOYED
from tests.simulation.history import Event
from tests.simulation.programs.run import short_memory
from tests.simulation.world import DIED, Process, World
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, set_property

MEMORY = 4
"""Moves that a pointer remembers, and commits of the registry that one object of its history holds."""
IDLE_SECONDS = 120.0
TAKEOVER_SECONDS = 40.0
MARKER = "/iceberg_idempotency/"
COMMITS = "core/commits/"


def _fixture(process: Process) -> CatalogFixture:
    return CatalogFixture(process.store, process.runtime, AS_DEPLOYED)


async def _idle(world: World) -> tuple[CatalogFixture, CatalogFixture]:
    """A busy process, and one that has not seen the last moves of the table and of the registry."""
    busy, idle = _fixture(world.process("busy", 0)), _fixture(world.process("idle", 0))
    await busy.namespace(*NS)
    await busy.table("t")
    await idle.commit(set_property("idle", "1"))
    await idle.table("first")
    for number in range(2 * MEMORY):
        await busy.commit(set_property("n", str(number)))
        await busy.namespace(f"n{number}")
    await world.settle()
    return busy, idle


async def a_commit_by_an_idle_process(world: World) -> None:
    """It is made, and its process is sure of it."""
    with short_memory(MEMORY):
        _, idle = await _idle(world)
        await world.runtime.sleep(2.0)
        await idle.commit(set_property("mine", "yes"))


async def _dies_behind_its_claim(
    world: World, send: Callable[[CatalogFixture, str], Coroutine[Any, Any, object]]
) -> None:
    """The idle process dies when its claim has landed; another process finishes its request under the same key."""
    with short_memory(MEMORY):
        busy, idle = await _idle(world)
        for key in world.keys(f"wh/_catalog/{COMMITS}"):
            if key != f"wh/_catalog/{COMMITS}{(await busy.session().state.head()).id}.json":
                await busy.store.delete(key)  # as a collection does after months
        await world.runtime.sleep(IDLE_SECONDS)
        dying = world.process("idle")

        def kill(event: Event) -> None:
            if event.process == dying.name and MARKER in event.key:
                dying.crash()

        world.observe(kill)
        key = busy.key()
        assert await dying.run(send(idle, key)) is DIED
        await world.settle()
        await world.runtime.sleep(TAKEOVER_SECONDS)
        other = world.process("other", 0)
        assert await other.run(send(_fixture(other), key)) is not DIED


async def a_commit_whose_idle_process_dies_behind_its_claim(world: World) -> None:
    """Its key is answered."""
    body = set_property("mine", "yes")

    async def send(fixture: CatalogFixture, key: str) -> object:
        return await commit_table(fixture.session(body, key=key, path="/commit"), NS, "t", body)

    await _dies_behind_its_claim(world, send)


async def a_create_whose_idle_process_dies_behind_its_claim(world: World) -> None:
    """Its key is answered."""
    body: JsonObject = {"name": "mine", "schema": schema("x")}

    async def send(fixture: CatalogFixture, key: str) -> object:
        return await create_table(fixture.session(body, key=key, path="/create"), NS, body)

    await _dies_behind_its_claim(world, send)
