"""Messages for operators about a purge that another table blocks: which table it is, and what to do
(docs/design/purge.md#rule-14)."""

from contextlib import aclosing

from arco_catalog.planning.names import dotted
from arco_catalog.planning.purge import InTheWay
from arco_catalog.state.fields import text
from arco_catalog.tasks.execution import Execution
from arco_catalog.upkeep.purge.sharing import other_relations


async def describe_overlap(execution: Execution, conflict: InTheWay) -> str:
    """Describes, for the operator, which other table prevents the purge, by a location that overlaps that of the purged
    table or by files that it borrows from there, and what to do. Raises `StoreError`."""
    table = f"{await _name_of(execution, conflict)} (entity {conflict.entity})"
    if conflict.borrows:
        return describe_sharer(execution, f"{table} takes files from {conflict.place}")
    dropped = ", which was dropped" if conflict.dropped else ""
    return (
        f"{conflict.place} overlaps the location of {table}{dropped}: {_on_spark(execution)}. To drop that table too "
        "does not help, since each would prevent the purge of the other"
    )


def describe_sharer(execution: Execution, sharer: str) -> str:
    """Describes, for the operator, that another table uses files of the table to purge, and what to do. `sharer` is a
    clause that names both: "db.t has the file F"."""
    return (
        f"{sharer}: drop that table with purge, and when it is purged run `arco tasks retry {execution.task.id}`; or "
        f"{_on_spark(execution)}"
    )


def _on_spark(execution: Execution) -> str:
    """Returns the advice to purge on Spark."""
    return f"`arco tasks run {execution.task.id} --spark` purges this table, and keeps the files that other tables use"


async def _name_of(execution: Execution, conflict: InTheWay) -> str:
    """Returns the dotted name of the table that blocks a purge, from the conflict itself or else from the registry,
    whose names it then reads one by one; "a table without a name" if neither has it."""
    if len(conflict.name) > 1:
        return dotted(conflict.name[:-1], conflict.name[-1])
    async with aclosing(other_relations(execution, "")) as relations:
        async for name, entry in relations:
            if text(entry, "entity") == conflict.entity:
                return name
    return "a table without a name"
