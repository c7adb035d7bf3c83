"""The auditor explains a refusal by the states since the request was sent, and not by the present one."""

import pytest

from arco_catalog.iceberg.errors import CommitFailed, NoSuchTable
from arco_catalog.protocol import operation_request
from arco_catalog.upkeep.collection.collect import collect
from tests.simulation.auditor import Ask
from tests.simulation.collecting import KEY_MS, RETENTION, CollectingClients
from tests.simulation.explore import Scenario, trace
from tests.simulation.world import World

UNDECIDED = CommitFailed("A transaction over the same table or name is under way, and not decided yet: try again")
REFUSAL = NoSuchTable("Nothing was dropped under db.t")


def undrop() -> Ask:
    return Ask("u1", "undrop", ("t",), undoes=True)


async def an_undrop_that_is_sent_before_the_drop(world: World) -> None:
    clients = CollectingClients(world)
    await clients.set_up("t")
    ask = clients.auditor.ask(undrop())
    await clients.quiet(1)
    await clients.drop("d1", "setup")
    clients.auditor.refused(ask, REFUSAL)


async def an_undrop_that_is_sent_after_the_drop(world: World) -> None:
    clients = CollectingClients(world)
    await clients.set_up("t")
    await clients.drop("d1", "setup")
    await clients.quiet(1)
    clients.auditor.refused(clients.auditor.ask(undrop()), REFUSAL)


async def an_undrop_that_outlives_the_tombstone(world: World) -> None:
    clients = CollectingClients(world)
    await clients.set_up("t")
    await clients.drop("d1", "setup")
    ask = clients.auditor.ask(undrop())
    await clients.quiet(2 * RETENTION.undrop_ms / 1_000)
    await collect(clients.fixture(world.process("setup")).session(), delete=True)
    clients.auditor.refused(ask, REFUSAL)


async def a_commit_refused_during_a_transaction(world: World) -> None:
    clients = CollectingClients(world)
    await clients.set_up("t", "u")
    ask = clients.auditor.ask(Ask("c1", "commit", ("t",)))
    await clients.transact("x1", "setup", tables=("t", "u"))
    clients.auditor.refused(ask, UNDECIDED)


async def a_commit_refused_after_a_transaction(world: World) -> None:
    clients = CollectingClients(world)
    await clients.set_up("t", "u")
    await clients.transact("x1", "setup", tables=("t", "u"))
    await clients.quiet(1)
    clients.auditor.refused(clients.auditor.ask(Ask("c1", "commit", ("t",))), UNDECIDED)


async def a_commit_refused_during_a_transaction_over_others(world: World) -> None:
    clients = CollectingClients(world)
    await clients.set_up("t", "u", "v")
    ask = clients.auditor.ask(Ask("c1", "commit", ("v",)))
    await clients.transact("x1", "setup", tables=("t", "u"))
    clients.auditor.refused(ask, UNDECIDED)


@pytest.fixture(autouse=True)
def short_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation_request, "DAY_MS", KEY_MS)


@pytest.mark.parametrize("scenario", [an_undrop_that_is_sent_before_the_drop, an_undrop_that_outlives_the_tombstone])
def test_a_refused_undrop_is_explained_by_an_instant_in_which_there_was_no_tombstone(scenario: Scenario) -> None:
    trace(scenario)


def test_a_refused_undrop_is_not_explained_while_there_is_a_tombstone() -> None:
    with pytest.raises(AssertionError, match="never true"):
        trace(an_undrop_that_is_sent_after_the_drop)


def test_a_refusal_is_explained_by_a_transaction_that_was_undecided_meanwhile() -> None:
    trace(a_commit_refused_during_a_transaction)


@pytest.mark.parametrize(
    "scenario", [a_commit_refused_after_a_transaction, a_commit_refused_during_a_transaction_over_others]
)
def test_a_refusal_is_not_explained_by_another_transaction(scenario: Scenario) -> None:
    with pytest.raises(AssertionError, match="never true"):
        trace(scenario)
