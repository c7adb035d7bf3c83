"""Accepts, executes and reads the tasks of one delegation service (docs/design/tasks.md#delegation)."""

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
from arco_catalog.state.files import FileCache, Mount
from arco_catalog.state.task import ENDED, TABLE_PURGE, Status, Task
from arco_catalog.state.task_log import LOST_HINT_MS, Hint, StoredTask, all_hints, list_tasks, read_task, remove_hint
from arco_catalog.tasks.execution import task_session
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.worker import CALLS_MS, Worker
from arco_catalog.upkeep.delegation_service.executor import DelegatedPurgeExecutor, WithoutCredentials
from arco_catalog.upkeep.delegation_service.observer import NoObserver, TaskEnd, TaskObserver
from arco_catalog.upkeep.delegation_service.payload import DelegatedPurge, submitter_of
from arco_catalog.upkeep.delegation_service.places import Places
from arco_catalog.upkeep.delegation_service.storage import Opens, Storage, storage_for
from arco_catalog.upkeep.delegation_service.submission import bind_key, submit_task
from storage_backends import StoreError
from storage_backends.open import opener_in

_LOG = logging.getLogger(__name__)

MAX_RUNNING = 64
"""Tasks that one process executes concurrently. There is no queue, since credentials would expire in it."""
POLL_SECONDS = 5.0
"""Seconds between two reads of a task that another process executes, or that waits for its next attempt."""
SWEEP_SECONDS = 60.0
"""Seconds between two searches for tasks that no process executes."""
PAGE = 100
"""Tasks that are read for a page of a list."""
AT_ONCE = 16
"""Tasks that are read concurrently."""
RETRY_AFTER_S = 10


@dataclass(frozen=True, slots=True)
class Access:
    """The limits that the operator of a delegation service sets. Files are opened only at the endpoints in
    `environment` and in `endpoints`, or at the cloud's own if neither `environment` nor the task names one. The service
    executes tasks of `realms`, which are the realms of its store, and of `other_realms`; without `realms`, tasks of any
    realm."""

    places: Places
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    endpoints: Sequence[str] = ()
    opens: Opens = opener_in
    realms: frozenset[str] | None = None
    other_realms: frozenset[str] = frozenset()


class DelegationService:
    """Accepts and executes the tasks of a delegation service within one event loop, and reports the executions to
    `observer`. Credentials exist only in the memory of running executions."""

    def __init__(
        self,
        state: Catalog,
        access: Access,
        policies: TaskPolicies | None = None,
        observer: TaskObserver | None = None,
    ) -> None:
        self._state = state
        self._access = access
        self._policies = policies or TaskPolicies()
        self._observer = observer or NoObserver()
        self._running: dict[str, asyncio.Task[None]] = {}

    @property
    def state(self) -> Catalog:
        """The state in the store that has the tasks of the service."""
        return self._state

    def check_realm(self, realm: str, of_caller: str | None) -> None:
        """Raises `Forbidden` if a caller from the realm `of_caller` may not submit a task of `realm`: the realm must be
        one of the service, and the caller's own. None as `of_caller` stands for a caller that is no principal of a
        realm, and may submit tasks of all of them. The operator's `other_realms` are open to every caller; without
        `realms`, all are."""
        realms = self._access.realms
        if realms is None or realm in self._access.other_realms:
            return
        if realm not in realms:
            raise Forbidden(
                f"This service executes no tasks of the realm {realm!r}: its operator allows others by "
                "--delegation-realm"
            )
        if of_caller is not None and of_caller != realm:
            raise Forbidden(
                f"A principal of the realm {of_caller!r} may not submit tasks of the realm {realm!r}: the operator of "
                "this service can allow that by --delegation-realm"
            )

    async def submit(self, session: Session, purge: DelegatedPurge, caller: str) -> Task:
        """Accepts a purge as a task, and starts to execute it in the background unless it has ended or is running here.
        Returns the task, the same for repeated submissions of a purge. One that has failed continues; if the
        idempotency key was sent before, only after lost credentials. Raises `Forbidden` and `BadRequest` for a purge
        that is not allowed; only if it has no task yet, `LocationHeld` for locations of the deployment's catalogs, and
        `Unavailable` if one of these can't be opened; `TooManyRequests` if this process executes too many tasks,
        `KeyReused` or `CommitStateUnknown` for a key that can't be used, and `StoreError`."""
        task = purge.task_id(caller)
        roots = self._access.places.roots([purge.location, purge.metadata_location])
        location = self._access.places.check(purge.location)
        storage = storage_for(location, purge.config, self._access.environment, self._access.endpoints)
        known = await read_task(session.state, task)
        if known is None:
            await self._access.places.refuse_held([location], purge.identity, session.request)
        if task not in self._running and len(self._running) >= MAX_RUNNING:
            raise TooManyRequests(
                f"This process of the service executes {MAX_RUNNING} tasks, the maximum: submit this task later",
                RETRY_AFTER_S,
            )
        mounts = storage.mounts(roots, self._access.opens)  # before the task exists, since this may fail
        try:
            key_was_sent_before = await bind_key(session, task)
            submitted = await submit_task(session, purge, caller, key_was_sent_before=key_was_sent_before)
            if submitted.status not in ENDED and task not in self._running:
                self._running[task] = asyncio.create_task(self._run(task, purge, storage, mounts))
                mounts = []  # the execution closes them
        finally:
            await _close(mounts)
        return submitted

    async def ended(self, task: str) -> Task:
        """Waits until a task of this service has ended, executed by this or another process, and returns the last
        version. Waits for ever if the task does not exist. Raises `StoreError`."""
        while True:
            running = self._running.get(task)
            if running is not None:
                await asyncio.wait([running])
            stored = await read_task(self._session(task).state, task)
            if stored is not None and stored.task.status in ENDED:
                return stored.task
            await self._state.runtime.sleep(POLL_SECONDS)

    async def find(self, session: Session, task: str, caller: str) -> StoredTask:
        """Reads the task with this id. Raises `NotFound` if there is none, or if another caller has submitted it."""
        stored = await read_task(session.state, task)
        if stored is None or submitter_of(stored.task) != caller:
            raise NotFound(f"Task does not exist, or another caller has submitted it: {task}")
        return stored

    async def tasks(self, session: Session, caller: str, after: str) -> tuple[Sequence[StoredTask], str | None]:
        """Reads a page of tasks in the order of their ids, beginning after the id `after`. Returns the tasks on it that
        `caller` has submitted, which may be none, and the id after which the next page begins; None if this is the last
        page."""
        listed = [task for task in await list_tasks(session.state) if task > after]
        page = heapq.nsmallest(PAGE, listed)
        found: list[StoredTask] = []
        for batch in batches(page, AT_ONCE):
            read = await gather(*(read_task(session.state, task) for task in batch))
            found += [stored for stored in read if stored is not None and submitter_of(stored.task) == caller]
        return found, page[-1] if len(page) < len(listed) else None

    async def sweep(self) -> NoReturn:
        """Lets tasks fail whose process is gone, every `SWEEP_SECONDS` for ever. Logs errors of the store or a catalog,
        and continues."""
        while True:
            try:
                await self.sweep_once()
            except (StoreError, CatalogError) as error:
                _LOG.warning("the search for tasks of processes that are gone has failed, and is repeated: %s", error)
            await self._state.runtime.sleep(SWEEP_SECONDS)

    async def sweep_once(self) -> None:
        """Lets every task fail whose process is gone, since the credentials were lost with it, reports them to the
        observer one by one, and removes old hints without a task. A running process continues its tasks within seconds,
        so a task that has been due for the length of a lease has no process, unless it runs here. Raises `StoreError`,
        and `CatalogError`."""
        state = self._session("open").state
        worker = self._worker(self._state, {TABLE_PURGE: WithoutCredentials()})
        due = [hint async for hint in all_hints(state) if hint.task not in self._running and self._is_lost(hint)]
        for hint in due:
            if await read_task(state, hint.task) is not None:
                await worker.meet(hint)
                self._observer.lost(worker.take_stats().failed)
            elif has_passed(hint.now_ms - hint.written_ms, LOST_HINT_MS):  # its request ended long ago
                await remove_hint(state, hint.key)

    async def close(self) -> None:
        """Cancels the execution of all running tasks, and waits for it. A new submission continues them."""
        running = [*self._running.values()]
        for each in running:
            each.cancel()
        for each in running:
            with suppress(asyncio.CancelledError):
                await each

    def _is_lost(self, hint: Hint) -> bool:
        """Whether a task has been due for the length of a lease or longer, so that no process executes it."""
        return has_passed(hint.now_ms - hint.not_before_ms, self._policies.lease_ms)

    async def _run(self, task: str, purge: DelegatedPurge, storage: Storage, mounts: Sequence[Mount]) -> None:
        """Executes attempts of a task until it has ended, `POLL_SECONDS` apart, with the stores that `mounts` open for
        it. Reports the start and the end to the observer, and closes these stores."""
        start_ms = self._state.runtime.now_ms()
        end: TaskEnd = "stopped"
        self._observer.started()
        catalog = replace(self._state, mounts=mounts, files=FileCache(CACHE_BYTES))
        worker = self._worker(catalog, {TABLE_PURGE: DelegatedPurgeExecutor(purge, storage, self._access.places)})
        try:
            while (status := await self._attempt(worker, task, purge)) is None:
                await self._state.runtime.sleep(POLL_SECONDS)
            end = "succeeded" if status is Status.SUCCESS else "failed"
        finally:
            self._observer.ended(end, (self._state.runtime.now_ms() - start_ms) / 1000)
            del self._running[task]
            await _close(mounts)

    async def _attempt(self, worker: Worker, task: str, purge: DelegatedPurge) -> Status | None:
        """Executes one attempt of a task, if it is due. Returns how the task ended, `FAILURE` also if it does not exist
        any more; None if it has not ended, and if the attempt failed by an error of the store or catalog, which is
        logged."""
        try:
            await worker.run_task(task)
            stored = await read_task(self._session(task).state, task)
        except (StoreError, CatalogError) as error:
            _LOG.warning(
                "the record of task %s (correlation id %s) could not be read or written, and this process tries that "
                "again, until the task is over: %s",
                task,
                purge.correlation_id,
                error,
            )
            return None
        if stored is None:
            return Status.FAILURE
        return stored.task.status if stored.task.status in ENDED else None

    def _worker(self, catalog: Catalog, executors: Mapping[str, DelegatedPurgeExecutor | WithoutCredentials]) -> Worker:
        """Returns a worker that executes purges with these executors, on this state."""
        return Worker(catalog, executors, _never, self._policies)

    def _session(self, task: str) -> Session:
        """Returns a session for the work on one task, with a deadline `CALLS_MS` from now."""
        return task_session(self._state, task, self._state.runtime.now_ms() + CALLS_MS)


async def _close(mounts: Sequence[Mount]) -> None:
    """Closes the stores of these mounts."""
    for mount in mounts:
        await mount.store.close()


async def _never(session: Session, task: str) -> Task | None:
    """Returns None, for a task that has a hint and no version yet: no registry has tasks of the service."""
    return None
