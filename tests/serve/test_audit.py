"""The negative control: the audit finds a false record."""

from dataclasses import replace

import pytest

from arco_catalog.iceberg.json import JsonObject
from tests.serve.audit import History, Operation, Version, check_answers, check_names, check_tables
from tests.serve.writers import LAST, PERMANENT, Request


def request(token: str, status: int = 200, *, may_fail: bool = True, began: float = 0.0, ended: float = 1.0) -> Request:
    return Request(token, "key", "POST", "/", None, may_fail, began=began, ended=ended, status=status)


def version(token: str, *snapshots: int) -> Version:
    document: JsonObject = {"properties": {LAST: token}, "snapshots": [{"snapshot-id": each} for each in snapshots]}
    return Version(f"file:///{token}", document)


def operation(kind: str, token: str, name: str, entity: str) -> Operation:
    return Operation(kind, token, {"name": name, "entity": entity})


CREATES = [operation("create-table", f"create-{name}", name, name) for name in PERMANENT]
HISTORY = History(
    CREATES,
    {name: [version(f"create-{name}"), version(f"commit-{name}")] for name in PERMANENT},
    {name: name for name in PERMANENT},
)
REQUESTS = [request(f"{kind}-{name}") for kind in ("create", "commit") for name in PERMANENT]
FIRST = PERMANENT[0]


def dropped(log: list[Version]) -> History:
    """A table `t` was made, committed to and dropped."""
    operations = [operation("create-table", "create", "t", "e"), operation("drop-table", "drop", "t", "e")]
    return replace(HISTORY, operations=[*CREATES, *operations], logs={**HISTORY.logs, "e": log})


def test_what_is_true_is_let_through() -> None:
    check_answers(HISTORY, [*REQUESTS, request("refused", 409)])
    check_tables(HISTORY, REQUESTS)
    check_names(HISTORY)
    check_names(dropped([version("create")]))


def test_an_acknowledged_commit_that_is_lost_is_found() -> None:
    with pytest.raises(AssertionError, match="happened 0 times"):
        check_answers(HISTORY, [*REQUESTS, request("lost")])


def test_a_commit_that_was_applied_twice_is_found() -> None:
    logs = {**HISTORY.logs, FIRST: [*HISTORY.logs[FIRST], version(f"commit-{PERMANENT[1]}")]}
    with pytest.raises(AssertionError, match="happened 2 times"):
        check_answers(replace(HISTORY, logs=logs), REQUESTS)


def test_a_refusal_of_what_happened_is_found() -> None:
    lied = [request(each.token, 409) if each.token == f"commit-{FIRST}" else each for each in REQUESTS]
    with pytest.raises(AssertionError, match="happened 1 times"):
        check_answers(HISTORY, lied)


def test_a_refusal_for_no_reason_is_found() -> None:
    with pytest.raises(AssertionError, match="refused for no reason"):
        check_answers(HISTORY, [*REQUESTS, request("refused", 404, may_fail=False)])


def test_a_commit_without_a_request_is_found() -> None:
    with pytest.raises(AssertionError, match="happened without a request"):
        check_answers(HISTORY, REQUESTS[1:])


def test_a_lost_snapshot_is_found() -> None:
    appended = [replace(each, snapshot=7) if each.token == f"commit-{FIRST}" else each for each in REQUESTS]
    with pytest.raises(AssertionError):
        check_tables(HISTORY, appended)


def test_a_commit_that_began_after_a_drop_was_answered_is_found() -> None:
    requests = [*REQUESTS, request("create"), request("drop", ended=5.0), request("late", began=6.0, ended=7.0)]
    check_tables(dropped([version("create")]), requests)
    with pytest.raises(AssertionError, match="a commit after"):
        check_tables(dropped([version("create"), version("late")]), requests)


@pytest.mark.parametrize(
    "impossible",
    [
        operation("create-table", "again", FIRST, "other"),
        operation("drop-table", "drop", "nothing", "other"),
        operation("rename-table", "rename", "nothing", "other"),
    ],
)
def test_an_impossible_operation_is_found(impossible: Operation) -> None:
    with pytest.raises(AssertionError):
        check_names(replace(HISTORY, operations=[*CREATES, impossible]))


def test_a_name_that_leads_elsewhere_is_found() -> None:
    with pytest.raises(AssertionError):
        check_names(replace(HISTORY, names={**HISTORY.names, FIRST: "other"}))
