"""One table as a run finds it: which policies apply to it, what is due, and what is held back."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace

from arco_catalog.iceberg.errors import NoSuchNamespace, NoSuchTable
from arco_catalog.operations.listing import Paging
from arco_catalog.operations.policies.applicable import applicable_policies
from arco_catalog.planning.access import Securable
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import entries_in, relation_entry
from arco_catalog.state.entries import RelationEntry, has_pointer
from arco_catalog.state.index import Namespace
from arco_catalog.state.watermarks import NAMESPACE
from arco_catalog.tasks.execution import TaskFailed
from reconciler.compact.values import object_of
from reconciler.maintain.calls import Call, Procedure
from reconciler.maintain.figures import Figures, read_figures
from reconciler.maintain.files_elsewhere import is_inside
from reconciler.maintain.neighbours import UNKNOWN_PLACE, file_elsewhere, told_neighbour
from reconciler.maintain.planning import POLICY_OF, HeldBack, Now, Plan, Step, decide, plan
from reconciler.maintain.policies import Policy

EVERYTHING = Paging(None, None)
OUTSIDE = "it names a file outside of its places: {}"


@dataclass(frozen=True, slots=True)
class Named:
    """A table by its name, and the entity that it is."""

    namespace: Namespace
    name: str
    entity: str

    def __str__(self) -> str:
        return dotted(self.namespace, self.name)

    @property
    def parts(self) -> tuple[str, ...]:
        """The levels of its namespace, and its name."""
        return (*self.namespace, self.name)


async def own_tables(session: Session) -> AsyncGenerator[Named, None]:
    """Every Iceberg table of the catalog's own: none that follows another catalog's, none of `system`."""
    index = (await session.state.head()).index
    async with aclosing(entries_in(session.state, index, "relation\n")) as entries:
        async for key, said in entries:
            _, namespace, name = key.split("\n")
            levels, entry = tuple(namespace.split("\t")), RelationEntry(said)
            if entry.kind == "table" and has_pointer(said) and entry.transaction is None and levels[0] != NAMESPACE:
                yield Named(levels, name, entry.entity)


async def policies_of(session: Session, table: Named) -> Mapping[str, Policy]:
    """The policies that apply to a table, are enabled, and are carried out here, by their types; none where the table
    is gone. Raises `PolicyUnclear`."""
    types = {*POLICY_OF.values()}
    try:
        listed = await applicable_policies(session, Securable(table.namespace, table.name), None, EVERYTHING)
    except (NoSuchTable, NoSuchNamespace):
        return {}
    shown = [each for each in map(object_of, listed.items) if each.get("policy-type") in types]
    return {policy.type: policy for policy in map(Policy.of, shown) if policy.enabled}


async def still_there(session: Session, table: Named) -> RelationEntry | None:
    """What the registry says of the table; None where the name means it no longer."""
    index = (await session.state.head()).index
    entry = await relation_entry(session.state, index, table.namespace, table.name)
    return entry if entry is not None and entry.entity == table.entity and entry.transaction is None else None


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found of a table."""

    table: Named
    figures: Figures
    policies: Mapping[str, Policy]
    plan: Plan

    def within(self, bytes_left: int | None) -> "Looked":
        """The same with as much rewritten as a budget leaves."""
        if bytes_left is None or self.plan.bytes <= bytes_left:
            return self
        again = decide(Procedure.REWRITE_DATA_FILES, self.figures, self.policies, Now(0, bytes_left=bytes_left))
        others = [step for step in self.plan.steps if step.call.procedure is not Procedure.REWRITE_DATA_FILES]
        if isinstance(again, Step):
            return replace(self, plan=Plan([again, *others], self.plan.held_back))
        held_back = [again] if again is not None else []
        return replace(self, plan=Plan(others, [*held_back, *self.plan.held_back]))


async def look(session: Session, table: Named, policies: Mapping[str, Policy], now: Now) -> Looked | None:
    """What is due for a table now; None where it is gone. Raises as `read_figures` does."""
    figures = await read_figures(session, table.entity)
    entry = await still_there(session, table)
    if figures is None or entry is None:
        return None
    planned = plan(figures, policies, now)
    steps: list[Step] = []
    held_back = [*planned.held_back]
    for step in planned.steps:
        allowed = await guarded(session, entry, figures, step)
        if isinstance(allowed, Step):
            steps.append(allowed)
        else:
            held_back.append(allowed)
    return Looked(table, figures, policies, Plan(steps, held_back))


async def decided(
    session: Session, table: Named, procedure: Procedure, now: Now
) -> tuple[Figures | None, Step | HeldBack | None]:
    """The table's figures, None where it is gone, and whether one procedure is due by the policies of this moment."""
    policies = await policies_of(session, table)
    figures = await read_figures(session, table.entity)
    entry = await still_there(session, table)
    if figures is None or entry is None:
        return None, None
    decision = decide(procedure, figures, policies, now)
    return figures, await guarded(session, entry, figures, decision) if isinstance(decision, Step) else decision


async def guarded(session: Session, entry: RelationEntry, figures: Figures, step: Step) -> Step | HeldBack:
    """The step, unless it deletes files where others may have some (docs/design/pipeline.md#rule-11), or copies files
    of others."""
    reason = (
        await _prevents_deletion(session, entry, figures, step.call)
        if step.call.procedure.deletes
        else _prevents_rewrite(entry, figures)
    )
    return step if reason is None else HeldBack(step.call.procedure, step.policy, reason)


async def _prevents_deletion(session: Session, entry: RelationEntry, figures: Figures, call: Call) -> str | None:
    """Why a procedure that deletes files is not called; None if it may be."""
    where = call.arguments.get("location", figures.location)
    for location in dict.fromkeys((figures.location, str(where))):
        neighbour = await told_neighbour(session, entry, location)
        if neighbour is not None:
            return neighbour
    if call.procedure is not Procedure.EXPIRE_SNAPSHOTS:
        return None
    try:
        elsewhere = await file_elsewhere(session, entry)
    except TaskFailed as failed:
        return str(failed)
    return None if elsewhere is None else OUTSIDE.format(elsewhere)


def _prevents_rewrite(entry: RelationEntry, figures: Figures) -> str | None:
    """Why a procedure that rewrites files is not called; None if it may be."""
    locations = frozenset(entry.locations)
    if not is_inside(figures.location, locations):
        return UNKNOWN_PLACE.format(figures.location)
    elsewhere = next((file for file in figures.elsewhere if not is_inside(file, locations)), None)
    return None if elsewhere is None else OUTSIDE.format(elsewhere)
