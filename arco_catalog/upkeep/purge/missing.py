"""Waits for missing files of other tables than the purged one. Which files a missing manifest or metadata file names is
unknown, so a purge or expiry waits once, for an operator to restore it."""

from collections.abc import Mapping

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.fields import integer, mapping
from arco_catalog.state.purge_progress import MAX_UNREAD, MISSING_SINCE, UNREAD
from arco_catalog.tasks.execution import Execution, NotYet, TaskFailed


def describe_missing(session: Session, entity: str, file: str) -> str:
    """Describes that a file of another table is missing, which a purge or expiry must read. Raises `TaskFailed` if that
    file is the pointer of the table."""
    if file == session.state.paths.pointer(entity):
        raise TaskFailed(
            f"the pointer {file} of a table is gone, so its files are unknown: `arco fsck` "
            "names the repair; then retry this task"
        )
    return f"{file} is gone, and with it the names of the files that it referred to"


def with_unread(checkpoint: JsonObject, unread: Mapping[str, str]) -> JsonObject:
    """Returns a checkpoint with more tables that can't be read, each with its reason, up to `MAX_UNREAD` tables in
    all."""
    before = mapping(checkpoint, UNREAD)
    room = MAX_UNREAD - len(before)
    return {**checkpoint, UNREAD: {**before, **dict([*unread.items()][: max(0, room)])}}


async def wait_for_missing(execution: Execution, missing: Mapping[str, str], *forget: str) -> None:
    """Returns if no files are missing, or if an operator has had time to restore them: the undrop window, counted from
    the first missing file that this task met. Else removes the fields `forget`, and the record of tables that can't be
    read, from the checkpoint, so that the next attempt reads all tables again (a restored file moves no pointer), and
    raises `NotYet`. `missing` has a reason for each table with a missing file."""
    if not missing:
        return
    checkpoint, since_ms = execution.checkpoint, execution.taken_ms
    if MISSING_SINCE in checkpoint:
        since_ms = integer(checkpoint, MISSING_SINCE)
    until_ms = since_ms + execution.session().settings.purge.undrop_window_ms
    if execution.taken_ms >= until_ms:
        return
    kept = {name: value for name, value in checkpoint.items() if name not in (*forget, UNREAD)}
    await execution.save({**kept, MISSING_SINCE: since_ms})
    name, reason = next(iter(missing.items()))
    raise NotYet(
        until_ms,
        f"the task waits, since it must compare the files of {name}: {reason}. Restore that file, or drop that table; "
        "otherwise the next try goes on without the file",
    )
