"""Iceberg's sink for Kafka Connect on the catalog: each row of a topic is in the table once, though workers are killed
and another writer appends to the table all the time."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from tests.engines.kafka_connect.kafka import JARS, Kafka, broker
from tests.engines.kafka_connect.requesting_proxy import requesting_rebases
from tests.engines.lake import Lake, attempt_of, lake
from tools.demo.engines import pyiceberg_catalog
from tools.demo.server import WAREHOUSE
from tools.support.appended_files import ALLOWED, REBASE

pytestmark = [pytest.mark.slow, pytest.mark.optional(f"{JARS}/complete")]

TABLE = "kafka.rows"
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("by", pa.string())])
PROPERTIES = {
    "commit.manifest-merge.enabled": "false",  # no commit that merges manifests is rebased
    "commit.retry.num-retries": "100",  # of the sink, beside a writer that never pauses
    "commit.retry.max-wait-ms": "500",
    "write.metadata.previous-versions-max": "5000",  # all that have receipts
}
BATCH = 500
KILLS = 3
ARRIVED_S = 400.0
"""How long rows may take from the topic to the table. After a kill the next worker waits 45 seconds, until Kafka no
longer counts the consumers of the killed one."""


@pytest.fixture
def kafka_lake(tmp_path: Path) -> Iterator[Lake]:
    with lake("rest", f"file:{tmp_path / 'store'}", tmp_path / "server.log", {}) as opened:
        opened.bystander.create_namespace("kafka")
        yield opened


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    with broker(tmp_path) as running:
        running.create_topics("rows", "control-iceberg")
        yield running


Send = Callable[[int], list[int]]
"""Sends this many rows to the topic, with the next ids, and returns all ids until now."""


@pytest.fixture
def send(kafka: Kafka) -> Iterator[Send]:
    ids: list[int] = []
    with kafka.producer("rows") as produce:

        def send_rows(count: int) -> list[int]:
            added = range(len(ids), len(ids) + count)
            produce({"id": number, "by": "kafka"} for number in added)
            ids.extend(added)
            return ids

        yield send_rows


def ids_in(opened: Lake) -> list[int]:
    """The ids of the rows by Kafka in the table."""
    rows = opened.bystander.load_table(TABLE).scan().to_arrow().to_pylist()
    return [row["id"] for row in rows if row["by"] == "kafka"]


def await_that(holds: Callable[[], bool], kafka: Kafka) -> None:
    deadline = time.perf_counter() + ARRIVED_S
    while not holds():
        if time.perf_counter() > deadline:
            raise TimeoutError(f"the rows did not arrive within {ARRIVED_S} s:\n{kafka.log.read_text()[-4000:]}")
        time.sleep(0.5)


def where(uri: str) -> dict[str, str]:
    return {"uri": uri, "warehouse": WAREHOUSE}


def test_each_row_is_there_once_though_workers_are_killed(kafka: Kafka, kafka_lake: Lake, send: Send) -> None:
    kafka_lake.bystander.create_table(TABLE, schema=SCHEMA, properties=PROPERTIES)

    def arrived(count: int) -> None:
        await_that(lambda: len(ids_in(kafka_lake)) >= count, kafka)

    for kill in range(KILLS):
        with kafka.connect(where(kafka_lake.server.uri), TABLE) as worker:
            send(BATCH)
            arrived(kill * BATCH + 1)
            worker.kill()
    with kafka.connect(where(kafka_lake.server.uri), TABLE):
        arrived(KILLS * BATCH)
        ids = send(1)  # a commit later nothing has come twice
        arrived(len(ids))

    assert Counter(ids_in(kafka_lake)) == Counter(ids)
    kafka_lake.assert_receipts(TABLE, engine="kafka-connect")


def kafka_attempts(opened: Lake) -> Sequence[int]:
    """The number of the attempt of each commit by the sink."""
    snapshots = opened.bystander.load_table(TABLE).metadata.snapshots
    return [attempt_of(each) for each in snapshots if each.summary and each.summary.get("kafka.connect.commit-id")]


def test_its_commits_are_never_rebased_though_they_request_it(kafka: Kafka, kafka_lake: Lake, send: Send) -> None:
    kafka_lake.bystander.create_table(TABLE, schema=SCHEMA, properties={**PROPERTIES, **ALLOWED})
    ended = threading.Event()

    def append_until_ended() -> int:
        with pyiceberg_catalog(kafka_lake.server.uri, WAREHOUSE, {}) as catalog:
            count = 0
            while not ended.is_set():
                rows = pa.table({"id": [count], "by": ["pyiceberg"]}, schema=SCHEMA)
                catalog.load_table(TABLE).append(rows, snapshot_properties=REBASE)
                count += 1
            return count

    def has_lost_once() -> bool:
        """Whether a commit lost, so that the sink made another attempt, or the catalog rebased it, which names 0."""
        send(1)
        return any(attempt != 1 for attempt in kafka_attempts(kafka_lake))

    with (
        requesting_rebases(kafka_lake.server.uri) as uri,
        kafka.connect(where(uri), TABLE),
        ThreadPoolExecutor(1) as pool,
    ):
        beside = pool.submit(append_until_ended)
        try:
            await_that(has_lost_once, kafka)
        finally:
            ended.set()
        appended = beside.result(timeout=ARRIVED_S)
        ids = send(1)
        await_that(lambda: len(ids_in(kafka_lake)) >= len(ids), kafka)

    assert Counter(ids_in(kafka_lake)) == Counter(ids)
    assert len(kafka_lake.rows(TABLE)) == len(ids) + appended
    kafka_lake.assert_receipts(TABLE)
    snapshots = {each.snapshot_id: each for each in kafka_lake.bystander.load_table(TABLE).metadata.snapshots}
    receipts = json.loads(kafka_lake.server.receipts(TABLE))
    of_kafka = [each for each in receipts if str(each.get("engine", "")).startswith("kafka-connect")]
    for receipt in of_kafka:
        [added] = receipt["added_snapshot_ids"]
        summary = snapshots[added].summary
        assert summary is not None
        assert summary.get("arco.append") == "rebase"
    rebased = [each for each in receipts if "manifest_list" in each]
    print(f"commits by Kafka: {len(of_kafka)}, by PyIceberg: {appended}; rebased: {len(rebased)}")
    assert of_kafka
    assert not [each for each in rebased if each in of_kafka]
