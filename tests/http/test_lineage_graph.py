"""The graph of lineage around a table, over HTTP: from events and receipts, within limits."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
import ulid

from arco_catalog.http.app import create_app
from arco_catalog.http.options import HttpOptions
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations import lineage_events
from arco_catalog.operations.lineage import receive_event
from arco_catalog.operations.lineage_events import LAST_DAYS
from arco_catalog.operations.open import build_catalog
from arco_catalog.planning import lineage_graph
from arco_catalog.planning.lineage_names import MAX_DATASET_TAGS
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.fields import mapping, objects, sequence
from storage_backends import ABSENT, memory
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tools.support.asgi_client import Client
from tools.support.request_bodies import append_snapshot, schema, uuid7
from tools.support.wrapped_stores import CountingStore

DB = "/v1/wh/namespaces/db"
CATALOG = "http://lake:8181"
SERVO_TASK = "01JBRA08H2E008000000000003"


@dataclass
class Lake:
    """A catalog in memory whose locations are those of a bucket, and whose clock is moved by hand."""

    clock: FakeRuntime = field(default_factory=FakeRuntime)

    def __post_init__(self) -> None:
        self.store = MemoryStore(now_ms=self.clock.now_ms)
        self.counted = CountingStore(self.store)
        self.client = self.serve()
        self.locations: dict[str, str] = {}
        self.snapshots = 0

    def catalog(self) -> Catalog:
        return build_catalog(Settings("wh"), self.counted, "s3://lake", (), self.clock)

    def serve(self) -> Client:
        return Client(create_app({"wh": self.catalog()}, HttpOptions()))

    async def start(self, *tables: str) -> "Lake":
        assert (await self.client.post("/v1/wh/namespaces", {"namespace": ["db"]})).status == 200
        for name in tables:
            made = await self.client.post(f"{DB}/tables", {"name": name, "schema": schema("x")})
            assert made.status == 200, made.body
            self.locations[name] = str(mapping(made.json, "metadata")["location"])
        return self

    async def commit(self, table: str, snapshots: int = 1, /, **headers: str) -> int:
        """Appends snapshots to a table by one commit, a minute after what was before, and returns the last one's
        id."""
        self.clock.ms += 60_000
        updates: list[JsonValue] = []
        for _ in range(snapshots):
            self.snapshots += 1
            file = f"{self.locations[table]}/metadata/{self.snapshots}"
            updates += sequence(append_snapshot(self.snapshots, self.clock.now_ms(), file), "updates")
        made = await self.client.post(f"{DB}/tables/{table}", {"requirements": [], "updates": updates}, **headers)
        assert made.status == 200, made.body
        return self.snapshots

    def at(self, table: str, snapshot_id: int | None = None) -> JsonObject:
        """A table as engines name it in events, by its location."""
        path = self.locations[table].removeprefix("s3://lake/")
        return versioned({"namespace": "s3://lake", "name": path}, snapshot_id)

    async def send(
        self,
        inputs: Sequence[JsonObject],
        outputs: Sequence[JsonObject],
        state: str = "COMPLETE",
        run: str = "",
        **more: JsonValue,
    ) -> str:
        """Sends an event of a run, by default of a new one, and returns the run."""
        sent = self.event(inputs, outputs, state, run, **more)
        answer = await self.client.post("/api/v1/wh/lineage", sent)
        assert answer.status == 201, answer.body
        return str(mapping(sent, "run")["runId"])

    def event(
        self,
        inputs: Sequence[JsonObject],
        outputs: Sequence[JsonObject],
        state: str = "COMPLETE",
        run: str = "",
        **more: JsonValue,
    ) -> JsonObject:
        return {
            "eventType": state,
            "eventTime": time(self.clock.now_ms()),
            "producer": "https://example.com",
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json",
            "run": {"runId": run or uuid7(self.clock.now_ms(), self.clock)},
            "job": {"namespace": "nightly", "name": more.pop("job", "daily")},
            "inputs": [*inputs],
            "outputs": [*outputs],
        }

    async def graph(self, table: str, query: str = "") -> JsonObject:
        answer = await self.client.get(f"{DB}/tables/{table}/lineage?{query}")
        assert answer.status == 200, answer.body
        return answer.json


def versioned(dataset: JsonObject, snapshot_id: int | None) -> JsonObject:
    if snapshot_id is None:
        return dataset
    return {**dataset, "facets": {"version": {"datasetVersion": str(snapshot_id)}}}


def named(name: str, snapshot_id: int | None = None) -> JsonObject:
    """A table by its name in this catalog."""
    return versioned({"namespace": CATALOG, "name": name}, snapshot_id)


def time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def names(graph: JsonObject) -> Mapping[str, str]:
    """The names of nodes by their ids."""
    return {
        str(node["id"]): str(node["name"] or mapping(node, "dataset").get("name") or node["type"])
        for node in objects(graph, "nodes")
    }


def edges(graph: JsonObject) -> set[tuple[str | None, str]]:
    known = names(graph)
    return {
        (None if edge["from"] is None else known[str(edge["from"])], known[str(edge["to"])])
        for edge in objects(graph, "edges")
    }


@pytest.fixture
async def lake() -> Lake:
    return await Lake().start("raw", "daily", "report")


async def test_what_was_read_and_what_was_written_are_neighbours(lake: Lake) -> None:
    raw, daily = await lake.commit("raw"), await lake.commit("daily")
    run = await lake.send([lake.at("raw", raw)], [lake.at("daily", daily)])
    await lake.send([named("db.daily"), {"namespace": "kafka://broker", "name": "clicks"}], [named("wh.db.report")])

    found = await lake.graph("daily")

    assert edges(found) == {("raw", "daily"), ("daily", "report")}
    [upstream] = [edge for edge in objects(found, "edges") if edge["to"] == "n0"]
    expected: JsonObject = {
        "confidence": "DeclaredUnverified",
        "run-id": run,
        "job": {"namespace": "nightly", "name": "daily"},
        "principal": "anonymous",
        "version": 1,
        "snapshot-id": daily,
        "matched-by": "snapshot",
    }
    assert {name: upstream[name] for name in expected} == expected
    root = objects(found, "nodes")[0]
    assert root == {
        "id": "n0",
        "entity": root["entity"],
        "type": "table",
        "namespace": ["db"],
        "name": "daily",
        "dataset": None,
        "depth": 0,
    }
    assert edges(await lake.graph("daily", "direction=upstream")) == {("raw", "daily")}
    assert edges(await lake.graph("daily", "direction=downstream")) == {("daily", "report")}
    assert edges(await lake.graph("report", "direction=upstream&depth=2")) == {
        ("daily", "report"),
        ("clicks", "report"),
        ("raw", "daily"),
    }
    assert (found["cut-off"], mapping(found, "searched")["events"]) == ([], 2)


async def test_of_two_snapshots_in_one_commit_an_edge_has_the_one_that_the_event_names(lake: Lake) -> None:
    daily = await lake.commit("daily", 2)
    await lake.send([lake.at("raw")], [lake.at("daily", daily - 1)])

    [edge] = objects(await lake.graph("daily"), "edges")

    assert (edge["version"], edge["snapshot-id"]) == (1, daily - 1)


async def test_a_claimed_run_in_a_receipt_verifies_nothing(lake: Lake) -> None:
    run = uuid7(lake.clock.now_ms(), lake.clock)
    spelled = str(ulid.ULID.from_uuid(uuid.UUID(run)))
    headers = {"x_arco_servo_run_id": spelled, "x_arco_servo_task_id": SERVO_TASK}
    daily = await lake.commit("daily", **headers)
    await lake.send([lake.at("raw")], [lake.at("daily", daily)], run=run)

    [edge] = objects(await lake.graph("daily"), "edges")

    assert (edge["confidence"], edge["matched-by"]) == ("DeclaredUnverified", "snapshot")


async def test_failed_runs_have_no_edges(lake: Lake) -> None:
    run = await lake.send([lake.at("raw")], [lake.at("daily")], "FAIL")
    await lake.send([lake.at("raw")], [lake.at("daily")], run=run)

    assert edges(await lake.graph("daily")) == set()


async def test_inputs_of_earlier_events_count_for_their_sender(lake: Lake) -> None:
    run = await lake.send([lake.at("raw")], [], "START")
    daily = await lake.commit("daily")
    await lake.send([], [lake.at("daily", daily)], run=run)

    assert edges(await lake.graph("daily")) == {("raw", "daily")}


async def test_an_event_of_the_day_of_an_old_commit_is_found(lake: Lake) -> None:
    daily = await lake.commit("daily")
    await lake.send([lake.at("raw")], [lake.at("daily", daily)])
    lake.clock.ms += 90 * 24 * 60 * 60 * 1000

    found = await lake.graph("daily", "direction=upstream")

    assert edges(found) == {("raw", "daily")}
    assert len(mapping(found, "searched")["days"]) == LAST_DAYS + 1  # type: ignore[arg-type]  # an array


async def test_events_of_other_tables_hide_no_edge_however_many(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_events, "MAX_EVENTS", 2)
    daily = await lake.commit("daily")
    await lake.send([lake.at("raw")], [lake.at("daily", daily)])
    await lake.send([lake.at("daily")], [lake.at("report")])
    for number in range(20):
        lake.clock.ms += 600_000
        await lake.send([named(f"db.x{number}")], [named(f"db.y{number}")])

    found = await lake.graph("daily")

    assert edges(found) == {("raw", "daily"), ("daily", "report")}
    assert (found["cut-off"], mapping(found, "searched")["events"]) == ([], 2)


async def test_of_too_many_events_of_a_table_those_near_to_its_commits_are_read(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage_events, "MAX_EVENTS", 6)
    daily = await lake.commit("daily")
    await lake.send([lake.at("raw")], [lake.at("daily", daily)])
    for number in range(20):
        lake.clock.ms += 600_000
        await lake.send([named(f"db.x{number}")], [lake.at("daily")])

    found = await lake.graph("daily", "direction=upstream")

    assert ("raw", "daily") in edges(found)
    assert found["cut-off"] == ["events"]
    assert "Not all events" in str(found["notes"])


async def test_a_sender_does_not_crowd_out_the_events_of_another(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_events, "MAX_EVENTS", 6)
    daily = await lake.commit("daily")
    for number in range(20):
        await lake.send([named(f"db.x{number}")], [lake.at("daily", daily)])
    lake.clock.ms += 3_600_000
    sent = lake.event([lake.at("raw")], [lake.at("daily", daily)])
    request = OperationRequest("POST", "", "", None, "nightly", {}, lake.clock.now_ms() + 20_000)
    await receive_event(lake.catalog().session(request, ALLOW_ALL), sent, "nightly")

    assert ("raw", "daily") in edges(await lake.graph("daily"))


async def test_events_that_may_be_about_any_table_come_last(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_events, "MAX_EVENTS", 6)
    await lake.send([lake.at("raw")], [lake.at("daily")])
    for number in range(20):
        lake.clock.ms += 600_000
        wide: list[JsonObject] = [{"namespace": "kafka://b", "name": str(n)} for n in range(MAX_DATASET_TAGS + 1)]
        await lake.send(wide, [named(f"db.y{number}")])

    assert ("raw", "daily") in edges(await lake.graph("daily"))


async def test_an_event_that_names_no_table_counts_for_its_run(lake: Lake) -> None:
    run = await lake.send([], [], "FAIL")
    await lake.send([lake.at("raw")], [lake.at("daily")], run=run)

    assert edges(await lake.graph("daily")) == set()


async def test_an_event_of_more_datasets_than_its_name_holds_is_found(lake: Lake) -> None:
    others: list[JsonObject] = [{"namespace": "kafka://b", "name": str(n)} for n in range(MAX_DATASET_TAGS)]
    await lake.send(others, [lake.at("daily")])

    assert len(edges(await lake.graph("daily"))) == MAX_DATASET_TAGS


async def test_of_a_day_with_too_many_events_some_are_not_listed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_events, "MAX_PAGES", 7)
    for number in range(1_001):
        await lake.send([named(f"db.x{number}")], [named(f"db.y{number}")])

    assert (await lake.graph("daily"))["cut-off"] == ["events"]


async def test_nodes_and_edges_are_bounded(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    await lake.send([{"namespace": "kafka://b", "name": str(number)} for number in range(300)], [lake.at("daily")])

    found = await lake.graph("daily")

    assert len(objects(found, "nodes")) == lineage_graph.MAX_NODES
    assert found["cut-off"] == ["nodes"]
    monkeypatch.setattr(lineage_graph, "MAX_EDGES", 10)
    found = await lake.graph("daily")
    assert len(objects(found, "edges")) == 10
    assert found["cut-off"] == ["edges"]
    monkeypatch.setattr(lineage_graph, "MAX_PAIRS", 5)
    assert len(objects(await lake.graph("daily"), "edges")) == 5


async def test_events_that_are_too_long_or_corrupt_are_left_out(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    await lake.send([lake.at("raw")], [lake.at("daily")])
    [key] = [key for key in lake.store.keys("") if "/openlineage/" in key]
    await lake.store.put(key.replace(".json", "0.json"), b"{", ABSENT)

    assert edges(await lake.graph("daily")) == {("raw", "daily")}
    monkeypatch.setattr(lineage_events, "MAX_EVENT_BYTES", 10)
    found = await lake.graph("daily")
    assert (edges(found), found["cut-off"]) == (set(), ["events"])


async def test_edges_in_a_circle_end(lake: Lake) -> None:
    await lake.send([lake.at("raw")], [lake.at("daily")])
    await lake.send([lake.at("daily")], [lake.at("raw")])

    found = await lake.graph("daily", "depth=5")

    assert edges(found) == {("raw", "daily"), ("daily", "raw")}
    assert len(objects(found, "nodes")) == 2


async def test_a_table_without_events_has_a_note_on_what_collects_them(lake: Lake) -> None:
    found = await lake.graph("raw")

    assert (len(objects(found, "nodes")), found["edges"], found["cut-off"]) == (1, [], [])
    assert "arco pipeline run compact" in str(found["notes"])


@pytest.mark.parametrize("query", ["depth=0", "depth=6", "depth=x", "direction=sideways", "depth=1&depth=1"])
async def test_wrong_parameters_are_refused(lake: Lake, query: str) -> None:
    assert (await lake.client.get(f"{DB}/tables/raw/lineage?{query}")).status == 400


async def test_no_table_has_no_lineage(lake: Lake) -> None:
    assert (await lake.client.get(f"{DB}/tables/x/lineage")).status == 404


async def test_calls_of_the_store_are_bounded(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(30):
        lake.clock.ms += 24 * 60 * 60 * 1000
        daily = await lake.commit("daily")
        for _ in range(16):
            await lake.send([lake.at("raw")], [lake.at("daily", daily), lake.at("report")])
    lake.client = lake.serve()
    monkeypatch.setattr(memory, "PAGE_SIZE", 5)

    with lake.counted.measure() as measured:
        found = await lake.graph("daily", "depth=5")

    assert mapping(found, "searched")["events"] == lineage_events.MAX_EVENTS
    assert len(mapping(found, "searched")["days"]) == lineage_events.MAX_DAYS  # type: ignore[arg-type]  # an array
    assert measured.calls <= 350
