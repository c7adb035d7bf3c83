"""The versions of tasks in the store, and the hints by which the next worker finds what is due
(docs/design/tasks.md#tasks)."""

import heapq
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.state.access import State
from arco_catalog.state.age import has_passed
from arco_catalog.state.task import LEASED, Task
from storage_backends import ABSENT, Applied, Cursor, Found, Listed, PreconditionFailed

LOST_HINT_MS = 3_600_000
"""How old a hint must be before anybody doubts that there is such a task."""
RETRIES = 100
"""How often the last version is looked for anew, because it is gone by the time that it is read."""


@dataclass(frozen=True, slots=True)
class StoredTask:
    """The last version of a task, with the store's times of that object and of the answer."""

    task: Task
    written_ms: int
    now_ms: int

    @property
    def is_held(self) -> bool:
        """Whether a worker's lease on it may not have run out yet."""
        return self.task.status in LEASED and not has_passed(self.now_ms - self.written_ms, self.task.lease_ms)


@dataclass(frozen=True, slots=True)
class Hint:
    """A hint that a task is to be looked at from a time on, with the store's times of that object and of the answer."""

    key: str
    task: str
    not_before_ms: int
    written_ms: int
    now_ms: int


async def read_task(state: State, task: str) -> StoredTask | None:
    """A task as it is now; None if no version of it was stored yet. Raises `StoreUnavailable`, and `InternalError` for
    one that can't be read."""
    for _ in range(RETRIES):
        last = max([_number(listed.key) async for listed, _ in _listed(state, state.paths.task(task))], default=None)
        if last is None:
            return None
        key = state.paths.task_version(task, last)
        found = await state.store.get(key)
        if isinstance(found, Found):
            return StoredTask(Task.parse(found.body, key), found.written_ms, found.now_ms)
    raise InternalError(f"the last version of task {task} can't be read")


async def append_task(state: State, task: Task) -> int | None:
    """Creates this version of a task. Returns a time by the store's clock at which it was there, not before it was
    written; None if somebody else has created that version. Raises `StoreError` if that is not known: the version may
    be there, or may come to be."""
    key = state.paths.task_version(task.id, task.number)
    while True:
        match await state.store.put(key, task.body, ABSENT):
            case Applied(_, now_ms):
                return now_ms
            case PreconditionFailed():  # perhaps our own echo (docs/design/store.md#rule-1)
                found = await state.store.get(key)
                if isinstance(found, Found):
                    return found.written_ms if found.body == task.body else None
        await state.pause()


async def list_tasks(state: State) -> list[str]:
    """The ids of all tasks that have a version or a hint."""
    found: dict[str, None] = {}
    async with aclosing(_listed(state, state.paths.tasks)) as found_there:
        async for listed, _ in found_there:
            hint = state.paths.read_open_task(listed.key)
            found[hint[0] if hint is not None else listed.key.removeprefix(state.paths.tasks).partition("/")[0]] = None
    return [*found]


async def put_hint(state: State, task: str, not_before_ms: int) -> None:
    """Hints that a task is to be looked at from this time on."""
    await state.create(state.paths.open_task(task, not_before_ms), b"")


async def remove_hint(state: State, key: str) -> None:
    """Removes a hint. If that fails, the next worker that meets it does."""
    await state.store.delete(key)


async def due_hints(state: State, limit: int) -> list[Hint]:
    """The oldest hints whose time has come by the store's clock, at most `limit`."""
    return heapq.nsmallest(limit, [hint async for hint in all_hints(state) if hint.not_before_ms <= hint.now_ms], _age)


async def all_hints(state: State) -> AsyncGenerator[Hint, None]:
    """All hints, in no order."""
    async with aclosing(_listed(state, state.paths.open_tasks)) as found_there:
        async for listed, now_ms in found_there:
            hint = state.paths.read_open_task(listed.key)
            if hint is not None:
                yield Hint(listed.key, hint[0], hint[1], listed.written_ms, now_ms)


def _age(hint: Hint) -> tuple[int, str]:
    return hint.not_before_ms, hint.task


def _number(key: str) -> int:
    name = key.rpartition("/")[2].removesuffix(".json")
    return int(name) if name.isdecimal() else 0


async def _listed(state: State, prefix: str) -> AsyncGenerator[tuple[Listed, int], None]:
    after: Cursor | None = None
    while True:
        page = await state.store.list(prefix, after)
        for listed in page.entries:
            yield listed, page.now_ms
        after = page.after
        if after is None:
            return
