"""What two, three and more writers do to one catalog at the same time (issue: every crash point of every protocol).

Each scenario sets up a table before anything can go wrong, lets its writers go, and closes the auditor's books.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from arco_catalog.iceberg.errors import NoSuchTable
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.access import State
from arco_catalog.state.spilling import Limits
from tests.simulation.clients import AS_DEPLOYED, EAGER, SimulatedClients
from tests.simulation.explore import Scenario
from tests.simulation.world import World
from tests.support.registry_versions import raise_version


def scenario(
    *tables: str, settings: str = "eager"
) -> Callable[[Callable[[SimulatedClients], list[Awaitable[None]]]], Scenario]:
    """Runs what the decorated function lists, all at once."""

    def decorate(requests: Callable[[SimulatedClients], list[Awaitable[None]]]) -> Scenario:
        chosen = EAGER if settings == "eager" else AS_DEPLOYED
        run = _played(requests, tables, chosen, requests.__name__)
        _SPILLED[run] = _played(requests, tables, replace(chosen, spill=TINY), f"{requests.__name__}, spilled")
        _CANCELLING[run] = _played(requests, tables, chosen, f"{requests.__name__}, cancelling", raise_version)
        return run

    return decorate


def _played(
    requests: Callable[[SimulatedClients], list[Awaitable[None]]],
    tables: tuple[str, ...],
    settings: Settings,
    name: str,
    prepare: Callable[[State], Awaitable[None]] | None = None,
) -> Scenario:
    async def run(world: World) -> None:
        clients = SimulatedClients(world, settings)
        await clients.set_up(*tables)
        if prepare is not None:
            await prepare(clients.fixture(world.process("setup")).session().state)
        async with asyncio.TaskGroup() as group:
            for request in requests(clients):
                group.create_task(_as_task(request))
        await clients.close()

    run.__qualname__ = name
    return run


TINY = Limits(embedded=0, segment=300)
"""So small that every registry commit rewrites a segment, and some cut one in two."""
_SPILLED: dict[Scenario, Scenario] = {}


def spilled(scenario: Scenario) -> Scenario:
    """Returns the variant of a scenario with an index that is spilled from the first commit on."""
    return _SPILLED[scenario]


_CANCELLING: dict[Scenario, Scenario] = {}


def cancelling(scenario: Scenario) -> Scenario:
    """Returns the variant of a scenario with a registry in which takeovers cancel attempts by id."""
    return _CANCELLING[scenario]


async def _as_task(request: Awaitable[None]) -> None:
    await request


async def later(clients: SimulatedClients, seconds: float, *requests: Callable[[], Awaitable[None]]) -> None:
    """Requests one after the other, the first after a while."""
    for request in requests:
        await clients.world.runtime.sleep(seconds * clients.world.runtime.random())
        await request()


@scenario("t")
def one_keyed_commit(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [clients.commit("k", "p1")]


@scenario("t")
def two_commits_of_one_key(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [clients.commit("k", "p1", "p2")]


@scenario("t")
def three_commits_of_one_key_and_foreign_ones(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.commit("k", "p1", "p2", "p3"),
        later(
            clients,
            2.0,
            lambda: clients.change_schema("break", "f1", to=1),
            lambda: clients.change_schema("restore", "f1", to=0),
        ),
    ]


@scenario("t")
def a_warm_commit_beside_foreign_ones(clients: SimulatedClients) -> list[Awaitable[None]]:
    async def warm() -> None:
        await clients.warm("p1")
        await clients.commit("k", "p1", "p2")

    return [
        warm(),
        later(
            clients,
            0.5,
            lambda: clients.change_schema("break", "f1", to=1),
            lambda: clients.change_schema("restore", "f1", to=0),
            lambda: clients.change_schema("break again", "f1", to=1),
            lambda: clients.change_schema("restore again", "f1", to=0),
        ),
    ]


@scenario("t")
def a_verdict_on_what_a_process_remembers(clients: SimulatedClients) -> list[Awaitable[None]]:
    async def one_after_the_other() -> None:
        await clients.change_schema("break", "f1", to=1)
        await clients.warm("p1")
        await clients.change_schema("restore", "f2", to=0)
        await clients.commit("k", "p1")

    return [one_after_the_other()]


@scenario("t")
def commits_of_different_keys(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.commit("a", "p1", needs=None),
        clients.commit("b", "p2", needs=None),
        clients.commit("c", "p3", needs=None, key=False),
    ]


@scenario("t")
def commits_and_a_rename(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.commit("k", "p1", "p2"),
        later(
            clients, 1.0, lambda: clients.rename("r", "p3"), lambda: clients.commit("on u", "p3", to="u", needs=None)
        ),
    ]


@scenario("t")
def commits_and_a_rename_away(clients: SimulatedClients) -> list[Awaitable[None]]:
    """Nobody commits under the new name: only a fence stands between a late compare-and-swap and the table."""
    return [clients.commit("k", "p1", "p2"), later(clients, 1.0, lambda: clients.rename("r", "p3"))]


@scenario("t")
def commits_a_rename_and_a_new_table_of_the_name(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.commit("k", "p1", "p2"),
        later(
            clients,
            1.0,
            lambda: clients.rename("r", "p3"),
            lambda: clients.create("again", "p3"),
            lambda: clients.commit("on u", "p3", to="u", needs=None),
        ),
    ]


@scenario("t")
def commits_a_drop_and_a_new_table_of_the_name(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.commit("k", "p1", "p2"),
        later(clients, 1.0, lambda: clients.drop("d", "p3"), lambda: clients.create("again", "p3")),
    ]


@scenario("t")
def commits_and_two_drops_of_one_key(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [clients.commit("k", "p1"), clients.drop("d", "p2", "p3")]


@scenario()
def two_creates_of_one_key_and_another(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [clients.create("k", "p1", "p2"), clients.create("other", "p3")]


@scenario()
def creates_of_one_key_and_a_drop(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.create("k", "p1", "p2"),
        later(clients, 1.0, lambda: clients.drop("d", "p3"), lambda: clients.create("again", "p3")),
    ]


@scenario("t")
def two_renames_of_one_key_and_one_back(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.rename("k", "p1", "p2"),
        later(clients, 1.5, lambda: clients.rename("back", "p3", name="u", to="t")),
    ]


@scenario("t", "v")
def renames_that_cross(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.rename("a", "p1", "p2", name="t", to="x"),
        clients.rename("b", "p3", name="v", to="x"),
        clients.commit("k", "p4", to="x", needs=None),
    ]


@scenario("t", settings="deployed")
def commits_as_deployed(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.commit("k", "p1", "p2"),
        later(
            clients,
            10.0,
            lambda: clients.change_schema("break", "f1", to=1),
            lambda: clients.rename("r", "f1"),
            lambda: clients.create("again", "f1"),
        ),
    ]


@scenario("a", "b")
def two_transactions_in_opposite_order(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.transact("k", "p1", needs=None),
        clients.transact("l", "p2", tables=("b", "a"), needs=None),
        clients.read("r1", "a", "b", "a"),
    ]


@scenario("a", "b")
def a_transaction_of_one_key_twice_and_a_commit(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.transact("k", "p1", "p2"),
        clients.commit("c", "p3", to="b", needs=None),
        later(clients, 1.0, lambda: clients.change_schema("break", "f1", to=1, table="a")),
        clients.read("r1", "a", "b"),
    ]


@scenario("a", "b")
def a_transaction_a_drop_and_a_rename(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.transact("k", "p1", "p2"),
        later(clients, 1.0, lambda: clients.drop("d", "p3", name="a"), lambda: clients.create("again", "p3", name="a")),
        later(clients, 1.0, lambda: clients.rename("r", "p4", name="b", to="c")),
    ]


@scenario("a", "b")
def a_transaction_and_a_rename_away(clients: SimulatedClients) -> list[Awaitable[None]]:
    """Nothing but its closing stands between a stalled transaction and the tables: no pointer shows the rename."""
    return [clients.transact("k", "p1", "p2"), later(clients, 1.0, lambda: clients.rename("r", "p3", name="b", to="c"))]


@scenario("a", "b")
def a_transaction_that_is_broken_and_mended(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.transact("k", "p1", "p2", "p3"),
        later(
            clients,
            0.7,
            lambda: clients.change_schema("break", "f1", to=1, table="b"),
            lambda: clients.change_schema("restore", "f1", to=0, table="b"),
        ),
    ]


@scenario("a")
def transactions_that_create_the_same_table(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.transact("k", "p1", "p2", tables=("a",), creates=("x", "y"), needs=None),
        clients.transact("l", "p3", tables=("a",), creates=("x",), needs=None),
        clients.create("c", "p4", name="y"),
        clients.read("r1", "a", "x"),
    ]


@scenario("a", "b")
def a_transaction_that_creates_beside_renames_from_and_to_its_name(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.transact("k", "p1", "p2", tables=("a",), creates=("x",), needs=None),
        clients.rename("r", "p3", name="b", to="x"),
        later(clients, 0.05, lambda: clients.rename("s", "p4", name="x", to="y")),
        clients.read("r1", "a", "x"),
    ]


@scenario("a", "b", settings="deployed")
def transactions_as_deployed(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.transact("k", "p1", "p2"),
        clients.transact("l", "p3", tables=("b", "a"), needs=None, key=False),
        later(clients, 20.0, lambda: clients.commit("c", "f1", to="a", needs=None)),
        clients.read("r1", "a", "b", times=8),
    ]


@scenario("a", "b")
def two_reconcilers_beside_everything(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.reconcile("w1"),
        clients.reconcile("w2"),
        clients.commit("k", "p1", "p2", to="a", needs=None),
        clients.transact("l", "p3", needs=None),
        later(
            clients,
            2.0,
            lambda: clients.rename("r", "p4", name="a", to="c"),
            lambda: clients.create("n", "p4", name="a"),
        ),
        later(clients, 2.0, lambda: clients.drop("d", "p5", name="b")),
    ]


@scenario("a")
def a_reconciler_beside_drops_and_undrops(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.reconcile("w1", times=5),
        clients.commit("k", "p1", "p2", to="a", needs=None),
        later(
            clients,
            1.0,
            lambda: clients.drop("d", "p3", name="a"),
            lambda: clients.undrop("u", "p3", name="a"),
            lambda: clients.commit("m", "p3", to="a", needs=None),
            lambda: clients.drop("e", "p3", name="a"),
        ),
    ]


# Requests of one process, which share registry commits (docs/decisions/0013-group-commit.md).


async def together(clients: SimulatedClients, process: str, *requests: Callable[[], Awaitable[None]]) -> None:
    """Requests that begin in one instant, with what their process remembers."""
    with suppress(NoSuchTable):
        await clients.warm(process)
    async with asyncio.TaskGroup() as group:
        for request in requests:
            group.create_task(_as_task(request()))


async def lock_held(clients: SimulatedClients, process: str, *, seconds: float) -> None:
    """Holds a process's lock of HEAD, as a request does whose call hangs."""
    group_committer = clients.fixture(clients.world.process(process)).catalog.group_committer
    assert group_committer is not None
    async with group_committer.lock(lambda: seconds):
        await clients.world.runtime.sleep(seconds)


@scenario("t")
def creates_beside_each_other(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        together(
            clients,
            "p1",
            lambda: clients.create("k", "p1", name="a"),
            lambda: clients.create("l", "p1", name="b"),
            lambda: clients.create("m", "p1", name="b"),
            lambda: clients.create("n", "p1", name="c", key=False),
            lambda: clients.create("o", "p1", "p2", name="d"),
        )
    ]


@scenario("t", "v")
def two_processes_whose_requests_share_commits(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        together(
            clients,
            "p1",
            lambda: clients.create("k", "p1", name="a"),
            lambda: clients.rename("l", "p1", name="t", to="x"),
            lambda: clients.drop("m", "p1", name="v"),
            lambda: clients.rename("n", "p1", name="t", to="y"),
        ),
        together(
            clients,
            "p2",
            lambda: clients.create("o", "p2", name="a"),
            lambda: clients.drop("p", "p2", name="t", key=False),
            lambda: clients.rename("q", "p2", name="v", to="x"),
        ),
    ]


@scenario("t")
def a_create_that_waits_while_it_is_overtaken(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        together(
            clients,
            "p1",
            lambda: clients.create("first", "p1", name="a"),
            lambda: clients.create("k", "p1", "p2", name="b"),
            lambda: clients.create("last", "p1", name="c"),
        ),
        later(clients, 1.0, lambda: clients.create("o", "p3", name="b"), lambda: clients.drop("d", "p3", name="b")),
    ]


@scenario("t")
def creates_that_wait_while_their_name_is_taken_and_freed(clients: SimulatedClients) -> list[Awaitable[None]]:
    """A create that does not wait for the lock any more reads a HEAD in which its name is taken, and is refused: so the
    drop that frees the name must not share its commit with it."""

    async def taken_and_freed() -> None:
        await clients.create("o", "p2", name="a", key=False)
        await clients.drop("d", "p1", name="a", key=False)

    creates = [partial(clients.create, principal, "p1", name="a", key=False) for principal in "klm"]
    return [lock_held(clients, "p1", seconds=10.0), together(clients, "p1", *creates, taken_and_freed)]


@scenario("t", "v", "w")
def drops_and_renames_that_share_commits(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        together(
            clients,
            "p1",
            lambda: clients.rename("k", "p1", "p2", name="v", to="u"),
            lambda: clients.drop("l", "p1", name="t"),
            lambda: clients.rename("m", "p1", name="w", to="u"),
            lambda: clients.drop("n", "p1", name="w"),
            lambda: clients.create("o", "p1", name="x"),
        ),
        clients.commit("p", "p2", to="t", needs=None),
        later(clients, 1.0, lambda: clients.create("q", "p1"), lambda: clients.drop("r", "p1", name="x")),
    ]


@scenario("t")
def a_transaction_beside_shared_commits(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        together(
            clients,
            "p1",
            lambda: clients.transact("k", "p1", tables=("t",), creates=("x", "y"), needs=None),
            lambda: clients.create("l", "p1", name="x"),
            lambda: clients.create("m", "p1", name="z"),
            lambda: clients.drop("n", "p1", name="t"),
        ),
        clients.rename("o", "p2", name="t", to="y"),
    ]


@scenario("t", settings="deployed")
def shared_commits_as_deployed(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        together(
            clients,
            "p1",
            lambda: clients.create("k", "p1", "p2", name="a"),
            lambda: clients.create("l", "p1", name="b"),
            lambda: clients.rename("m", "p1", name="t", to="c", key=False),
        ),
        later(clients, 10.0, lambda: clients.drop("d", "p1", name="a"), lambda: clients.create("n", "p1", name="a")),
        later(clients, 20.0, lambda: clients.create("o", "p1", name="b"), lambda: clients.drop("e", "p1", name="b")),
    ]


SHARED: tuple[Scenario, ...] = (
    creates_beside_each_other,
    two_processes_whose_requests_share_commits,
    a_create_that_waits_while_it_is_overtaken,
    creates_that_wait_while_their_name_is_taken_and_freed,
    drops_and_renames_that_share_commits,
    a_transaction_beside_shared_commits,
    shared_commits_as_deployed,
)

TRANSACTIONS: tuple[Scenario, ...] = (
    two_transactions_in_opposite_order,
    a_transaction_of_one_key_twice_and_a_commit,
    a_transaction_a_drop_and_a_rename,
    a_transaction_and_a_rename_away,
    a_transaction_that_is_broken_and_mended,
    transactions_that_create_the_same_table,
    a_transaction_that_creates_beside_renames_from_and_to_its_name,
    transactions_as_deployed,
)

SCENARIOS: tuple[Scenario, ...] = (
    one_keyed_commit,
    two_commits_of_one_key,
    three_commits_of_one_key_and_foreign_ones,
    a_warm_commit_beside_foreign_ones,
    a_verdict_on_what_a_process_remembers,
    commits_of_different_keys,
    commits_and_a_rename,
    commits_and_a_rename_away,
    commits_a_rename_and_a_new_table_of_the_name,
    commits_a_drop_and_a_new_table_of_the_name,
    commits_and_two_drops_of_one_key,
    two_creates_of_one_key_and_another,
    creates_of_one_key_and_a_drop,
    two_renames_of_one_key_and_one_back,
    renames_that_cross,
    commits_as_deployed,
    *TRANSACTIONS,
    two_reconcilers_beside_everything,
    a_reconciler_beside_drops_and_undrops,
    *SHARED,
)

REGISTRY: tuple[Scenario, ...] = (
    commits_a_drop_and_a_new_table_of_the_name,
    two_creates_of_one_key_and_another,
    creates_of_one_key_and_a_drop,
    two_renames_of_one_key_and_one_back,
    renames_that_cross,
    transactions_that_create_the_same_table,
    a_reconciler_beside_drops_and_undrops,
)
"""Those in which names change, and little else does."""
