"""Messages for operators about a purge that another table blocks: which table it is, and what to do
(docs/design/purge.md#rule-14)."""

from contextlib import aclosing

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.names import dotted
from arco_catalog.planning.purge import InTheWay
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.fields import text
from arco_catalog.tasks.execution import Execution
from arco_catalog.upkeep.purge.sharing import other_relations


async def describe_overlap(execution: Execution, conflict: InTheWay) -> str:
    """Describes, for the operator, which other table prevents the purge, by a location that overlaps that of the purged
    table or by files that it borrows from there, and what to do. Raises `StoreError`."""
    name, entry = await _find(execution, conflict)
    table = f"{name} (entity {conflict.entity})"
    if conflict.borrows:
        return describe_sharer(execution, f"{table} takes files from {conflict.place}")
    overlap = f"{conflict.place} overlaps the location of {table}{', which was dropped' if conflict.dropped else ''}"
    if entry is not None and not has_pointer(entry):
        return (
            f"{overlap}, and this catalog does not know the files of that table, which is of another format or another "
            f"catalog's: when it is dropped, and a collection has deleted the entry of the drop, run "
            f"`arco tasks retry {execution.task.id}`"
        )
    return (
        f"{overlap}: {_on_spark(execution)}. To drop that table too does not help, since each would prevent the purge "
        "of the other"
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


async def _find(execution: Execution, conflict: InTheWay) -> tuple[str, JsonObject | None]:
    """Returns the dotted name of the table that blocks a purge, and its entry or tombstone, for which it reads the
    registry entry by entry. Returns None in place of the entry if it was deleted since then; the name is then the
    conflict's, or else "a table without a name"."""
    async with aclosing(other_relations(execution, "")) as relations:
        async for name, entry in relations:
            if text(entry, "entity") == conflict.entity:
                return name, entry
    return dotted(conflict.name[:-1], conflict.name[-1]) if len(conflict.name) > 1 else "a table without a name", None
