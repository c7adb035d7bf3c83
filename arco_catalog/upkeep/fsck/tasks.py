"""Examines background tasks for a check: versions, hints, and the tombstones of purges (docs/design/tasks.md)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import MalformedJson
from arco_catalog.operations.tasks import tombstone_of
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.listing import list_objects
from arco_catalog.state.task import ENDED, TABLE_PURGE, Status, Task, may_follow
from arco_catalog.state.task_log import LOST_HINT_MS
from arco_catalog.state.tombstone import PURGING, Tombstone
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import AT_ONCE, Examination, Findings
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.repairs import PutHint, RemoveHint
from storage_backends import Found


@dataclass
class _TaskListing:
    """What a listing has of one task: the numbers of the versions, and by the keys of hints the times at which the
    hints were written."""

    numbers: list[int] = field(default_factory=list)
    hints: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Last:
    """The last version of a task, with the times at which the store wrote it and at which it was read, both by the
    store's clock."""

    task: Task
    written_ms: int
    now_ms: int


async def examine_tasks(examination: Examination) -> Findings:
    """Examines tasks and their hints, and yields the findings. Tasks are listed after HEAD was read, so the listing has
    every task in HEAD."""
    began_ms = examination.session.now_ms()
    listed: Mapping[str, _TaskListing] = defaultdict(_TaskListing)
    paths = examination.paths
    async for each in list_objects(examination.session.state, paths.tasks):
        hint = paths.read_open_task(each.key)
        task, _, name = each.key.removeprefix(paths.tasks).partition("/")
        number = name.removesuffix(".json")
        if hint is not None and each.size == 0:
            listed[hint[0]].hints[each.key] = each.written_ms
        elif number.isdecimal() and each.key == paths.task_version(task, int(number)):
            listed[task].numbers.append(int(number))
        else:
            yield Finding(
                Code.OBJECT_UNKNOWN, each.key, "the object is neither a version of a task nor a hint, which is empty"
            )
    for task in examination.purges:
        _ = listed[task]

    async def look(item: tuple[str, _TaskListing]) -> Sequence[Finding]:
        return await _Look(examination, *item, began_ms).findings()

    async for finding in examination.each([*listed.items()], look):
        yield finding


class _Look:
    """Examines the versions, hints and tombstone of one task."""

    def __init__(self, examination: Examination, task: str, listed: _TaskListing, began_ms: int) -> None:
        self._examination = examination
        self._task = task
        self._listed = listed
        self._settled_ms = began_ms - examination.settling_ms
        self._lost_ms = began_ms - LOST_HINT_MS
        self._tombstone = examination.purges.get(task)

    async def findings(self) -> Sequence[Finding]:
        """Returns the findings about the task."""
        if not self._listed.numbers:
            return await self._unstored()
        found, last = await self._versions()
        return found if last is None else [*found, *await self._examine_last(last)]

    @property
    def _where(self) -> str:
        """The prefix of the keys of the task's versions."""
        return self._examination.paths.task(self._task)

    async def _unstored(self) -> Sequence[Finding]:
        """Returns the findings about a task that has no version, only a hint or a tombstone: the worker that reads the
        hint writes the first version."""
        hints, tombstone = self._listed.hints, self._tombstone
        if tombstone is None:
            old = [key for key, written_ms in hints.items() if written_ms < self._lost_ms]
            if not old or not self._examination.entries_read or await self._now() is not None:
                return []
            return [Finding(Code.HINT_STRAY, key, f"task {self._task}") for key in old]
        if tombstone.state == PURGING:
            still = await self._still(tombstone)
            return [Finding(Code.TASK_MISSING, self._where, _called(tombstone))] if still else []
        if hints or tombstone.dropped_ms >= self._settled_ms or not await self._still(tombstone):
            return []
        return [self._hint_missing(_called(tombstone))]

    async def _versions(self) -> tuple[list[Finding], _Last | None]:
        """Examines the versions of the task. Returns the findings about ones that can't be read, are of another task or
        number, can't follow the one before, or are missing before others, and the last version; None in place of it if
        it can't be read, is of another task or number, or no longer exists."""
        numbers, paths = sorted(self._listed.numbers), self._examination.paths
        found: list[Finding] = []
        tasks: dict[int, Task] = {}
        last: _Last | None = None
        for batch in batches(numbers, AT_ONCE):
            read = await gather(*(self._examination.read(paths.task_version(self._task, each)) for each in batch))
            for number, stored in zip(batch, read, strict=True):
                last = None
                if stored is None:
                    continue
                try:
                    task = tasks[number] = _parsed(stored, paths.task_version(self._task, number))
                except (InternalError, MalformedJson) as error:
                    reason = error.message if isinstance(error, InternalError) else "the payload of the task is no JSON"
                    found.append(Finding(Code.TASK_UNREADABLE, paths.task_version(self._task, number), reason))
                    continue
                if (task.id, task.number) != (self._task, number):
                    reason = f"the object is version {task.number} of task {task.id}, and has the key of another one"
                    found.append(Finding(Code.TASK_FOREIGN, paths.task_version(self._task, number), reason))
                    del tasks[number]
                    continue
                last = _Last(task, stored.written_ms, stored.now_ms)
        found += self._misfits(tasks)
        first = (
            1 if last is None or last.task.status not in ENDED else numbers[0]
        )  # a collection may be deleting an ended task
        gaps = sorted({*range(first, numbers[-1])} - {*numbers})
        return found + [
            Finding(
                Code.TASK_GAP,
                paths.task_version(self._task, gap),
                f"this version of the task is missing, and version {numbers[-1]} exists",
            )
            for gap in gaps
        ], last

    def _misfits(self, tasks: Mapping[int, Task]) -> list[Finding]:
        """Returns findings for task versions that can't follow the version before them, such as a running one after an
        ended one. `tasks` has the versions by their numbers."""
        return [
            Finding(
                Code.TASK_FOREIGN,
                self._examination.paths.task_version(self._task, after),
                f"a task that is {tasks[before].status} can't become {tasks[after].status}",
            )
            for before, after in pairwise(sorted(tasks))
            if after == before + 1 and not may_follow(tasks[before], tasks[after])
        ]

    async def _examine_last(self, last: _Last) -> Sequence[Finding]:
        """Returns the findings about the task by the last version: that its tombstone names a later one, that a task
        that is over still has a hint, that another has none, or that a due purge has no tombstone; and the finding of
        `_examine_end` about a task that is over."""
        task, tombstone = last.task, self._tombstone
        if tombstone is not None and _fence(tombstone) > task.number:
            reason = f"{_called(tombstone)}: version {_fence(tombstone)} was written into its tombstone"
            return [Finding(Code.TASK_OLDER, self._where, reason)]
        if task.status in ENDED:
            left = [
                Finding(
                    Code.HINT_LEFT,
                    key,
                    f"a hint of task {task.id}, which has ended as {task.status}",
                    RemoveHint(task.id, key),
                )
                for key, written_ms in self._listed.hints.items()
                if written_ms < self._lost_ms
            ]
            return [*left, *await self._examine_end(task)]
        if not self._listed.hints and last.written_ms < self._settled_ms:
            return [self._hint_missing(f"the task is {task.status}")]
        overdue = max(last.written_ms, task.next_run_ms) < self._settled_ms
        if overdue and task.kind == TABLE_PURGE and self._examination.entries_read and await self._now() is None:
            return [
                Finding(
                    Code.TASK_STRAY,
                    self._where,
                    f"the task is {task.status}, and the registry does not name it: the worker that ends it deletes no "
                    "file",
                )
            ]
        return []

    async def _examine_end(self, task: Task) -> Sequence[Finding]:
        """Returns a finding if an ended purge failed after it had begun, or if it succeeded and HEAD has a tombstone
        that waits for it; none without a tombstone."""
        tombstone = self._tombstone
        if tombstone is None or (task.status is Status.FAILURE and tombstone.state != PURGING):
            return []
        if not await self._still(tombstone):
            return []
        if task.status is Status.FAILURE:
            return [Finding(Code.PURGE_FAILED, self._where, f"{_called(tombstone)}: {task.summary}")]
        return [Finding(Code.TOMBSTONE_OLDER, self._examination.paths.manifest, f"{_called(tombstone)}: {self._where}")]

    def _hint_missing(self, reason: str) -> Finding:
        """Returns the finding for a task without a hint, which workers don't find."""
        return Finding(Code.HINT_MISSING, self._where, reason, PutHint(self._task))

    async def _now(self) -> Tombstone | None:
        """Returns the tombstone of the task in HEAD as it is now, since other processes may have gone on since HEAD was
        read; None if there is none."""
        return await tombstone_of(self._examination.session, self._task)

    async def _still(self, tombstone: Tombstone) -> bool:
        """Whether the tombstone in the present HEAD has the same state."""
        now = await self._now()
        return now is not None and now.state == tombstone.state


def _parsed(stored: Found, key: str) -> Task:
    """Reads a version of a task. Raises `InternalError` if a field is missing."""
    task = Task.parse(stored.body, key)
    _ = task.id, task.kind, task.payload, task.next_run_ms, task.attempts, task.checkpoint  # it must have these
    if task.lease is not None:
        _ = task.lease_ms, task.lease_number
    return task


def _fence(tombstone: Tombstone) -> int:
    """Returns the number of the task version in a tombstone, by which it was fenced last; 0 if it has none."""
    return tombstone.fence if "task_version" in tombstone.json else 0


def _called(tombstone: Tombstone) -> str:
    """Returns the words by which findings name a dropped table: the state of its tombstone, and its dotted name."""
    return f"{tombstone.state} table {'.'.join((*tombstone.namespace, tombstone.name))}"
