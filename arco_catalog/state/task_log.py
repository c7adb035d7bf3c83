"""The stored versions of tasks, and the hints by which a worker finds tasks that are due
(docs/design/tasks.md#tasks)."""

import heapq
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.state.access import State
from arco_catalog.state.age import has_passed
from arco_catalog.state.listing import list_pages
from arco_catalog.state.task import LEASED, Status, Task
from storage_backends import ABSENT, Applied, Cursor, Found, Page, PreconditionFailed
from storage_backends.lazy_dataclass import dataclass

LOST_HINT_MS = 3_600_000
"""The age from which a hint without a task counts as lost: no version of the task will follow."""
AT_A_TIME = 1_000
"""The maximum number of due hints in one page."""
RETRIES = 100
"""How often the last version is searched again, if it was deleted before it was read."""


@dataclass(frozen=True, slots=True)
class StoredTask:
    """The last version of a background task, with the store's times of that object and of the answer."""

    task: Task
    written_ms: int
    now_ms: int

    @property
    def is_held(self) -> bool:
        """Whether a worker may still have a valid lease on the task, by the store's clock. False also if that clock was
        set back by more than `CLOCK_TOLERANCE_MS` since the write, although the lease may then last."""
        return self.task.status in LEASED and not has_passed(self.now_ms - self.written_ms, self.task.lease_ms)


@dataclass(frozen=True, slots=True)
class Hint:
    """A hint that a worker should read a background task from a time on, with the store's times of the hint and of the
    answer."""

    key: str
    task: str
    not_before_ms: int
    written_ms: int
    now_ms: int

    @property
    def is_due(self) -> bool:
        """Whether the hint's time has come, by the store's clock."""
        return self.not_before_ms <= self.now_ms

    @property
    def is_old(self) -> bool:
        """Whether the hint is at least `LOST_HINT_MS` old, by the store's clock, or that clock was set back by more
        than `CLOCK_TOLERANCE_MS` since the write. If its task has no version by then, the hint counts as lost."""
        return has_passed(self.now_ms - self.written_ms, LOST_HINT_MS)

    def is_of_the_past(self, ended: Task) -> bool:
        """Whether the hint is no longer needed, since it belongs to a version up to the `ended` one of its task: that
        succeeded, the hint is not for a later time, or it is old. Otherwise it may announce a version to come, because
        a failed task is submitted again by writing its hint first (docs/design/tasks.md#rule-2)."""
        return ended.status is Status.SUCCESS or self.not_before_ms <= ended.next_run_ms or self.is_old


async def read_task(state: State, task: str) -> StoredTask | None:
    """Reads the last version of a task; None if the store has no version of it. Raises `StoreError`, and
    `InternalError` for a corrupt version, or if the last version is listed but can't be found, in each of several
    attempts."""
    for _ in range(RETRIES):
        pages = list_pages(state, state.paths.task(task))
        last = max([_number(listed.key) async for page in pages for listed in page.entries], default=None)
        if last is None:
            return None
        key = state.paths.task_version(task, last)
        found = await state.store.get(key)
        if isinstance(found, Found):
            return StoredTask(Task.parse(found.body, key), found.written_ms, found.now_ms)
    raise InternalError(
        f"Task {task} could not be read: in each of {RETRIES} attempts the store listed a last version, and then did "
        "not have it"
    )


async def append_task(state: State, task: Task) -> int | None:
    """Creates this version of a task, and sends the write until its outcome is definite. Returns a time of the store's
    clock, in milliseconds since 1970, at which it existed, at or after the write; None if another process created the
    version of this number. Raises `StoreError` if the store fails before that: the version may then exist, or appear
    later."""
    key = state.paths.task_version(task.id, task.number)
    while True:
        match await state.store.put(key, task.body, ABSENT):
            case Applied(_, now_ms):
                return now_ms
            case PreconditionFailed():
                # an earlier sending of this write may have created it (docs/design/store.md#rule-1)
                found = await state.store.get(key)
                if isinstance(found, Found):
                    return found.written_ms if found.body == task.body else None
        await state.pause()


async def list_tasks(state: State) -> list[str]:
    """Lists the ids of all tasks with a version or a hint, in no order. Raises `StoreError`."""
    found: dict[str, None] = {}
    async with aclosing(list_pages(state, state.paths.tasks)) as pages:
        async for page in pages:
            for key in (listed.key for listed in page.entries):
                hint = state.paths.read_open_task(key)
                if hint is not None:
                    found[hint[0]] = None
                elif not key.startswith(state.paths.open_tasks):
                    found[key.removeprefix(state.paths.tasks).partition("/")[0]] = None
    return [*found]


async def put_hint(state: State, task: str, not_before_ms: int) -> None:
    """Stores a hint that a worker should read a task from this time on. Raises `StoreError`."""
    await state.create(state.paths.open_task(task, not_before_ms), b"")


async def remove_hint(state: State, key: str) -> None:
    """Deletes a hint. Raises `StoreError` if that fails. If it fails or its outcome is unknown, the next worker that
    reads the hint deletes it."""
    await state.store.delete(key)


@dataclass(frozen=True, slots=True)
class DueHints:
    """A page of the hints about tasks that are due. `after` is the argument of `due_hints` for the next page; None for
    the last page. `scheduled` is the number of hints that were read with it, and are not due yet: of all of them, or
    at most a page of a store that lists keys in order."""

    hints: Sequence[Hint]
    after: Cursor | Hint | None
    scheduled: int = 0


async def due_hints(state: State, after: Cursor | Hint | None = None) -> DueHints:
    """Returns a page of the oldest due hints, or of those after a previous page. Keys begin with times, so in a store
    that lists keys in order one page is read, up to the first hint that is not due. In any other store each call lists
    all hints. Raises `StoreError`."""
    if isinstance(after, Hint):
        return await _oldest_due(state, after)
    page = await state.store.list(state.paths.open_tasks, after)
    if not page.in_order:
        return await _oldest_due(state, None)
    hints = _hints(state, page)
    due = [hint for hint in hints if hint.is_due]
    return DueHints(due, page.after if len(due) == len(hints) else None, len(hints) - len(due))


async def _oldest_due(state: State, after: Hint | None) -> DueHints:
    """Lists all hints, and returns the page of the `AT_A_TIME` oldest due ones after `after`, None for the first page,
    with the number of hints that are not due."""
    due: list[Hint] = []
    scheduled = 0
    async with aclosing(all_hints(state)) as hints:
        async for hint in hints:
            scheduled += not hint.is_due
            if hint.is_due and (after is None or _age(hint) > _age(after)):
                due.append(hint)
            if len(due) >= 2 * AT_A_TIME:
                due = heapq.nsmallest(AT_A_TIME, due, _age)
    due = heapq.nsmallest(AT_A_TIME, due, _age)
    return DueHints(due, due[-1] if len(due) == AT_A_TIME else None, scheduled)


async def all_hints(state: State) -> AsyncGenerator[Hint, None]:
    """Yields all hints that lead workers to tasks, in no order. Raises `StoreError`."""
    async with aclosing(list_pages(state, state.paths.open_tasks)) as pages:
        async for page in pages:
            for hint in _hints(state, page):
                yield hint


def _hints(state: State, page: Page) -> list[Hint]:
    """Returns the hints in a page of the store's listing; objects with other keys are left out."""
    named = [(listed, state.paths.read_open_task(listed.key)) for listed in page.entries]
    return [Hint(listed.key, *hint, listed.written_ms, page.now_ms) for listed, hint in named if hint is not None]


def _age(hint: Hint) -> tuple[int, str]:
    """Returns the sort key of hints: the one that is due longest comes first."""
    return hint.not_before_ms, hint.task


def _number(key: str) -> int:
    """Returns the number of a task's version in its key; 0 for any other key."""
    name = key.rpartition("/")[2].removesuffix(".json")
    return int(name) if name.isdecimal() else 0
