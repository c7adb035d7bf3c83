"""The tasks of one delegation service: taken in, executed by this process, looked up
(docs/design/tasks.md#delegation)."""

import asyncio
import heapq
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NoReturn

from arco_catalog.iceberg.errors import CatalogError, Forbidden, NotFound, TooManyRequests
from arco_catalog.operations.delegation_service_state import CACHE_BYTES
from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.age import has_passed
from arco_catalog.state.cache import ByteCache
from arco_catalog.state.files import Mount
from arco_catalog.state.task import ENDED, TABLE_PURGE, Task
from arco_catalog.state.task_log import LOST_HINT_MS, Hint, StoredTask, all_hints, list_tasks, read_task, remove_hint
from arco_catalog.tasks.execution import task_session
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.worker import CALLS_MS, Worker
from arco_catalog.upkeep.delegation_service.executor import DelegatedPurgeExecutor, WithoutCredentials
from arco_catalog.upkeep.delegation_service.payload import DelegatedPurge, submitter_of
from arco_catalog.upkeep.delegation_service.places import Places
from arco_catalog.upkeep.delegation_service.storage import Opens, Storage, storage_for
from arco_catalog.upkeep.delegation_service.submission import bind_key, submit_task
from storage_backends import StoreError
from storage_backends.open import opener_in

_LOG = logging.getLogger(__name__)

MOST_RUNNING = 64
"""Tasks that one process executes at a time. There is no queue: credentials do not keep."""
LOOK_SECONDS = 5.0
"""Between two looks at a task that another process holds, or that waits for its next attempt."""
SWEEP_SECONDS = 60.0
"""Between two looks for tasks that nobody is at."""
PAGE = 100
"""Tasks that are read for a page of a list."""
AT_ONCE = 16
"""Of these, beside each other."""
RETRY_AFTER_S = 10


@dataclass(frozen=True, slots=True)
class Access:
    """What the operator lets the service do: `environment` has the ways to stores, of which only those to `endpoints`
    and its own are gone. It executes tasks of the realms of its store, `realms`, and of `other_realms`; without
    `realms`, of any."""

    places: Places
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    endpoints: Sequence[str] = ()
    opens: Opens = opener_in
    realms: frozenset[str] | None = None
    other_realms: frozenset[str] = frozenset()


class DelegationService:
    """Belongs to one event loop. Credentials are in the memory of the executions that use them, and nowhere else."""

    def __init__(self, state: Catalog, access: Access, policies: TaskPolicies | None = None) -> None:
        self._state = state
        self._access = access
        self._policies = policies or TaskPolicies()
        self._running: dict[str, asyncio.Task[None]] = {}

    @property
    def state(self) -> Catalog:
        """Where its tasks are kept."""
        return self._state

    def check_realm(self, realm: str, of_caller: str | None) -> None:
        """Returns if a task of this realm may be submitted by a caller from the realm `of_caller`, None for one that no
        realm holds. Raises `Forbidden`."""
        realms = self._access.realms
        if realms is None or realm in self._access.other_realms:
            return
        if realm not in realms:
            raise Forbidden(
                f"This service executes no tasks of the realm {realm!r}: its operator allows others by "
                "--delegation-realm"
            )
        if of_caller is not None and of_caller != realm:
            raise Forbidden(f"A principal of the realm {of_caller!r} may not submit tasks of the realm {realm!r}")

    async def submit(self, session: Session, purge: DelegatedPurge, caller: str) -> Task:
        """Takes a purge in, and executes it beside the answer. Returns the task as it is then: one purge is one task,
        however often it is submitted. Raises `Forbidden` and `BadRequest` for what may not be done, `Held` for places
        of catalogs here, `TooManyRequests`, what `bind_key` raises, and `StoreError`."""
        task = purge.task_id(caller)
        roots = self._access.places.roots([purge.location, purge.metadata_location])
        location = self._access.places.check(purge.location)
        storage = storage_for(location, purge.config, self._access.environment, self._access.endpoints)
        known = await read_task(session.state, task)
        if known is None:
            await self._access.places.refuse_held([location], purge.identity, session.request)
        if task not in self._running and len(self._running) >= MOST_RUNNING:
            raise TooManyRequests("This process executes as many tasks as it may", RETRY_AFTER_S)
        again = await bind_key(session, task)
        submitted = await submit_task(session, purge, caller, again=again)
        if submitted.status not in ENDED and task not in self._running:
            mounts = storage.mounts(roots, self._access.opens)
            self._running[task] = asyncio.create_task(self._run(task, purge, storage, mounts))
        return submitted

    async def ended(self, task: str) -> Task:
        """A task of this service, when it has ended. Raises `StoreError`."""
        while True:
            running = self._running.get(task)
            if running is not None:
                await asyncio.wait([running])
            stored = await read_task(self._session(task).state, task)
            if stored is not None and stored.task.status in ENDED:
                return stored.task
            await self._state.runtime.sleep(LOOK_SECONDS)

    async def find(self, session: Session, task: str, caller: str) -> StoredTask:
        """A task that this caller has submitted. Raises `NotFound` for any other."""
        stored = await read_task(session.state, task)
        if stored is None or submitter_of(stored.task) != caller:
            raise NotFound(f"Task does not exist: {task}")
        return stored

    async def tasks(self, session: Session, caller: str, after: str) -> tuple[Sequence[StoredTask], str | None]:
        """A page of tasks, by their ids, from behind `after`: those of so many that this caller has submitted, perhaps
        none; and where the next one begins."""
        listed = [task for task in await list_tasks(session.state) if task > after]
        page = heapq.nsmallest(PAGE, listed)
        found: list[StoredTask] = []
        for batch in batches(page, AT_ONCE):
            read = await gather(*(read_task(session.state, task) for task in batch))
            found += [stored for stored in read if stored is not None and submitter_of(stored.task) == caller]
        return found, page[-1] if len(page) < len(listed) else None

    async def sweep(self) -> NoReturn:
        """Ends tasks again and again whose process is gone, and their credentials with it."""
        while True:
            try:
                await self.sweep_once()
            except (StoreError, CatalogError) as error:
                _LOG.warning("tasks can't be looked for: %s", error)
            await self._state.runtime.sleep(SWEEP_SECONDS)

    async def sweep_once(self) -> None:
        """One look. A process that lives goes on with its tasks within seconds: what has been due for the length of a
        lease is nobody's. Raises `StoreError`, and `CatalogError`."""
        state = self._session("open").state
        worker = self._worker(self._state, {TABLE_PURGE: WithoutCredentials()})
        due = [hint async for hint in all_hints(state) if hint.task not in self._running and self._is_lost(hint)]
        for hint in due:
            if await read_task(state, hint.task) is not None:
                await worker.meet(hint)
            elif has_passed(hint.now_ms - hint.written_ms, LOST_HINT_MS):  # its request ended long ago
                await remove_hint(state, hint.key)

    async def close(self) -> None:
        """Leaves what is under way. Whoever submits it again goes on."""
        running = [*self._running.values()]
        for each in running:
            each.cancel()
        for each in running:
            with suppress(asyncio.CancelledError):
                await each

    def _is_lost(self, hint: Hint) -> bool:
        return has_passed(hint.now_ms - hint.not_before_ms, self._policies.lease_ms)

    async def _run(self, task: str, purge: DelegatedPurge, storage: Storage, mounts: Sequence[Mount]) -> None:
        """Executes a task until it has ended, attempt after attempt."""
        catalog = replace(self._state, mounts=mounts, files=ByteCache(CACHE_BYTES))
        worker = self._worker(catalog, {TABLE_PURGE: DelegatedPurgeExecutor(purge, storage, self._access.places)})
        try:
            while not await self._attempted(worker, task, purge):
                await self._state.runtime.sleep(LOOK_SECONDS)
        finally:
            del self._running[task]
            for mount in mounts:
                await mount.store.close()

    async def _attempted(self, worker: Worker, task: str, purge: DelegatedPurge) -> bool:
        """One attempt, if its time has come. Returns whether the task has ended."""
        try:
            await worker.run_task(task)
            stored = await read_task(self._session(task).state, task)
        except (StoreError, CatalogError) as error:
            _LOG.warning("task %s (correlation id %s) is left for later: %s", task, purge.correlation_id, error)
            return False
        return stored is None or stored.task.status in ENDED

    def _worker(self, catalog: Catalog, executors: Mapping[str, DelegatedPurgeExecutor | WithoutCredentials]) -> Worker:
        return Worker(catalog, executors, _never, self._policies)

    def _session(self, task: str) -> Session:
        return task_session(self._state, task, self._state.runtime.now_ms() + CALLS_MS)


async def _never(session: Session, task: str) -> Task | None:
    """No registry names tasks of the service."""
    return None
