"""Queued work: each message is done, or told to the queue as failed; no message is to blame for another."""

import asyncio
import importlib
import itertools
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import pytest
from botocore.session import Session  # type: ignore[import-untyped]

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.work_queue import WorkQueue
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.paths import Paths
from arco_catalog.upkeep.collection import collect
from arco_catalog.upkeep.collection.batch_runner import BatchRunner
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run, Stopped
from arco_catalog.upkeep.collection.tasks import collect_tasks
from arco_catalog.upkeep.invocation import MARGIN_MS
from arco_catalog.upkeep.purge.deletion import Deletion
from storage_backends.local.store import LocalStore
from tests.lambda_.test_reconcile import Invocation
from tests.support.nonconditional_store import NonconditionalStore
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property

Handler = Callable[[Mapping[str, object], Invocation], JsonObject]

ALL = {"version": 1, "work": "reconcile"}
IN_TIME, TOO_LATE = 60_000, 5_000
AT_ONCE = Settings("wh", purge=PurgeSettings(undrop_window_ms=0))
NUMBERS = itertools.count(1)


@pytest.fixture
def handler() -> Handler:
    return cast(Handler, importlib.import_module("lambda.work").handler)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalog with three tables, each with a commit of which the receipt was lost."""

    async def fill() -> None:
        fixture = CatalogFixture(LocalStore(tmp_path), url=f"file://{tmp_path}")
        await fixture.namespace("db")
        for name in "abc":
            await fixture.table(name)
            await fixture.commit(set_property("p", "1"), name)

    asyncio.run(fill())
    for receipt in receipts(tmp_path):
        receipt.unlink()
    monkeypatch.setenv("ARCO_STORE", f"file:{tmp_path}")
    monkeypatch.setenv("ARCO_WAREHOUSE", "wh")
    return tmp_path


def receipts(store: Path) -> list[Path]:
    """The committed ones."""
    return [*(store / "wh/_catalog/events").glob("*/iceberg/committed/*.json")]


def entities(store: Path) -> list[str]:
    return sorted(pointer.stem for pointer in (store / "wh/_catalog/iceberg_pointers").glob("*.json"))


def batch(**messages: object) -> Mapping[str, object]:
    """What SQS sends of these messages, each under its id; text is sent as it is."""
    return {
        "Records": [
            {"messageId": name, "body": body if isinstance(body, str) else json.dumps(body)}
            for name, body in messages.items()
        ]
    }


def failed(answer: JsonObject) -> list[object]:
    """The ids that go back to the queue."""
    assert [*answer] == ["batchItemFailures"]
    return [cast(JsonObject, item)["itemIdentifier"] for item in cast(list[object], answer["batchItemFailures"])]


def test_a_reconcile_walks_everything(handler: Handler, store: Path) -> None:
    assert failed(handler(batch(a=ALL), Invocation(IN_TIME))) == []
    assert len(receipts(store)) == 6


def test_a_reconcile_of_one_entity_walks_that_one(handler: Handler, store: Path) -> None:
    message = {**ALL, "entity": entities(store)[1]}
    assert failed(handler(batch(a=message), Invocation(IN_TIME))) == []
    assert len(receipts(store)) == 2


BAD = {
    "no JSON": "nonsense",
    "no object": "[]",
    "no version": {"work": "reconcile"},
    "a later version": {"version": 2, "work": "reconcile"},
    "no work": {"version": 1},
    "unknown work": {"version": 1, "work": "purge"},
    "a number for a task": {"version": 1, "work": "tasks", "task": 7},
    "a path for an entity": {**ALL, "entity": "../../x"},
    "a number for an entity": {**ALL, "entity": 7},
}


@pytest.mark.parametrize("message", BAD.values(), ids=BAD)
def test_what_asks_for_nothing_that_there_is_fails_and_the_others_do_not(
    handler: Handler, store: Path, message: object
) -> None:
    assert failed(handler(batch(bad=message, good=ALL), Invocation(IN_TIME))) == ["bad"]
    assert len(receipts(store)) == 6


def test_a_walk_that_is_not_complete_comes_again(handler: Handler, store: Path) -> None:
    entity = entities(store)[0]
    (store / f"wh/_catalog/iceberg_pointers/{entity}.json").write_text("{}")
    assert failed(handler(batch(a={**ALL, "entity": entity}), Invocation(IN_TIME))) == ["a"]


def test_no_message_is_begun_when_time_is_over(handler: Handler, store: Path) -> None:
    first, second = entities(store)[:2]
    messages = batch(a={**ALL, "entity": first}, b={**ALL, "entity": second})
    begun, between_two_files = (IN_TIME, IN_TIME, IN_TIME), (IN_TIME,)
    assert failed(handler(messages, Invocation(*begun, *between_two_files, TOO_LATE))) == ["b"]
    assert len(receipts(store)) == 2


def test_a_long_walk_of_one_entity_goes_on_where_time_cut_it(handler: Handler, store: Path) -> None:
    message = batch(a={**ALL, "entity": entities(store)[0]})
    assert failed(handler(message, Invocation(IN_TIME, IN_TIME, IN_TIME, TOO_LATE))) == ["a"]
    assert len(receipts(store)) == 1
    assert failed(handler(message, Invocation(IN_TIME))) == []
    assert len(receipts(store)) == 2


def test_a_message_earns_no_receipt_for_what_no_name_leads_to(handler: Handler, store: Path) -> None:
    """The pointer of a create that never committed, or has yet to."""
    entity = "01KAN0Y7Q2M3C4D5E6F7G8H9JK"
    pointers = store / "wh/_catalog/iceberg_pointers"
    one = pointers / f"{entities(store)[0]}.json"
    (pointers / f"{entity}.json").write_text(one.read_text().replace(one.stem, entity))
    assert failed(handler(batch(a={**ALL, "entity": entity}), Invocation(IN_TIME))) == ["a"]
    assert receipts(store) == []


def test_a_walk_that_time_cuts_short_comes_again(handler: Handler, store: Path) -> None:
    assert failed(handler(batch(a=ALL), Invocation(IN_TIME, IN_TIME, IN_TIME, TOO_LATE))) == ["a"]
    assert receipts(store) == []
    assert failed(handler(batch(a=ALL), Invocation(IN_TIME))) == []
    assert len(receipts(store)) == 6


@pytest.mark.parametrize("name", ["lambda.work", "lambda.reconcile"])
def test_work_on_a_store_that_ignores_conditions_fails_as_a_whole(
    store: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    careless = NonconditionalStore(LocalStore(store))
    monkeypatch.setattr("arco_catalog.operations.environment.opener_in", lambda _: lambda _url: careless)
    with pytest.raises(RuntimeError, match="could be lost"):
        importlib.import_module(name).handler(batch(a=ALL), Invocation(IN_TIME))


TASKS = {"version": 1, "work": "tasks"}


@pytest.fixture
def dropped(store: Path) -> Path:
    """The folder of a table that was dropped with purge, in that catalog."""

    async def drop() -> None:
        fixture = CatalogFixture(LocalStore(store), settings=AT_ONCE, url=f"file://{store}")
        await drop_table(fixture.session(), NS, "a", purge=True)

    [folder] = [file.parents[1] for file in (store / "wh/warehouse").rglob("00001-*.json") if "/a-" in str(file)]
    asyncio.run(drop())
    return folder


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def queue(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A queue that the function's environment names, as a function that receives its messages."""
    keys = {"aws_access_key_id": "an-id", "aws_secret_access_key": "a-key"}
    sqs = Session().create_client("sqs", region_name="us-east-1", endpoint_url=s3_endpoint, **keys)
    url = sqs.create_queue(QueueName=f"work-{next(NUMBERS)}")["QueueUrl"]
    access = {"AWS_ENDPOINT_URL_SQS": s3_endpoint, "AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "a-key"}
    for name, value in {**access, "ARCO_WORK_QUEUE": url}.items():
        monkeypatch.setenv(name, value)
    return lambda: [message["Body"] for message in sqs.receive_message(QueueUrl=url).get("Messages", [])]


def test_a_purge_that_is_due_is_done_and_its_metrics_go_to_stdout(
    handler: Handler, dropped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failed(handler(batch(a=TASKS), Invocation(IN_TIME))) == []
    assert files(dropped) == []
    [line] = [json.loads(text) for text in capsys.readouterr().out.splitlines() if "TasksExecuted" in text]
    directive, of_any = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Dimensions"], of_any["Dimensions"]) == ([["Warehouse"]], [[]])
    units = {metric["Name"]: metric["Unit"] for metric in directive["Metrics"]}
    assert units == {"TasksExecuted": "Count", "TasksCompleted": "Count", "TasksDueAge": "Seconds"}
    assert (line["Warehouse"], line["TasksExecuted"], line["TasksCompleted"], line["TasksFailed"]) == ("wh", 1, 1, 0)


def test_a_task_that_a_message_names_is_done(handler: Handler, store: Path, dropped: Path) -> None:
    [task] = (folder.name for folder in (store / "wh/_catalog/tasks").iterdir() if folder.name != "open")
    assert failed(handler(batch(a={**TASKS, "task": "none"}), Invocation(IN_TIME))) == []
    assert files(dropped)
    assert failed(handler(batch(a={**TASKS, "task": task}), Invocation(IN_TIME))) == []
    assert files(dropped) == []


def test_a_purge_that_time_ends_is_gone_on_with_by_a_new_message(
    handler: Handler, dropped: Path, queue: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delivered again, the old one would end among the dead letters, and wait for its time-out."""
    monkeypatch.setattr("arco_catalog.tasks.worker.MARGIN_MS", 0)  # or the release waits for it
    with monkeypatch.context() as patch:
        patch.setattr(Deletion, "_all", stands_still)
        assert failed(handler(batch(a=TASKS), Invocation(MARGIN_MS + 2_000))) == []
    assert files(dropped)
    [again] = queue()
    assert json.loads(again) == TASKS
    assert failed(handler(batch(a=again), Invocation(IN_TIME))) == []
    assert (files(dropped), queue()) == ([], [])


def test_a_function_that_has_only_to_wait_for_another_leaves_that_to_a_message(
    handler: Handler, dropped: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first has four seconds, of which it works half, and is stopped over a delete; nobody waits for that one's
    calls in a function."""
    for module in ("worker", "execution"):
        monkeypatch.setattr(f"arco_catalog.tasks.{module}.MARGIN_MS", 8_000)
    sent: list[tuple[str, int]] = []

    async def send(queue: WorkQueue, body: str, delay_ms: int = 0) -> None:
        sent.append((body, delay_ms))

    monkeypatch.setattr(WorkQueue, "send", send)
    monkeypatch.setenv("ARCO_WORK_QUEUE", "http://localhost/queue")
    with monkeypatch.context() as patch:
        patch.setattr(Deletion, "_all", stands_still)
        assert failed(handler(batch(a=TASKS), Invocation(*[4_000] * 3, 2_000))) == []
    assert files(dropped)
    for _ in range(5):  # a busy machine may be too slow for the first message to come in time
        [(body, delay_ms)] = sent
        sent.clear()
        time.sleep(delay_ms / 1000)
        assert failed(handler(batch(a=body), Invocation(IN_TIME))) == []
        if succeeded(store):
            break
    assert succeeded(store)
    assert (files(dropped), sent) == ([], [])


def succeeded(store: Path) -> bool:
    """Whether the one task of the catalog did."""
    return any(json.loads(file.read_text())["status"] == "SUCCESS" for file in store.glob("wh/_catalog/tasks/*/*.json"))


def test_without_a_queue_such_a_message_comes_again(
    handler: Handler, dropped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Deletion, "_all", stands_still)
    assert failed(handler(batch(a=TASKS), Invocation(MARGIN_MS + 2_000))) == ["a"]


async def stands_still(deletion: Deletion, files: object) -> None:
    await asyncio.Event().wait()


COLLECT = {"version": 1, "work": "collect"}


@pytest.fixture
def hints(store: Path) -> list[Path]:
    """Hints of tasks that never came, which are old enough to be collected."""
    paths = [store / Paths("wh").open_task(f"00000000-0000-4000-8000-{number:012}", 0) for number in range(3)]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (time.time() - 8 * 24 * 60 * 60,) * 2)
    return paths


def collections(capsys: pytest.CaptureFixture[str]) -> list[tuple[object, ...]]:
    """What lines on stdout say of collections: which catalog, whether it was completed, what was collected, and whether
    there are metrics."""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "ObjectsCollected" in line]
    return [
        (each["Warehouse"], each["CollectionCompleted"], each["ObjectsCollected"], "_aws" in each) for each in lines
    ]


def test_a_collection_deletes_and_its_metrics_go_to_stdout(
    handler: Handler, hints: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert failed(handler(batch(a=COLLECT), Invocation(IN_TIME))) == []
    assert not [path for path in hints if path.exists()]
    assert collections(capsys) == [("wh", 1, 3, True)]


def test_a_schedule_needs_no_queue(handler: Handler, hints: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert handler(COLLECT, Invocation(IN_TIME)) == {}
    assert collections(capsys) == [("wh", 1, 3, True)]


def test_a_collection_that_time_ends_is_gone_on_with_by_a_new_message(
    handler: Handler,
    hints: list[Path],
    queue: Callable[[], list[str]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(collect, "collect_tasks", collects_tasks_and_ends)
        assert failed(handler(batch(a=COLLECT), Invocation(IN_TIME))) == []
    assert collections(capsys) == [("wh", 0, 3, False)]
    [again] = queue()
    assert json.loads(again) == COLLECT
    assert failed(handler(batch(a=again), Invocation(IN_TIME))) == []
    assert (collections(capsys), queue()) == ([("wh", 1, 0, True)], [])


def test_a_collection_that_got_nowhere_in_its_time_fails(
    handler: Handler, store: Path, queue: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "collect_checkpoints", ends)
    assert failed(handler(batch(a=COLLECT), Invocation(IN_TIME))) == ["a"]
    assert queue() == []


async def collects_tasks_and_ends(run: Run, entities: Entities, runner: BatchRunner) -> None:
    """Time is over behind them, whichever kind a run begins with."""
    await collect_tasks(run, entities, runner)
    raise Stopped


async def ends(run: object, entities: object) -> None:
    raise Stopped


def test_properties_of_tasks_are_read(handler: Handler, dropped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCO_TASK_PROPERTIES", "delegation.retry.default.max-attempts=none")
    with pytest.raises(ValueError, match="max-attempts"):
        handler(batch(a=TASKS), Invocation(IN_TIME))
