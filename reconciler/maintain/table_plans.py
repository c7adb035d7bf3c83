"""Plans the maintenance of one table: reads policies and figures, and decides which procedures are due and which
are held back."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace

from arco_catalog.iceberg.errors import NoSuchNamespace, NoSuchTable
from arco_catalog.operations.listing import Paging
from arco_catalog.operations.policies.applicable import applicable_policies
from arco_catalog.planning.access import Securable
from arco_catalog.planning.names import dotted
from arco_catalog.planning.upkeep_policy import Policy
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import relation_entry
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.index import Namespace
from arco_catalog.tasks.execution import TaskFailed
from arco_catalog.upkeep.expiry import tables as expiry_tables
from arco_catalog.upkeep.neighbours import UNKNOWN_LOCATION, deletion_obstacle
from reconciler.compact.values import object_of
from reconciler.maintain.calls import Call, Procedure
from reconciler.maintain.figures import Figures, read_figures
from reconciler.maintain.files_elsewhere import is_inside
from reconciler.maintain.neighbours import find_file_elsewhere
from reconciler.maintain.planning import POLICY_OF, HeldBack, Now, Plan, Step, decide, plan

UNPAGED = Paging(None, None)
OUTSIDE = "it names a file outside of its locations: {}"


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table of the catalog: its namespace, name and entity id."""

    namespace: Namespace
    name: str
    entity: str

    def __str__(self) -> str:
        return dotted(self.namespace, self.name)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the table's full name: the levels of the namespace, followed by the name."""
        return (*self.namespace, self.name)


async def own_tables(session: Session) -> AsyncGenerator[TableRef, None]:
    """Iterates over every Iceberg table that has a pointer in this catalog, except those in the namespace `system` or
    below it, and new ones of a transaction that has not settled their names, decided or not."""
    async with aclosing(expiry_tables.own_tables(session, (await session.state.head()).index)) as tables:
        async for _, table in tables:
            yield TableRef(table.namespace, table.name, table.entry.entity)


async def policies_of(session: Session, table: TableRef) -> Mapping[str, Policy]:
    """Returns the enabled policies that apply to a table and that `maintain` executes, by type; empty if the table does
    not exist. Raises `InvalidPolicy` if the content of such a policy, enabled or not, is no JSON object; the settings
    in it are not parsed here."""
    types = {*POLICY_OF.values()}
    try:
        listed = await applicable_policies(session, Securable(table.namespace, table.name), None, UNPAGED)
    except (NoSuchTable, NoSuchNamespace):
        return {}
    known = [each for each in map(object_of, listed.items) if each.get("policy-type") in types]
    return {policy.type: policy for policy in map(Policy.of, known) if policy.enabled}


async def current_entry(session: Session, table: TableRef) -> RelationEntry | None:
    """Returns the table's entry in the registry; None if the name is gone, belongs to another entity, or is being
    changed by a transaction."""
    index = (await session.state.head()).index
    entry = await relation_entry(session.state, index, table.namespace, table.name)
    return entry if entry is not None and entry.entity == table.entity and entry.transaction is None else None


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A table with the plan of its maintenance, and with the figures and policies by which it was planned."""

    table: TableRef
    figures: Figures
    policies: Mapping[str, Policy]
    plan: Plan

    def limited_to(self, bytes_left: int | None) -> "TablePlan":
        """Returns this plan, unless its steps together rewrite more than `bytes_left` (None: no limit) and one of them
        rewrites data files. Then this step alone is limited to `bytes_left`, and held back if fewer than two files fit
        into that; the other steps are not limited."""
        others = [step for step in self.plan.steps if step.call.procedure is not Procedure.REWRITE_DATA_FILES]
        if bytes_left is None or self.plan.bytes <= bytes_left or len(others) == len(self.plan.steps):
            return self
        rewrite = decide(Procedure.REWRITE_DATA_FILES, self.figures, self.policies, Now(0, bytes_left=bytes_left))
        if isinstance(rewrite, Step):
            return replace(self, plan=Plan([rewrite, *others], self.plan.held_back))
        held_back = [rewrite] if rewrite is not None else []
        return replace(self, plan=Plan(others, [*held_back, *self.plan.held_back]))


async def plan_table(session: Session, table: TableRef, policies: Mapping[str, Policy], now: Now) -> TablePlan | None:
    """Reads a table, and plans every maintenance procedure for it; a procedure that may do harm to another table is
    held back. Returns None if the table does not exist, or a transaction is changing the name. Raises `NotFound` if the
    metadata file does not exist, `InternalError`, `Refusal` or `Unreadable` for a file that can't be read, and
    `StoreError`."""
    figures = await read_figures(session, table.entity)
    entry = await current_entry(session, table)
    if figures is None or entry is None:
        return None
    found = plan(figures, policies, now)
    steps: list[Step] = []
    held_back = [*found.held_back]
    for step in found.steps:
        allowed = await hold_back_if_unsafe(session, entry, figures, step)
        if isinstance(allowed, Step):
            steps.append(allowed)
        else:
            held_back.append(allowed)
    return TablePlan(table, figures, policies, Plan(steps, held_back))


async def decide_now(
    session: Session, table: TableRef, procedure: Procedure, now: Now
) -> tuple[Figures | None, Step | HeldBack | None]:
    """Reads the policies, the metadata and the manifests of a table anew, and decides about one procedure. Returns the
    figures (None if the table does not exist, or a transaction is changing the name) and the decision (None if the
    procedure is not due). Raises `NotFound` if the metadata file does not exist, `InvalidPolicy` for a policy with
    content that is no JSON object, `InternalError`, `Refusal` or `Unreadable` for a file that can't be read, and
    `StoreError`."""
    policies = await policies_of(session, table)
    figures = await read_figures(session, table.entity)
    entry = await current_entry(session, table)
    if figures is None or entry is None:
        return None, None
    decision = decide(procedure, figures, policies, now)
    return figures, await hold_back_if_unsafe(session, entry, figures, decision) if isinstance(
        decision, Step
    ) else decision


async def hold_back_if_unsafe(session: Session, entry: RelationEntry, figures: Figures, step: Step) -> Step | HeldBack:
    """Returns the step, or a `HeldBack` if it may delete files of another table (docs/design/pipeline.md#rule-11), or
    copy rows of another table's files into this one."""
    reason = (
        await _prevents_deletion(session, entry, figures, step.call)
        if step.call.procedure.deletes
        else _prevents_rewrite(entry, figures)
    )
    return step if reason is None else HeldBack(step.call.procedure, step.policy, reason)


async def _prevents_deletion(session: Session, entry: RelationEntry, figures: Figures, call: Call) -> str | None:
    """Returns the reason why a procedure that deletes files must not be called for a table: another table may have
    files at the table's locations, the table takes files from elsewhere, or it would delete outside of the locations
    that the registry has; or, for an expiry, a snapshot has a file outside of them, or files that can't be read. None
    if it may be called."""
    where = call.arguments.get("location", figures.location)
    for location in dict.fromkeys((figures.location, str(where))):
        obstacle = await deletion_obstacle(session, entry, location)
        if obstacle is not None:
            return obstacle
    if call.procedure is not Procedure.EXPIRE_SNAPSHOTS:
        return None
    try:
        elsewhere = await find_file_elsewhere(session, entry)
    except TaskFailed as failed:
        return str(failed)
    return None if elsewhere is None else OUTSIDE.format(elsewhere)


def _prevents_rewrite(entry: RelationEntry, figures: Figures) -> str | None:
    """Returns the reason why a procedure that rewrites files must not be called for a table: the table's location, or a
    file of the current snapshot, is outside of the entry's locations. None if it may be called."""
    locations = frozenset(entry.locations)
    if not is_inside(figures.location, locations):
        return UNKNOWN_LOCATION.format(figures.location)
    elsewhere = next((file for file in figures.elsewhere if not is_inside(file, locations)), None)
    return None if elsewhere is None else OUTSIDE.format(elsewhere)
