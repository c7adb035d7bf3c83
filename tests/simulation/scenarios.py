"""What two, three and more writers do to one catalog at the same time (issue: every crash point of every protocol).

Each scenario sets up a table before anything can go wrong, lets its writers go, and closes the auditor's books.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from arco_catalog.iceberg.errors import NoSuchTable
from arco_catalog.operations.catalog import Settings
from arco_catalog.state.spilling import Limits
from tests.simulation.clients import AS_DEPLOYED, EAGER, Office
from tests.simulation.explore import Scenario
from tests.simulation.world import World


def scenario(*tables: str, settings: str = "eager") -> Callable[[Callable[[Office], list[Awaitable[None]]]], Scenario]:
    """Runs what the decorated function lists, all at once."""

    def decorate(requests: Callable[[Office], list[Awaitable[None]]]) -> Scenario:
        chosen = EAGER if settings == "eager" else AS_DEPLOYED
        run = _played(requests, tables, chosen, requests.__name__)
        _SPILLED[run] = _played(requests, tables, replace(chosen, spill=TINY), f"{requests.__name__}, spilled")
        return run

    return decorate


def _played(
    requests: Callable[[Office], list[Awaitable[None]]], tables: tuple[str, ...], settings: Settings, name: str
) -> Scenario:
    async def run(world: World) -> None:
        office = Office(world, settings)
        await office.set_up(*tables)
        async with asyncio.TaskGroup() as clients:
            for request in requests(office):
                clients.create_task(_as_task(request))
        await office.close()

    run.__qualname__ = name
    return run


TINY = Limits(embedded=0, segment=300)
"""So small that every registry commit rewrites a segment, and some cut one in two."""
_SPILLED: dict[Scenario, Scenario] = {}


def spilled(scenario: Scenario) -> Scenario:
    """The same, with an index that is spilled from the first commit on."""
    return _SPILLED[scenario]


async def _as_task(request: Awaitable[None]) -> None:
    await request


async def later(office: Office, seconds: float, *requests: Callable[[], Awaitable[None]]) -> None:
    """Requests one after the other, the first after a while."""
    for request in requests:
        await office.world.runtime.sleep(seconds * office.world.runtime.random())
        await request()


@scenario("t")
def one_keyed_commit(office: Office) -> list[Awaitable[None]]:
    return [office.commit("k", "p1")]


@scenario("t")
def two_commits_of_one_key(office: Office) -> list[Awaitable[None]]:
    return [office.commit("k", "p1", "p2")]


@scenario("t")
def three_commits_of_one_key_and_foreign_ones(office: Office) -> list[Awaitable[None]]:
    return [
        office.commit("k", "p1", "p2", "p3"),
        later(
            office,
            2.0,
            lambda: office.change_schema("break", "f1", to=1),
            lambda: office.change_schema("restore", "f1", to=0),
        ),
    ]


@scenario("t")
def a_warm_commit_beside_foreign_ones(office: Office) -> list[Awaitable[None]]:
    async def warm() -> None:
        await office.warm("p1")
        await office.commit("k", "p1", "p2")

    return [
        warm(),
        later(
            office,
            0.5,
            lambda: office.change_schema("break", "f1", to=1),
            lambda: office.change_schema("restore", "f1", to=0),
            lambda: office.change_schema("break again", "f1", to=1),
            lambda: office.change_schema("restore again", "f1", to=0),
        ),
    ]


@scenario("t")
def a_verdict_on_what_a_process_remembers(office: Office) -> list[Awaitable[None]]:
    async def one_after_the_other() -> None:
        await office.change_schema("break", "f1", to=1)
        await office.warm("p1")
        await office.change_schema("restore", "f2", to=0)
        await office.commit("k", "p1")

    return [one_after_the_other()]


@scenario("t")
def commits_of_different_keys(office: Office) -> list[Awaitable[None]]:
    return [
        office.commit("a", "p1", needs=None),
        office.commit("b", "p2", needs=None),
        office.commit("c", "p3", needs=None, key=False),
    ]


@scenario("t")
def commits_and_a_rename(office: Office) -> list[Awaitable[None]]:
    return [
        office.commit("k", "p1", "p2"),
        later(office, 1.0, lambda: office.rename("r", "p3"), lambda: office.commit("on u", "p3", to="u", needs=None)),
    ]


@scenario("t")
def commits_and_a_rename_away(office: Office) -> list[Awaitable[None]]:
    """Nobody commits under the new name: only a fence stands between a late compare-and-swap and the table."""
    return [office.commit("k", "p1", "p2"), later(office, 1.0, lambda: office.rename("r", "p3"))]


@scenario("t")
def commits_a_rename_and_a_new_table_of_the_name(office: Office) -> list[Awaitable[None]]:
    return [
        office.commit("k", "p1", "p2"),
        later(
            office,
            1.0,
            lambda: office.rename("r", "p3"),
            lambda: office.create("again", "p3"),
            lambda: office.commit("on u", "p3", to="u", needs=None),
        ),
    ]


@scenario("t")
def commits_a_drop_and_a_new_table_of_the_name(office: Office) -> list[Awaitable[None]]:
    return [
        office.commit("k", "p1", "p2"),
        later(office, 1.0, lambda: office.drop("d", "p3"), lambda: office.create("again", "p3")),
    ]


@scenario("t")
def commits_and_two_drops_of_one_key(office: Office) -> list[Awaitable[None]]:
    return [office.commit("k", "p1"), office.drop("d", "p2", "p3")]


@scenario()
def two_creates_of_one_key_and_another(office: Office) -> list[Awaitable[None]]:
    return [office.create("k", "p1", "p2"), office.create("other", "p3")]


@scenario()
def creates_of_one_key_and_a_drop(office: Office) -> list[Awaitable[None]]:
    return [
        office.create("k", "p1", "p2"),
        later(office, 1.0, lambda: office.drop("d", "p3"), lambda: office.create("again", "p3")),
    ]


@scenario("t")
def two_renames_of_one_key_and_one_back(office: Office) -> list[Awaitable[None]]:
    return [
        office.rename("k", "p1", "p2"),
        later(office, 1.5, lambda: office.rename("back", "p3", name="u", to="t")),
    ]


@scenario("t", "v")
def renames_that_cross(office: Office) -> list[Awaitable[None]]:
    return [
        office.rename("a", "p1", "p2", name="t", to="x"),
        office.rename("b", "p3", name="v", to="x"),
        office.commit("k", "p4", to="x", needs=None),
    ]


@scenario("t", settings="deployed")
def commits_as_deployed(office: Office) -> list[Awaitable[None]]:
    return [
        office.commit("k", "p1", "p2"),
        later(
            office,
            10.0,
            lambda: office.change_schema("break", "f1", to=1),
            lambda: office.rename("r", "f1"),
            lambda: office.create("again", "f1"),
        ),
    ]


@scenario("a", "b")
def two_transactions_in_opposite_order(office: Office) -> list[Awaitable[None]]:
    return [
        office.transact("k", "p1", needs=None),
        office.transact("l", "p2", tables=("b", "a"), needs=None),
        office.read("r1", "a", "b", "a"),
    ]


@scenario("a", "b")
def a_transaction_of_one_key_twice_and_a_commit(office: Office) -> list[Awaitable[None]]:
    return [
        office.transact("k", "p1", "p2"),
        office.commit("c", "p3", to="b", needs=None),
        later(office, 1.0, lambda: office.change_schema("break", "f1", to=1, table="a")),
        office.read("r1", "a", "b"),
    ]


@scenario("a", "b")
def a_transaction_a_drop_and_a_rename(office: Office) -> list[Awaitable[None]]:
    return [
        office.transact("k", "p1", "p2"),
        later(office, 1.0, lambda: office.drop("d", "p3", name="a"), lambda: office.create("again", "p3", name="a")),
        later(office, 1.0, lambda: office.rename("r", "p4", name="b", to="c")),
    ]


@scenario("a", "b")
def a_transaction_and_a_rename_away(office: Office) -> list[Awaitable[None]]:
    """Nothing but its closing stands between a stalled transaction and the tables: no pointer shows the rename."""
    return [office.transact("k", "p1", "p2"), later(office, 1.0, lambda: office.rename("r", "p3", name="b", to="c"))]


@scenario("a", "b")
def a_transaction_that_is_broken_and_mended(office: Office) -> list[Awaitable[None]]:
    return [
        office.transact("k", "p1", "p2", "p3"),
        later(
            office,
            0.7,
            lambda: office.change_schema("break", "f1", to=1, table="b"),
            lambda: office.change_schema("restore", "f1", to=0, table="b"),
        ),
    ]


@scenario("a")
def transactions_that_create_the_same_table(office: Office) -> list[Awaitable[None]]:
    return [
        office.transact("k", "p1", "p2", tables=("a",), creates=("x", "y"), needs=None),
        office.transact("l", "p3", tables=("a",), creates=("x",), needs=None),
        office.create("c", "p4", name="y"),
        office.read("r1", "a", "x"),
    ]


@scenario("a", "b")
def a_transaction_that_creates_beside_renames_from_and_to_its_name(office: Office) -> list[Awaitable[None]]:
    return [
        office.transact("k", "p1", "p2", tables=("a",), creates=("x",), needs=None),
        office.rename("r", "p3", name="b", to="x"),
        later(office, 0.05, lambda: office.rename("s", "p4", name="x", to="y")),
        office.read("r1", "a", "x"),
    ]


@scenario("a", "b", settings="deployed")
def transactions_as_deployed(office: Office) -> list[Awaitable[None]]:
    return [
        office.transact("k", "p1", "p2"),
        office.transact("l", "p3", tables=("b", "a"), needs=None, key=False),
        later(office, 20.0, lambda: office.commit("c", "f1", to="a", needs=None)),
        office.read("r1", "a", "b", times=8),
    ]


@scenario("a", "b")
def two_reconcilers_beside_everything(office: Office) -> list[Awaitable[None]]:
    return [
        office.reconcile("w1"),
        office.reconcile("w2"),
        office.commit("k", "p1", "p2", to="a", needs=None),
        office.transact("l", "p3", needs=None),
        later(
            office, 2.0, lambda: office.rename("r", "p4", name="a", to="c"), lambda: office.create("n", "p4", name="a")
        ),
        later(office, 2.0, lambda: office.drop("d", "p5", name="b")),
    ]


@scenario("a")
def a_reconciler_beside_drops_and_undrops(office: Office) -> list[Awaitable[None]]:
    return [
        office.reconcile("w1", times=5),
        office.commit("k", "p1", "p2", to="a", needs=None),
        later(
            office,
            1.0,
            lambda: office.drop("d", "p3", name="a"),
            lambda: office.undrop("u", "p3", name="a"),
            lambda: office.commit("m", "p3", to="a", needs=None),
            lambda: office.drop("e", "p3", name="a"),
        ),
    ]


# Requests of one process, which share registry commits (docs/decisions/0013-group-commit.md).


async def together(office: Office, process: str, *requests: Callable[[], Awaitable[None]]) -> None:
    """Requests that begin in one instant, with what their process remembers."""
    with suppress(NoSuchTable):
        await office.warm(process)
    async with asyncio.TaskGroup() as clients:
        for request in requests:
            clients.create_task(_as_task(request()))


@scenario("t")
def creates_beside_each_other(office: Office) -> list[Awaitable[None]]:
    return [
        together(
            office,
            "p1",
            lambda: office.create("k", "p1", name="a"),
            lambda: office.create("l", "p1", name="b"),
            lambda: office.create("m", "p1", name="b"),
            lambda: office.create("n", "p1", name="c", key=False),
            lambda: office.create("o", "p1", "p2", name="d"),
        )
    ]


@scenario("t", "v")
def two_processes_whose_requests_share_commits(office: Office) -> list[Awaitable[None]]:
    return [
        together(
            office,
            "p1",
            lambda: office.create("k", "p1", name="a"),
            lambda: office.rename("l", "p1", name="t", to="x"),
            lambda: office.drop("m", "p1", name="v"),
            lambda: office.rename("n", "p1", name="t", to="y"),
        ),
        together(
            office,
            "p2",
            lambda: office.create("o", "p2", name="a"),
            lambda: office.drop("p", "p2", name="t", key=False),
            lambda: office.rename("q", "p2", name="v", to="x"),
        ),
    ]


@scenario("t")
def a_create_that_waits_while_it_is_overtaken(office: Office) -> list[Awaitable[None]]:
    return [
        together(
            office,
            "p1",
            lambda: office.create("first", "p1", name="a"),
            lambda: office.create("k", "p1", "p2", name="b"),
            lambda: office.create("last", "p1", name="c"),
        ),
        later(office, 1.0, lambda: office.create("o", "p3", name="b"), lambda: office.drop("d", "p3", name="b")),
    ]


@scenario("t", "v", "w")
def drops_and_renames_that_share_commits(office: Office) -> list[Awaitable[None]]:
    return [
        together(
            office,
            "p1",
            lambda: office.rename("k", "p1", "p2", name="v", to="u"),
            lambda: office.drop("l", "p1", name="t"),
            lambda: office.rename("m", "p1", name="w", to="u"),
            lambda: office.drop("n", "p1", name="w"),
            lambda: office.create("o", "p1", name="x"),
        ),
        office.commit("p", "p2", to="t", needs=None),
        later(office, 1.0, lambda: office.create("q", "p1"), lambda: office.drop("r", "p1", name="x")),
    ]


@scenario("t")
def a_transaction_beside_shared_commits(office: Office) -> list[Awaitable[None]]:
    return [
        together(
            office,
            "p1",
            lambda: office.transact("k", "p1", tables=("t",), creates=("x", "y"), needs=None),
            lambda: office.create("l", "p1", name="x"),
            lambda: office.create("m", "p1", name="z"),
            lambda: office.drop("n", "p1", name="t"),
        ),
        office.rename("o", "p2", name="t", to="y"),
    ]


@scenario("t", settings="deployed")
def shared_commits_as_deployed(office: Office) -> list[Awaitable[None]]:
    return [
        together(
            office,
            "p1",
            lambda: office.create("k", "p1", "p2", name="a"),
            lambda: office.create("l", "p1", name="b"),
            lambda: office.rename("m", "p1", name="t", to="c", key=False),
        ),
        later(office, 10.0, lambda: office.drop("d", "p1", name="a"), lambda: office.create("n", "p1", name="a")),
        later(office, 20.0, lambda: office.create("o", "p1", name="b"), lambda: office.drop("e", "p1", name="b")),
    ]


SHARED: tuple[Scenario, ...] = (
    creates_beside_each_other,
    two_processes_whose_requests_share_commits,
    a_create_that_waits_while_it_is_overtaken,
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
