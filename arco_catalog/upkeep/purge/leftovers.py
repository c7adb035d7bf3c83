"""Counts or deletes the files that are left at the locations of a table after a purge
(docs/design/purge.md#rule-13)."""

from collections.abc import Iterable
from contextlib import aclosing

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.files import MAX_EXAMPLES, OtherObjects
from arco_catalog.state.purge_progress import Progress
from arco_catalog.tasks.execution import Execution, TaskFailed
from arco_catalog.upkeep.purge.reach import ReachedFile
from arco_catalog.upkeep.purge.removal import Removal

AT_A_TIME = 1_000
"""Files in a batch to delete."""


async def audit(execution: Execution, locations: Iterable[str]) -> JsonObject:
    """Counts the files at these locations, also ones without a key in this catalog, and returns their number and some
    examples as the fields `left_behind` and `left_behind_examples` of a result. Raises `StoreError`."""
    count, examples = 0, list[JsonValue]()
    for location in locations:
        others = OtherObjects()
        async with aclosing(execution.session().files.listed(location, others)) as found_there:
            async for file, _ in found_there:
                count += 1
                if len(examples) < MAX_EXAMPLES:
                    examples.append(file)
        count += others.number
        examples += others.examples[: MAX_EXAMPLES - len(examples)]
    return {"left_behind": count, "left_behind_examples": examples}


def require_all_addressable(progress: Progress) -> None:
    """Raises `TaskFailed` if the purge has found a file that has no key in this catalog, so that it was not deleted
    (docs/design/purge.md#rule-26)."""
    if progress.unaddressable:
        raise TaskFailed(
            f"{progress.unaddressable} files of the table were not deleted, the first is "
            f"{progress.unaddressable_examples[0]}: the name has an empty level ('//'), '.' or '..', and this catalog "
            f"has no key for it. Delete such files with the store's own tools: the other {progress.files} were deleted"
        )


async def empty(execution: Execution, location: str, progress: Progress) -> Progress:
    """Deletes all files that have a key in this catalog at a location that was made for the table alone
    (docs/design/purge.md#rule-17). Saves the purge's progress with their counts in the checkpoint, and returns it.
    Raises `LeaseLost`, and `StoreError`."""
    removal = Removal(execution, [location], progress)
    batch: list[ReachedFile] = []
    async with aclosing(execution.session().files.listed(location)) as found_there:
        async for file, size in found_there:
            batch.append(ReachedFile(file, size))
            if len(batch) == AT_A_TIME:
                await removal.delete(batch)
                batch.clear()
    await removal.delete(batch)
    await execution.save(removal.progress.to_json())
    return removal.progress
