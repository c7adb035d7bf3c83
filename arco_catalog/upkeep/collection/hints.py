"""Puts missing hints of tasks that the registry names: without a hint no worker finds its task
(docs/design/collection.md#hints)."""

from collections.abc import Sequence
from contextlib import aclosing

from arco_catalog.operations.tasks import missing_hint
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.index import level
from arco_catalog.state.task_log import all_hints, put_hint
from arco_catalog.upkeep.collection.names import Names
from arco_catalog.upkeep.collection.run import BATCH, Run


async def put_missing_hints(run: Run) -> None:
    """Puts the missing hints of tasks: a task that the registry names, and that is not over, must have a hint. HEAD is
    read before the hints are listed, so the listing has the hints of all tasks in HEAD. A dry run counts the missing
    hints."""
    state = run.session.state
    head, hinted = await state.head(), Names()
    async with aclosing(all_hints(state)) as hints:
        async for hint in hints:
            hinted.add(hint.task)
    prefix, unhinted = level("task", ()), list[str]()
    async with aclosing(entries_in(state, head.index, prefix)) as entries:
        async for key, _ in entries:
            task = key.removeprefix(prefix)
            if task not in hinted:
                unhinted.append(task)
            if len(unhinted) >= BATCH:
                await _put(run, unhinted)
                unhinted = []
    await _put(run, unhinted)


async def _put(run: Run, tasks: Sequence[str]) -> None:
    """Rereads these tasks, since another process may have put a hint since the listing; counts the hints that are still
    missing, and puts them. A dry run only counts. A task that can't be read adds to the unreadable ones."""
    missing = await run.each(tasks, lambda task: run.unless_unreadable(f"task {task}", missing_hint(run.session, task)))
    for task, due_ms in zip(tasks, missing, strict=True):
        if due_ms is None:
            continue
        if run.delete:
            run.check_may_continue()
            await put_hint(run.session.state, task, due_ms)
        run.stats.hints_put += 1
