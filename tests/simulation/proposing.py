"""Registry commits of many processes, in a registry where a process that loses HEAD proposes its change to the others
(docs/design/registry.md#proposals)."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from tests.simulation.clients import AS_DEPLOYED, EAGER, SimulatedClients
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
    *tables: str, settings: str = "eager"
) -> Callable[[Callable[[SimulatedClients], list[Awaitable[None]]]], Scenario]:
    """Runs what the decorated function lists, all at once, in a registry with proposals."""

    def decorate(requests: Callable[[SimulatedClients], list[Awaitable[None]]]) -> Scenario:
        async def run(world: World) -> None:
            clients = SimulatedClients(world, EAGER if settings == "eager" else AS_DEPLOYED)
            await clients.set_up(*tables)
            await raise_version(clients.fixture(world.process("setup")).session().state)
            for name in PROCESSES:
                await clients.warm(name)
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


@scenario("t", settings="deployed")
def many_processes_as_deployed(clients: SimulatedClients) -> list[Awaitable[None]]:
    """The deadlines of a deployment."""
    return [
        one_after_another(
            partial(clients.create, f"k-{process}", process, PROCESSES[number - 1], name=f"{process}-a"),
            partial(clients.create, f"l-{process}", process, name="same"),
        )
        for number, process in enumerate(PROCESSES)
    ]


PROPOSING = (
    creates_of_many_processes,
    creates_without_keys_of_many_processes,
    creates_drops_and_renames_of_many_processes,
    keys_that_several_processes_send,
    many_processes_as_deployed,
)
