"""Changes of the registry as proposals: one that still holds is what its plan would make on the later HEAD
(docs/design/registry.md#proposals)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from arco_catalog.iceberg.errors import Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.namespaces import create_namespace, drop_namespace, update_properties
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.proposals import Capacity, lead
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.protocol.mutation import NoOp, Prerequisite
from arco_catalog.protocol.registry_mutation import RegistryMutation, RegistryReadSet, registry_operation
from arco_catalog.state.needs import Needs
from arco_catalog.state.proposal import Proposal
from arco_catalog.state.reads import Reads, recorded
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.spilling import Limits
from tests.support.declared_index import DeclaredIndex, declaring
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema

Run = Callable[[CatalogFixture], Awaitable[object]]
ROOM = Capacity(128, 256 << 10)


def creation(name: str, namespace: tuple[str, ...] = NS, **more: str) -> Run:
    def run(fixture: CatalogFixture) -> Awaitable[object]:
        body: JsonObject = {"name": name, "schema": schema("x"), **more}
        return create_table(fixture.session(body), namespace, body)

    return run


REQUESTS: dict[str, Run] = {
    "create a namespace": lambda fixture: create_namespace(fixture.session(), ("new",), {}),
    "create a namespace in db": lambda fixture: create_namespace(fixture.session(), ("db", "new"), {}),
    "move db": lambda fixture: update_properties(
        fixture.session(), NS, [], {"location": "memory:///wh/warehouse/moved"}
    ),
    "set a property of db": lambda fixture: update_properties(fixture.session(), NS, [], {"a": "b"}),
    "drop an empty namespace": lambda fixture: drop_namespace(fixture.session(), ("empty",)),
    "create in the empty namespace": creation("t", ("empty",)),
    "create new": creation("new"),
    "create other": creation("other"),
    "create at a location": creation("placed", location="memory:///wh/warehouse/placed"),
    "create inside that location": creation("inside", location="memory:///wh/warehouse/placed/inside"),
    "drop t": lambda fixture: drop_table(fixture.session(), NS, "t", purge=False),
    "drop u": lambda fixture: drop_table(fixture.session(), NS, "u", purge=False),
    "rename t to new": lambda fixture: rename_table(fixture.session(), (NS, "t"), (NS, "new")),
    "rename u to v": lambda fixture: rename_table(fixture.session(), (NS, "u"), (NS, "v")),
    "restore dropped": lambda fixture: undrop(fixture.session(), NS, "dropped"),
}


@dataclass
class PlannedChange:
    """A change that was planned and not made."""

    mutation: RegistryMutation
    attempt: Attempt
    change: Change
    proposal: Proposal

    async def again(self, head: RegistryState) -> Change | NoOp | Prerequisite | None:
        """The plan of the same attempt on another HEAD, None if it fails there."""
        read_set = RegistryReadSet.at(self.mutation.state, head)
        if self.mutation.needs_base(read_set):
            await self.mutation.load_base(read_set)
        try:
            steps = self.mutation.change(read_set, self.attempt)
            return await carry_out(self.mutation.state, read_set.head.index, steps)
        except Refusal:
            return None


class NotMade(Exception):
    """The plan was taken before it was carried out."""


async def plan_only(fixture: CatalogFixture, request: Run) -> PlannedChange:
    """Plans a request on HEAD, by its own code, with an index that refuses undeclared lookups."""
    found: list[PlannedChange] = []

    async def plan(self: RegistryMutation, read_set: RegistryReadSet, attempt: Attempt) -> Any:
        index = DeclaredIndex(read_set.head.index)
        lookups: list[Needs] = []
        watched = replace(read_set, head=replace(read_set.head, index=index))
        steps = recorded(declaring(self.change(watched, attempt), index), lookups)
        change = await carry_out(self.state, index, steps)
        assert isinstance(change, Change)
        reads = Reads.of(read_set.head, lookups)
        operation = registry_operation(self.session, self.kind, attempt, change)
        sequence = read_set.head.sequence
        proposal = Proposal.of(read_set.head, operation, change.edits, reads, base=sequence, written_ms=0)
        found.append(PlannedChange(self, attempt, change, Proposal.parse(proposal.body, "proposal")))
        raise NotMade

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RegistryMutation, "plan", plan)
        with pytest.raises(NotMade):
            await request(fixture)
    return found[0]


async def prepared(limits: Limits | None = None) -> CatalogFixture:
    fixture = CatalogFixture()
    if limits is not None:
        fixture.settings = replace(fixture.settings, spill=limits)
        fixture = fixture.another()
    await fixture.namespace("db")
    await fixture.namespace("empty")
    for name in ("t", "u", "dropped"):
        await fixture.table(name)
    await drop_table(fixture.session(), NS, "dropped", purge=False)
    return fixture


HOLD_AFTER = {
    ("drop t", "drop u"),
    ("drop u", "rename t to new"),
    ("create new", "create other"),
    ("restore dropped", "create new"),
    ("rename u to v", "create at a location"),
    ("drop an empty namespace", "create a namespace in db"),
}
FAIL_AFTER = {
    ("drop t", "rename t to new"),
    ("create new", "rename t to new"),
    ("create new", "move db"),
    ("create other", "set a property of db"),
    ("drop an empty namespace", "create in the empty namespace"),
    ("create in the empty namespace", "drop an empty namespace"),
    ("create at a location", "create inside that location"),
    ("create inside that location", "create at a location"),
    ("create a namespace", "create a namespace"),
    ("rename u to v", "drop u"),
}


@pytest.mark.parametrize("limits", [None, Limits(embedded=64, segment=512, least=64)], ids=["small", "spilled"])
async def test_a_proposal_that_still_holds_is_what_its_plan_would_make(limits: Limits | None) -> None:
    held: set[tuple[str, str]] = set()
    failed: set[tuple[str, str]] = set()
    for later, make in REQUESTS.items():
        fixture = await prepared(limits)
        plans = {name: await plan_only(fixture.another(), request) for name, request in REQUESTS.items()}
        await make(fixture.another())
        state = fixture.another().session().state
        head = await state.head()
        for name, planned in plans.items():
            now = replace(head, place=3)
            if not await carry_out(state, head.index, planned.proposal.still_holds(now)):
                failed.add((name, later))
                continue
            held.add((name, later))
            again = await planned.again(now)
            assert isinstance(again, Change), (name, later)
            assert again.edits == planned.proposal.changes_on(now), (name, later)
            assert again.may_replace(planned.change), (name, later)
    assert held >= HOLD_AFTER
    assert failed >= FAIL_AFTER


async def test_all_that_a_leader_takes_in_is_what_the_plans_would_make_one_after_the_other() -> None:
    fixture = await prepared()
    plans = [await plan_only(fixture.another(), request) for request in REQUESTS.values()]
    by_attempt = {planned.attempt.id: planned for planned in plans}
    state = fixture.another().session().state
    head = await state.head()

    leading = await carry_out(
        state, head.index, lead(head, [planned.proposal for planned in plans], ROOM, read_ms=0, lifetime_ms=1)
    )

    index = head.index
    for place, operation in enumerate(leading.operations):
        planned = by_attempt[operation.id]
        again = await planned.again(replace(head, index=index, place=place))
        assert isinstance(again, Change)
        assert again.edits == planned.proposal.changes_on(replace(head, place=place))
        index = index.edited(again.edits)
    assert [*index.scan("")] == [*head.index.edited(leading.changes).scan("")]
    taken = {operation.id for operation in leading.operations}
    assert taken | {*leading.cancels} == {*by_attempt}
    assert taken.isdisjoint(leading.cancels)
    assert len(taken) > 2
