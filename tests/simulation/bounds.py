"""Scenarios about how much it takes: whoever has little time gets through in the end, and nobody pays for what others
ask. What is bounded is counted, never timed."""

import asyncio
from collections.abc import Callable

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.create import create_table
from arco_catalog.operations.namespaces import create_namespace
from arco_catalog.state.paths import Paths
from arco_catalog.upkeep.reconcile import reconcile
from tests.simulation.clients import EAGER
from tests.simulation.history import Event
from tests.simulation.programs.run import short_memory
from tests.simulation.world import DIED, Process, World
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, set_property

PATHS = Paths("wh")
HISTORY = f"{PATHS.state}/core/commits/"
COMMITTED = "/iceberg/committed/"

COMMITS = 40
FILES_A_RUN = 6
RUNS = 10
"""Runs of the reconciler, each of another process, in which everything must be done. Eight are enough if none dies."""

MOVES = 40
MEMORY = 4
"""Moves of the registry that one object of its history tells of."""
OTHERS = 8
LOOKS = MOVES
"""Reads of the registry's history that a process may make: a walk through all of it takes a third."""


def fixture_of(process: Process) -> CatalogFixture:
    """A catalog as a process serves it that remembers nothing."""
    return CatalogFixture(process.store, process.runtime, EAGER)


async def a_long_table_and_reconcilers_with_little_time(world: World) -> None:
    """Every commit gets its receipt, that of the long table and that of the short one, whoever is cut short or dies."""
    fixture = fixture_of(world.process("setup", 0))
    await fixture.namespace(*NS)
    for name, commits in (("long", COMMITS), ("short", 2)):
        await fixture.table(name)
        for number in range(commits):
            await fixture.commit(set_property("number", f"{number}"), name)
    await world.settle()
    receipts = {key: body for key, body in world.snapshot().items() if COMMITTED in key}
    assert len(receipts) == COMMITS + 2 + 2
    for key in receipts:
        await fixture.store.delete(key)
    for number in range(RUNS):
        process = world.process(f"run{number}")
        await process.run(reconcile(fixture_of(process).session(), concurrency=1, should_stop=after(FILES_A_RUN)))
        await world.settle()
    there = {key: body for key, body in world.snapshot().items() if COMMITTED in key}
    assert there == receipts, f"{len(receipts) - len(there)} of {len(receipts)} receipts are missing after {RUNS} runs"


def after(asked: int) -> Callable[[], bool]:
    """Is true when it was asked so often."""
    left = asked

    def should_stop() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    return should_stop


async def an_old_key_beside_creators(world: World) -> None:
    """A create whose first process died long ago looks for its work in the registry's history once, however often its
    registry commit, which it shares with others, is made anew."""
    with short_memory(MEMORY):
        setup = fixture_of(world.process("setup", 0))
        await setup.namespace(*NS)
        body: JsonObject = {"name": "t", "schema": schema("x")}
        key = setup.key()
        dead = world.process("dead")

        def kill(event: Event) -> None:
            if event.process == dead.name and "/iceberg_idempotency/" in event.key:
                dead.crash()

        world.observe(kill)
        assert await dead.run(create_table(fixture_of(dead).session(body, key=key), NS, body)) is DIED
        for number in range(MOVES):
            await setup.namespace(f"n{number}")
        fixtures = {name: fixture_of(world.process(name)) for name in ("p1", "p2")}

        async def others(name: str, first: int) -> None:
            process = world.process(name)
            for number in range(first, first + OTHERS):
                await process.run(create_namespace(fixtures[name].session(), (f"{name}-{number}",), {}))

        async def old() -> None:
            answer = await world.process("p1").run(create_table(fixtures["p1"].session(body, key=key), NS, body))
            assert answer is not DIED

        async with asyncio.TaskGroup() as group:
            group.create_task(old())
            for name in fixtures:
                group.create_task(others(name, 0))
                group.create_task(others(name, OTHERS))
        sent = [event for event in world.history if event.process == "p1" and event.step.startswith("sent")]
        looks = sum(event.kind == "get" and event.key.startswith(HISTORY) for event in sent)
        assert looks <= LOOKS, f"the registry's history was read {looks} times"
