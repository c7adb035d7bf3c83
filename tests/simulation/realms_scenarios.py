"""Scenarios of catalogs of a realm: three by hand, and one that is drawn from the seed (`realms.py`)."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace

from tests.simulation.collecting import RETENTION
from tests.simulation.realms import LAKE, SETTINGS, RealmClients
from tests.simulation.scenarios import TINY
from tests.simulation.world import World

POND = "memory:///lake/pond"


async def _together(clients: RealmClients, *works: Callable[[], Awaitable[object]]) -> None:
    """Does all of it at once, and judges what is left."""

    async def begin(work: Callable[[], Awaitable[object]]) -> None:
        await clients.world.runtime.sleep(3 * clients.world.runtime.random())
        await work()

    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(begin(work))
    await clients.close()


async def a_catalog_made_again_beside_slow_drops(world: World) -> None:
    """Two clients drop a catalog, one makes it again, one changes it: nothing befalls another one than was meant."""
    clients = RealmClients(world)
    await clients.start()
    await clients.make("setup", "x")

    async def drops() -> None:
        await clients.drop("p1", "x")

    async def drops_and_makes() -> None:
        await clients.drop("p2", "x")
        await clients.make("p2", "x")
        await clients.change("p2", "x")

    async def changes() -> None:
        for _ in range(10):
            await clients.change("p3", "x", pause_s=0.5)
            await world.runtime.sleep(0.3 * world.runtime.random())

    await _together(clients, drops, drops_and_makes, changes)


async def purges_beside_drops_of_their_catalog(world: World) -> None:
    """A catalog is dropped while its tables are to be purged, by this version or by an earlier one; a successor at its
    location registers the files, and workers have the old one open."""
    clients = RealmClients(world)
    await clients.start()
    await clients.make("setup", "x")
    await clients.table("setup", "x", "t")
    await clients.table("setup", "x", "u")
    earlier = world.runtime.random() < 0.5

    async def drops() -> None:
        await clients.drop_tables("p1", "x", "t", purge=True)
        await clients.drop_tables("p1", "x", "u", purge=False)
        for number in range(8):
            if await clients.drop("p1", "x", cancel_purges=number == 5, earlier=earlier):
                break
            await world.runtime.sleep(10 * world.runtime.random())
        await clients.make("p1", "y")
        await clients.register("p1", "y", 0)
        await clients.register("p1", "y", 1)
        await world.runtime.sleep(60)
        if await clients.drop_registered("p1", "y"):
            await clients.drop("p1", "y")
        await clients.undrop("p1", "x")
        await clients.register("p1", "x", 1)

    async def works() -> None:
        await clients.work("w1", 150)

    await _together(clients, drops, works)


async def undrops_beside_drops(world: World) -> None:
    """A catalog is dropped by several clients, undropped by several, and another takes its location: each catalog with
    a name is open in the end, and no two overlap."""
    clients = RealmClients(world)
    await clients.start()
    await clients.make("setup", "x")

    async def drops() -> None:
        await clients.drop("p1", "x")
        await clients.undrop("p1", "x")

    async def drops_too() -> None:
        for _ in range(4):
            await clients.drop("p2", "x")
        await clients.undrop("p2", "x")

    async def undrops() -> None:
        await clients.undrop("p3", "x")
        await clients.undrop("p3", "z")
        await clients.drop("p3", "z")

    async def takes_the_location() -> None:
        await clients.make("p4", "y", POND)
        await world.runtime.sleep(5 * world.runtime.random())
        await clients.drop("p4", "y")

    await _together(clients, drops, drops_too, undrops, takes_the_location)


async def catalogs_found_by_a_server_that_was_idle(world: World) -> None:
    """A server finds catalogs by a HEAD that it has cached, parts of whose index were collected while it was idle."""
    clients = RealmClients(world, settings=replace(SETTINGS, spill=TINY, retention=RETENTION))
    await clients.start()
    names = "abc"
    for name in names:
        await clients.make("setup", name, f"{LAKE}/{name}")
    await clients.remember("p1")
    for name in "xyz":
        await clients.make("p2", name, f"{LAKE}/{name}")
    for _ in range(2):
        await world.runtime.sleep(80)
        await clients.collect("p3")
    await clients.find("p1", *names)
    await clients.close()


async def requests_that_are_drawn(world: World) -> None:
    """Three clients, each with requests that are drawn, beside a worker."""
    clients = RealmClients(world)
    await clients.start()
    await clients.make("setup", "x")
    draw = world.loop.stream("requests")

    def drawn(process: str) -> Coroutine[object, object, object]:
        name, other, table = draw.choice("xxy"), draw.choice("xxyz"), draw.choice("tu")
        requests: list[Callable[[], Coroutine[object, object, object]]] = [
            lambda: clients.make(process, name, draw.choice((LAKE, POND))),
            lambda: clients.change(process, name),
            lambda: clients.drop(process, name, cancel_purges=draw.random() < 0.5, earlier=draw.random() < 0.2),
            lambda: clients.drop(process, name, cancel_purges=True),
            lambda: clients.undrop(process, other),
            lambda: clients.table(process, name, table),
            lambda: clients.drop_tables(process, name, "t", "u", purge=draw.random() < 0.7),
            lambda: clients.undrop_table(process, name, table),
            lambda: clients.register(process, name),
            lambda: clients.drop_registered(process, name),
        ]
        return draw.choice(requests)()

    def client(process: str) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            for _ in range(8):
                await drawn(process)
                await world.runtime.sleep(10 * world.runtime.random())

        return run

    async def works() -> None:
        await clients.work("w1", 60)

    await _together(clients, client("p1"), client("p2"), client("p3"), works)
