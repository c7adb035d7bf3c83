"""Hints that tasks of the registry have lost: without one no worker finds a task (docs/design/collection.md#hints)."""

from collections.abc import Sequence
from contextlib import aclosing

from arco_catalog.operations.tasks import missing_hint
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.index import level
from arco_catalog.state.task_log import all_hints, put_hint
from arco_catalog.upkeep.collection.names import Names
from arco_catalog.upkeep.collection.run import BATCH, Run


async def put_missing_hints(run: Run) -> None:
    """Puts the hint of each task that the registry names and no hint leads to, unless it has ended. HEAD is read before
    hints are listed: those of all that it names were there by then. A dry run counts them."""
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
    """Looks at each of these tasks: a hint may have been put meanwhile, or another in place of the one that was."""
    missing = await run.each(tasks, lambda task: run.judged(f"task {task}", missing_hint(run.session, task)))
    for task, due_ms in zip(tasks, missing, strict=True):
        if due_ms is None:
            continue
        if run.delete:
            run.go_on()
            await put_hint(run.session.state, task, due_ms)
        run.stats.hints_put += 1
