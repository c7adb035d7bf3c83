"""One version of a background task: its payload, its progress, and the lease of its worker
(docs/design/tasks.md#records).

A version never changes. Methods that change a task return its next version, except `quiet`, which changes one that is
not saved yet. They raise `InternalError` if the table of statuses does not allow the change.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, MalformedJson, dumps, loads
from arco_catalog.state.fields import integer, mapping, optional_text, parse_record, text
from storage_backends.lazy_dataclass import dataclass

TABLE_PURGE = "TABLE_PURGE"
"""The type of the tasks that purge a dropped table."""
TABLE_MAINTENANCE = "TABLE_MAINTENANCE"
"""The type of the tasks that maintain a table by its policies, which the pipeline does on Spark."""
TABLE_EXPIRY = "TABLE_EXPIRY"
"""The type of the tasks that expire snapshots of a table, and later delete the files that only these needed."""
EXPIRY_SWEEP = "EXPIRY_SWEEP"
"""The type of the tasks that find the tables of a catalog whose snapshots expire by a policy, one a day."""
EVENT_DELIVERY = "EVENT_DELIVERY"
"""The type of the tasks that deliver events to a subscription, up to the end of the feed."""

MAX_RESULT = 8_000
"""The maximum length of the texts of a task's result, in characters."""


class Status(StrEnum):
    """The status of a background task: submitted, being started or running, to be retried, or ended with success or
    failure (docs/design/tasks.md#records)."""

    SUBMITTED = "SUBMITTED"
    ACQUIRING_RESOURCES = "ACQUIRING_RESOURCES"
    RUNNING = "RUNNING"
    RETRY_SCHEDULED = "RETRY_SCHEDULED"
    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"


TRANSITIONS: Mapping[Status, frozenset[Status]] = {
    Status.SUBMITTED: frozenset({Status.ACQUIRING_RESOURCES, Status.RUNNING}),
    Status.ACQUIRING_RESOURCES: frozenset({Status.RUNNING, Status.RETRY_SCHEDULED, Status.FAILURE}),
    Status.RUNNING: frozenset({Status.SUCCESS, Status.RETRY_SCHEDULED, Status.FAILURE}),
    Status.RETRY_SCHEDULED: frozenset({Status.ACQUIRING_RESOURCES, Status.RUNNING}),
    Status.SUCCESS: frozenset(),
    Status.FAILURE: frozenset(),
}
LEASED = frozenset({Status.ACQUIRING_RESOURCES, Status.RUNNING})
"""The statuses of a task on which a worker has a lease."""
ENDED = frozenset({Status.SUCCESS, Status.FAILURE})
RESUBMITTED = (Status.FAILURE, Status.SUBMITTED)
"""The change of status that an operator makes, which is not in the table."""


@dataclass(frozen=True, slots=True)
class Task:
    """A version of a task, with all its stored fields, also those that a later program added."""

    document: JsonObject

    @classmethod
    def submitted(
        cls, *, record: str, task: str, kind: str, payload: JsonObject, at_ms: int, not_before_ms: int
    ) -> Self:
        """Returns the first version of a task of this kind with the id `task`, submitted at `at_ms`, which a worker may
        run from `not_before_ms` on. `record` is a fresh id of this version."""
        return cls(
            {
                "version": 1,
                "id": record,
                "task_id": task,
                "task_version": 1,
                "parent_id": None,
                "task_type": kind,
                "task_payload": dumps(payload, sort_keys=True).decode(),
                "status": Status.SUBMITTED.value,
                "attempt_count": 0,
                "created_ts": at_ms,
                "received_timestamp": at_ms,
                "last_status_change_ts": at_ms,
                "next_run_ts": not_before_ms,
                "checkpoint": {},
                "advanced": False,
            }
        )

    @classmethod
    def parse(cls, body: bytes, where: str) -> Self:
        """Reads a stored version of a task. Raises `InternalError` if it is no record, or has no id, no number or no
        known status. An error in another field comes when that field is read."""
        task = cls(parse_record(body, where))
        _ = task.id, task.status, task.number  # raises if one is missing
        return task

    @property
    def body(self) -> bytes:
        """The bytes by which this version of the task is stored."""
        return dumps(self.document, sort_keys=True)

    @property
    def id(self) -> str:
        """The task's id."""
        return text(self.document, "task_id")

    @property
    def number(self) -> int:
        """The number of this version of the task; the first has 1."""
        return integer(self.document, "task_version")

    @property
    def kind(self) -> str:
        """The type of the task, such as `TABLE_PURGE`."""
        return text(self.document, "task_type")

    @property
    def payload(self) -> JsonObject:
        """The parameters of the task. Raises `InternalError` if they are no JSON object."""
        try:
            payload = loads(text(self.document, "task_payload").encode())
        except MalformedJson as error:
            raise InternalError(f"the payload of task {self.id} is invalid: it is not JSON") from error
        if not isinstance(payload, dict):
            raise InternalError(f"the payload of task {self.id} is invalid: it is not a JSON object")
        return payload

    @property
    def status(self) -> Status:
        """The status of the task. Raises `InternalError` for an unknown one."""
        name = text(self.document, "status")
        try:
            return Status(name)
        except ValueError:
            raise InternalError(
                f"task {self.id} has the status {name!r}, which this version of the program does not know"
            ) from None

    @property
    def attempts(self) -> int:
        """The number of consecutive attempts that failed or were lost without progress: without a new checkpoint, or,
        by `NoProgress`, in spite of one."""
        return integer(self.document, "attempt_count")

    @property
    def lease(self) -> str | None:
        """The id of the last lease that a worker took on the task, which may be over; None if no worker took one."""
        return optional_text(self.document, "lease_id")

    @property
    def lease_number(self) -> int:
        """The number of the task's version with which the last lease began. Raises `InternalError` if there was no
        lease."""
        return integer(self.document, "lease_version")

    @property
    def lease_ms(self) -> int:
        """The milliseconds for which the last lease on the task lasts, from the store's time of this version. Raises
        `InternalError` if there was no lease."""
        return integer(self.document, "lease_ms")

    @property
    def quiet_ms(self) -> int:
        """How long after the store's time of this version the worker of an earlier lease may still act on that lease; 0
        if there is no such worker."""
        return integer(self.document, "quiet_ms") if "quiet_ms" in self.document else 0

    @property
    def next_run_ms(self) -> int:
        """The earliest time at which a worker may run the task."""
        return integer(self.document, "next_run_ts")

    @property
    def checkpoint(self) -> JsonObject:
        """The checkpoint of the task, in the form of its executor."""
        return mapping(self.document, "checkpoint")

    @property
    def advanced(self) -> bool:
        """Whether the checkpoint has changed under the last lease."""
        return self.document.get("advanced") is True

    @property
    def summary(self) -> str | None:
        """The result or error of the task's last attempt in one sentence; None until an attempt ends, and once
        another one begins, or an operator submits the task again."""
        return optional_text(self.document, "result_summary")

    def quiet(self, quiet_ms: int) -> "Task":
        """Returns this version of the task with another `quiet_ms`, the time for which the worker of a lease before the
        last may still act; the same version if both times are 0."""
        return Task({**self.document, "quiet_ms": quiet_ms}) if quiet_ms or self.quiet_ms else self

    def leased(self, *, record: str, at_ms: int, lease_ms: int) -> "Task":
        """Returns the version of a task by which a worker takes a lease on it, or takes it over from a lost worker. The
        lost attempt counts as failed; if it changed the checkpoint, the count starts again at 0. The result of an
        earlier attempt stays in the earlier versions. Raises `InternalError` for a task that has ended."""
        lost = self.status in LEASED
        return self._next(
            record,
            self.status if lost else Status.ACQUIRING_RESOURCES,
            at_ms,
            {
                "attempt_count": self.failed_attempts() if lost else self.attempts,
                "lease_id": record,
                "lease_version": self.number + 1,
                "lease_acquired_ts": at_ms,
                "lease_ms": lease_ms,
                "advanced": False,
                "result_summary": None,
                "result_extended": None,
            },
        )

    def renewed(self, *, record: str, checkpoint: JsonObject) -> "Task":
        """Returns the version, with the fresh id `record`, by which the worker renews the lease and stores its
        checkpoint; it also notes whether the checkpoint has changed under this lease."""
        advanced = self.advanced or checkpoint != self.checkpoint
        return self._next(record, self.status, 0, {"checkpoint": checkpoint, "advanced": advanced})

    def running(self, *, record: str, at_ms: int) -> "Task":
        """Returns the version of the task by which the worker that has the lease starts the work. Raises
        `InternalError` if the status of the task does not allow that."""
        return self._next(record, Status.RUNNING, at_ms, {})

    def failed_attempts(self) -> int:
        """Returns the number of consecutive failed attempts at the task after the present one fails: 0 if that one
        changed the checkpoint."""
        return 0 if self.advanced else self.attempts + 1

    def scheduled(
        self, *, record: str, at_ms: int, next_run_ms: int, attempts: int, summary: str, extended: str | None
    ) -> "Task":
        """Returns the version that schedules another run at `next_run_ms`, after an attempt that failed for a temporary
        reason or came too early. Raises `InternalError` if the present status does not allow that."""
        changes: JsonObject = {"next_run_ts": next_run_ms, "attempt_count": attempts, **_result(summary, extended)}
        return self._next(record, Status.RETRY_SCHEDULED, at_ms, changes)

    def ended(self, *, record: str, at_ms: int, status: Status, summary: str, extended: str | None) -> "Task":
        """Returns the version that ends the task, with the status of a success or failure. Raises `InternalError` if
        the present status does not allow that."""
        return self._next(record, status, at_ms, _result(summary, extended))

    def resubmitted(self, *, record: str, at_ms: int, checkpoint: JsonObject | None = None) -> "Task":
        """Returns the version by which an operator submits a failed task again, from its checkpoint or another, with no
        attempts counted. Its time is always later than the failed run's, also if clocks went back, so that its hint has
        another key. The failure stays in the earlier versions. Raises `InternalError` for a task that has not
        failed."""
        if self.status is not Status.FAILURE:
            raise InternalError(f"task {self.id} is {self.status}: only a failed task can be submitted again")
        next_run_ms = max(at_ms, self.next_run_ms + 1)
        changes: JsonObject = {
            "attempt_count": 0,
            "next_run_ts": next_run_ms,
            "received_timestamp": at_ms,
            "result_summary": None,
            "result_extended": None,
        }
        if checkpoint is not None:
            changes["checkpoint"] = checkpoint
        return Task(self._successor(record, Status.SUBMITTED, at_ms, changes))

    def _next(self, record: str, status: Status, at_ms: int, changes: JsonObject) -> "Task":
        """Returns the next version of the task, with the fields of `changes` replaced. A version with the same status
        is always allowed. Raises `InternalError` for a change of status that is not."""
        if status is not self.status and status not in TRANSITIONS[self.status]:
            raise InternalError(f"task {self.id} is {self.status} and cannot become {status}")
        return Task(self._successor(record, status, at_ms, changes))

    def _successor(self, record: str, status: Status, at_ms: int, changes: JsonObject) -> JsonObject:
        """Returns the document of the task's next version, without a check of the transition. The time of the last
        change of status is `at_ms` only if the status changes."""
        since: JsonObject = {} if status is self.status else {"last_status_change_ts": at_ms}
        return {
            **self.document,
            "id": record,
            "task_version": self.number + 1,
            "status": status.value,
            **since,
            **changes,
        }


def may_follow(before: Task, after: Task) -> bool:
    """Whether the status of the version `after` of a task is allowed after that of the version `before`: the same one,
    one of `TRANSITIONS`, or a failed task's that an operator submits again."""
    change = before.status, after.status
    return before.status is after.status or after.status in TRANSITIONS[before.status] or change == RESUBMITTED


def _result(summary: str, extended: str | None) -> JsonObject:
    """Returns the fields of a task's result, its texts cut to `MAX_RESULT` characters."""
    return {
        "result_summary": summary[:MAX_RESULT],
        "result_extended": None if extended is None else extended[:MAX_RESULT],
    }


def table_identity(payload: JsonObject) -> JsonObject:
    """Returns the identity of the table in a task's payload; empty if it has none."""
    return mapping(mapping(payload, "operation_parameters"), "table_identity")


def name_in_log(task: Task) -> str:
    """Returns the name of a task in a log line: its id, and the payload's correlation id, `None` without one; only the
    id if the payload is invalid."""
    try:
        return f"task {task.id} (correlation id {correlation_id(task.payload)})"
    except InternalError:  # the task's failure is logged by this name, and must not hide behind another
        return f"task {task.id}"


def correlation_id(payload: JsonObject) -> str | None:
    """Returns the id by which the submitter of a task can identify it in logs: `correlation_id` in the
    `common_payload` of the payload, or else `polaris_correlation_id` there; None if it has neither."""
    common = mapping(payload, "common_payload")
    return optional_text(common, "correlation_id") or optional_text(common, "polaris_correlation_id")
