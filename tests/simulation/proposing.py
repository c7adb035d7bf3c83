"""Registry commits of many processes, in a registry where a process that loses HEAD proposes its change to the others
(docs/design/registry.md#proposals)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import pytest

from arco_catalog.protocol.catalog import Settings
from arco_catalog.state import registry
from tests.simulation import collecting
from tests.simulation.clients import AS_DEPLOYED, EAGER, SimulatedClients
from tests.simulation.collecting import CollectingClients
from tests.simulation.explore import Scenario
from tests.simulation.world import World
from tests.support.registry_versions import raise_version

PROCESSES = ("p1", "p2", "p3", "p4", "p5")
Request = Callable[[], Awaitable[None]]


async def one_after_another(*requests: Request) -> None:
    """Requests of one client."""
    for request in requests:
        await request()


def scenario(
    *tables: str, settings: Settings = EAGER, memory: int = registry.RECENT_COMMITS
) -> Callable[[Callable[[SimulatedClients], list[Awaitable[None]]]], Scenario]:
    """Runs what the decorated function lists, all at once, in a registry with proposals. HEAD lists the operations of
    `memory` commits."""

    def decorate(requests: Callable[[SimulatedClients], list[Awaitable[None]]]) -> Scenario:
        async def run(world: World) -> None:
            clients = SimulatedClients(world, settings)
            await clients.set_up(*tables)
            await raise_version(clients.fixture(world.process("setup")).session().state)
            for name in PROCESSES:
                await clients.warm(name)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(registry, "RECENT_COMMITS", memory)
                async with asyncio.TaskGroup() as group:
                    for request in requests(clients):
                        group.create_task(_as_task(request))
                await clients.close()

        run.__qualname__ = requests.__name__
        return run

    return decorate


async def _as_task(request: Awaitable[None]) -> None:
    await request


@scenario("t")
def creates_of_many_processes(clients: SimulatedClients) -> list[Awaitable[None]]:
    """Each process makes three tables, the last of one name."""

    def creates(process: str) -> list[Request]:
        return [
            partial(clients.create, f"{name}-{process}", process, name=name)
            for name in (f"{process}-a", f"{process}-b", "same")
        ]

    return [one_after_another(*creates(process)) for process in PROCESSES]


@scenario("t")
def creates_without_keys_of_many_processes(clients: SimulatedClients) -> list[Awaitable[None]]:
    """Without keys no request is sent a second time."""
    return [
        one_after_another(
            *(partial(clients.create, f"{n}-{process}", process, name=f"{process}-{n}", key=False) for n in range(3))
        )
        for process in PROCESSES
    ]


@scenario("t", "v")
def creates_drops_and_renames_of_many_processes(clients: SimulatedClients) -> list[Awaitable[None]]:
    """Processes that take names from each other, and give them back."""
    return [
        one_after_another(
            partial(clients.create, "a1", "p1", name="a"),
            partial(clients.drop, "a2", "p1", name="a"),
            partial(clients.create, "a3", "p1", name="a"),
        ),
        one_after_another(
            partial(clients.create, "b1", "p2", name="a"),
            partial(clients.drop, "b2", "p2", name="a"),
            partial(clients.create, "b3", "p2", name="b"),
        ),
        one_after_another(
            partial(clients.rename, "c1", "p3", name="t", to="u"), partial(clients.rename, "c2", "p3", name="u", to="t")
        ),
        one_after_another(
            partial(clients.drop, "d1", "p4", name="v"),
            partial(clients.undrop, "d2", "p4", name="v"),
            partial(clients.rename, "d3", "p4", name="v", to="b"),
        ),
        one_after_another(*(partial(clients.create, f"e{n}", "p5", name=f"e{n}") for n in range(3))),
    ]


@scenario("t")
def keys_that_several_processes_send(clients: SimulatedClients) -> list[Awaitable[None]]:
    """One key sent by two processes, beside others that move HEAD: takeovers cancel attempts that are proposed."""
    return [
        clients.create("k", "p1", "p2", name="a"),
        clients.create("l", "p2", "p3", name="b"),
        one_after_another(clients_drop(clients, "d", "a"), partial(clients.create, "m", "p4", name="a")),
        one_after_another(*(partial(clients.create, f"e{n}", "p5", name=f"e{n}") for n in range(4))),
        one_after_another(*(partial(clients.create, f"f{n}", "p4", name=f"f{n}") for n in range(4))),
    ]


def clients_drop(clients: SimulatedClients, principal: str, name: str) -> Request:
    return partial(clients.drop, principal, "p4", name=name)


@scenario("t", "a", "b")
def transactions_of_many_processes(clients: SimulatedClients) -> list[Awaitable[None]]:
    """Intents on names that others take, drop and give other tables; each is placed and settled by a registry commit of
    the catalog itself."""

    def transactions(process: str, *names: str) -> list[Request]:
        return [
            partial(clients.transact, f"x{n}-{process}", process, tables=(), creates=(name, f"{name}-{process}"))
            for n, name in enumerate(names)
        ]

    return [
        one_after_another(*transactions("p1", "c", "d")),
        one_after_another(*transactions("p2", "d", "c")),
        one_after_another(
            partial(clients.drop, "d1", "p3", name="c"),
            partial(clients.create, "d2", "p3", name="c"),
            partial(clients.rename, "d3", "p3", name="c", to="e"),
        ),
        one_after_another(
            *(partial(clients.drop, f"e{n}", "p4", name=name, key=False) for n, name in enumerate("dcdc"))
        ),
        clients.transact("k", "p5", "p4", tables=("a", "b"), creates=("e",)),
        one_after_another(*(partial(clients.create, f"f{n}", "p5", name=f"f{n}") for n in range(3))),
    ]


@scenario("t")
def intents_that_several_processes_settle(clients: SimulatedClients) -> list[Awaitable[None]]:
    """Each drop that reads an intent settles it. Later creates take in proposals that arrive late."""

    async def drops(process: str) -> None:
        for n in range(4):
            await clients.world.runtime.sleep(4.0 * clients.world.runtime.random())
            await clients.drop(f"d{n}-{process}", process, name="u", key=False)

    async def creates(process: str) -> None:
        for n in range(5):
            await clients.world.runtime.sleep(12.0)
            await clients.create(f"{n}-{process}", process, name=f"{process}-{n}", key=False)

    return [
        one_after_another(
            *(partial(clients.transact, f"x{n}", "p1", tables=(), creates=("u", f"v{n}"), key=False) for n in range(2))
        ),
        *(drops(process) for process in ("p2", "p3")),
        one_after_another(*(partial(clients.create, f"e{n}", "p5", name=f"e{n}", key=False) for n in range(4))),
        *(creates(process) for process in ("p4", "p5")),
    ]


@scenario("t", settings=replace(EAGER, in_progress_ms=20, duplicate_timeout_ms=20))
def takeovers_of_many_processes(clients: SimulatedClients) -> list[Awaitable[None]]:
    """Each key is sent by two processes, and takeovers cancel beside creates."""
    sent = [
        clients.create(f"k-{process}", process, PROCESSES[number - 1], name=f"{process}-a")
        for number, process in enumerate(PROCESSES)
    ]
    others = [
        one_after_another(
            *(partial(clients.create, f"{n}-{process}", process, name=f"{process}-{n}") for n in range(2))
        )
        for process in PROCESSES[:3]
    ]
    return [*sent, *others]


@scenario("t", memory=2, settings=replace(EAGER, in_progress_ms=20, duplicate_timeout_ms=20))
def takeovers_beside_forgotten_commits(clients: SimulatedClients) -> list[Awaitable[None]]:
    """HEAD forgets attempts while their cancellations wait."""
    return [
        clients.create("k", "p1", "p2", name="a"),
        clients.create("l", "p2", "p3", name="b"),
        clients.create("m", "p3", "p1", name="c"),
        *(
            one_after_another(
                *(
                    partial(clients.create, f"{n}-{process}", process, name=f"{process}-{n}", key=False)
                    for n in range(6)
                )
            )
            for process in ("p4", "p5")
        ),
    ]


@scenario("t", settings=AS_DEPLOYED)
def many_processes_as_deployed(clients: SimulatedClients) -> list[Awaitable[None]]:
    """The deadlines of a deployment."""
    return [
        one_after_another(
            partial(clients.create, f"k-{process}", process, PROCESSES[number - 1], name=f"{process}-a"),
            partial(clients.create, f"l-{process}", process, name="same"),
        )
        for number, process in enumerate(PROCESSES)
    ]


@scenario("t", memory=2, settings=replace(EAGER, in_progress_ms=20, duplicate_timeout_ms=20))
def names_that_are_freed_beside_takeovers(clients: SimulatedClients) -> list[Awaitable[None]]:
    """HEAD forgets attempts, and their cancellations, while their names are taken and freed."""

    def drops(process: str, name: str) -> Awaitable[None]:
        drop = [partial(clients.drop, f"d{n}-{name}", process, name=name, key=False) for n in range(4)]
        return one_after_another(*drop)

    def creates(process: str) -> Awaitable[None]:
        create = [
            partial(clients.create, f"{process}-{n}", process, name=f"{process}-{n}", key=False) for n in range(8)
        ]
        return one_after_another(*create)

    return [
        clients.create("k", "p1", "p2", name="a"),
        clients.create("l", "p2", "p1", name="b"),
        drops("p3", "a"),
        drops("p3", "b"),
        creates("p4"),
        creates("p5"),
    ]


@scenario("t", memory=3)
def names_that_change_to_and_fro(clients: SimulatedClients) -> list[Awaitable[None]]:
    """What a rename has read may be the same again after others."""

    def renames(principal: str, process: str, name: str, to: str) -> list[Request]:
        return [partial(clients.rename, f"{principal}{n}", process, name=name, to=to, key=False) for n in range(3)]

    return [
        one_after_another(*renames("r", "p1", "t", "u")),
        one_after_another(*renames("s", "p2", "u", "t")),
        one_after_another(*renames("q", "p3", "t", "u")),
        one_after_another(*(partial(clients.create, f"e{n}", "p4", name=f"e{n}", key=False) for n in range(5))),
        one_after_another(*(partial(clients.create, f"f{n}", "p5", name=f"f{n}", key=False) for n in range(5))),
    ]


@scenario("t", settings=replace(EAGER, request_ms=2_000))
def requests_with_little_time(clients: SimulatedClients) -> list[Awaitable[None]]:
    """Deadlines that pass while proposals wait."""
    return [
        one_after_another(
            *(partial(clients.create, f"{n}-{process}", process, name=f"{process}-{n}", key=False) for n in range(4))
        )
        for process in PROCESSES
    ]


@scenario("t", settings=AS_DEPLOYED)
def creates_of_one_name_by_many_processes(clients: SimulatedClients) -> list[Awaitable[None]]:
    """All but one are refused, in time."""

    def others(process: str) -> Awaitable[None]:
        create = [
            partial(clients.create, f"{process}-{n}", process, name=f"{process}-{n}", key=False) for n in range(3)
        ]
        return one_after_another(*create)

    return [*(_answered(clients, f"c-{process}", process) for process in PROCESSES), others("p6"), others("p7")]


async def _answered(clients: SimulatedClients, principal: str, process: str) -> None:
    """A create that must get a definite answer, unless a call failed."""
    await clients.create(principal, process, name="same", key=False)
    is_healthy = not clients.world.fired
    assert principal in clients.auditor.asks or not is_healthy, f"the outcome of {principal} is unknown"


async def creates_beside_a_collector(world: World) -> None:
    """Files of creates that never commit are collected after seconds, and proposals arrive late."""
    clients = CollectingClients(world, collecting.SETTINGS)
    await clients.set_up("t")
    await raise_version(clients.fixture(world.process("setup")).session().state)

    async def creates(process: str) -> None:
        for n, at in enumerate((0, 45, 60, 75)):
            await clients.quiet(max(0.0, at - world.loop.time()))
            await clients.create(f"{n}-{process}", process, name=f"{process}-{n}", key=False)

    await clients.all([*map(creates, PROCESSES[:3]), clients.collector("g1", 4, 30.0)])
    await clients.close()


PROPOSING = (
    creates_of_many_processes,
    creates_without_keys_of_many_processes,
    creates_drops_and_renames_of_many_processes,
    keys_that_several_processes_send,
    transactions_of_many_processes,
    intents_that_several_processes_settle,
    takeovers_of_many_processes,
    takeovers_beside_forgotten_commits,
    many_processes_as_deployed,
    names_that_are_freed_beside_takeovers,
    names_that_change_to_and_fro,
    requests_with_little_time,
    creates_of_one_name_by_many_processes,
    creates_beside_a_collector,
)
