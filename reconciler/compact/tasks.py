"""A task that ended as a row of `tasks`."""

from arco_catalog.iceberg.json import dumps
from arco_catalog.state.task import ENDED, Task
from reconciler.compact.values import text_of, time_of
from reconciler.system.definition import Row


def task_row(task: Task) -> Row | None:
    """The row of a task's last version; None for one that is not at its end. Raises `InternalError` for a version
    without its keys."""
    if task.status not in ENDED:
        return None
    document = task.document
    return {
        "task_id": task.id,
        "task_version": task.number,
        "task_type": task.kind,
        "status": task.status.value,
        "created_at": time_of(document.get("created_ts")) or 0,
        "ended_at": time_of(document.get("last_status_change_ts")),
        "attempts": task.attempts,
        "summary": task.summary,
        "payload": text_of(document.get("task_payload")),
        "checkpoint": dumps(task.checkpoint, sort_keys=True).decode(),
    }
