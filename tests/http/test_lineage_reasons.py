"""Why runs that were reported have no edge in the graph of lineage around a table, over HTTP."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from arco_catalog.http.app import create_app
from arco_catalog.http.options import HttpOptions
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations import lineage_events, lineage_reasons
from arco_catalog.operations.lineage import receive_event
from arco_catalog.operations.open import build_catalog
from arco_catalog.planning import lineage_reasons as reasons_of_runs
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.fields import mapping, objects, text
from arco_catalog.state.paths import day_of
from storage_backends import ANY, Found
from storage_backends.memory import MemoryStore
from tests.http.test_lineage_graph import DB, Lake, edges, named
from tests.support.fake_runtime import FakeRuntime
from tools.support.asgi_client import Client
from tools.support.request_bodies import append_snapshot, schema

SPARK = Path(__file__).parents[1] / "compact" / "spark_events.jsonl"
DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
async def lake() -> Lake:
    return await Lake().start("raw", "daily", "report")


async def explained(lake: Lake, table: str = "daily", query: str = "") -> JsonObject:
    return mapping(await lake.graph(table, f"explain=true&{query}"), "without-edges")


async def only(lake: Lake, table: str = "daily", query: str = "") -> tuple[str, str]:
    """The reason and the message of the one run without an edge."""
    [run] = objects(await explained(lake, table, query), "runs")
    return text(run, "reason"), text(run, "message")


async def test_a_run_with_an_edge_needs_no_reason(lake: Lake) -> None:
    run = await lake.send([lake.at("raw")], [], "START")
    await lake.send([lake.at("raw")], [lake.at("daily", await lake.commit("daily"))], run=run)

    found = await explained(lake)

    assert (found["runs"], found["reasons"], found["events"]) == ([], {}, 2)


async def test_nothing_is_explained_unless_it_is_requested(lake: Lake) -> None:
    await lake.send([], [lake.at("daily")])

    assert (await lake.graph("daily"))["without-edges"] is None


async def test_a_failed_run(lake: Lake) -> None:
    run = await lake.send([lake.at("raw")], [lake.at("daily")], "FAIL")
    await lake.send([lake.at("raw")], [lake.at("daily")], run=run)

    assert (await only(lake))[0] == "failed"


@pytest.mark.parametrize("state", ["START", "OTHER"])
async def test_a_run_that_reports_no_end(lake: Lake, state: str) -> None:
    await lake.send([lake.at("raw")], [lake.at("daily")], state)

    assert await only(lake) == ("not-complete", f"no event reports that it has written: the last is {state}")


async def test_a_run_without_outputs_or_without_inputs(lake: Lake) -> None:
    await lake.send([lake.at("daily")], [])
    assert (await only(lake))[0] == "no-outputs"
    await lake.send([], [lake.at("daily")])
    assert mapping(await explained(lake), "reasons") == {"no-outputs": 1, "no-inputs": 1}


async def test_a_run_that_goes_on_and_names_no_commit(lake: Lake) -> None:
    await lake.commit("daily")
    await lake.send([lake.at("raw")], [lake.at("daily", 99)], "RUNNING")

    reason, message = await only(lake)

    assert (reason, "db.daily" in message) == ("no-commit", True)


async def test_a_table_of_the_same_name_elsewhere(lake: Lake) -> None:
    elsewhere: JsonObject = {"namespace": "s3://test-lake", "name": "wh/db/daily"}
    symlinks: JsonObject = {"symlinks": {"identifiers": [{"namespace": "http://x", "name": "db.daily"}]}}
    await lake.send([{"namespace": "kafka://b", "name": "clicks"}], [{**elsewhere, "facets": symlinks}])

    reason, message = await only(lake)

    assert reason == "other-location"
    assert "db.daily at s3://test-lake wh/db/daily" in message


async def test_a_table_that_was_dropped_and_made_anew_is_another_one(lake: Lake) -> None:
    old = {
        **lake.at("daily"),
        "facets": {"symlinks": {"identifiers": [{"namespace": "http://x", "name": "db.daily"}]}},
    }
    dropped = await lake.client.delete(f"{DB}/tables/daily")
    assert dropped.status == 204
    made = await lake.client.post(f"{DB}/tables", {"name": "daily", "schema": schema("x")})
    assert made.status == 200
    await lake.send([{"namespace": "kafka://b", "name": "clicks"}], [old])  # type: ignore[list-item]  # it is JSON

    assert (await only(lake))[0] == "other-location"


async def test_a_table_keeps_its_lineage_when_it_is_renamed(lake: Lake) -> None:
    await lake.send([lake.at("raw")], [lake.at("daily")])
    await lake.send([{"namespace": "kafka://b", "name": "clicks"}], [named("db.daily")])
    renamed: JsonObject = {
        "source": {"namespace": ["db"], "name": "daily"},
        "destination": {"namespace": ["db"], "name": "weekly"},
    }
    assert (await lake.client.post("/v1/wh/tables/rename", renamed)).status == 204

    graph = await lake.graph("weekly", "explain=true")

    assert edges(graph) == {("raw", "weekly")}
    [run] = objects(mapping(graph, "without-edges"), "runs")
    assert run["reason"] == "unknown-datasets"
    assert text(run, "message").endswith(": http://lake:8181 db.daily")


@pytest.mark.parametrize(
    ("namespace", "name", "reason"),
    [
        ("kafka://broker:9092", "db.daily", "other-namespace"),
        ("postgres://host", "shop.db.daily", "other-namespace"),
        ("trino://host:8080", "other.db.daily", "other-catalog"),
        ("http://elsewhere", "other.db.daily", "other-catalog"),
        ("kafka://broker:9092", "clicks", "unknown-datasets"),
    ],
)
async def test_a_name_that_means_no_table_here(lake: Lake, namespace: str, name: str, reason: str) -> None:
    await lake.send([{"namespace": "kafka://b", "name": "x"}], [{"namespace": namespace, "name": name}])

    found = await only(lake)

    assert found[0] == reason
    assert (name in found[1]) == (reason != "unknown-datasets" or name == "clicks")


async def test_runs_about_other_tables_and_of_the_other_direction(lake: Lake) -> None:
    await lake.send([lake.at("raw")], [lake.at("report")])
    assert await only(lake) == ("other-tables", "it is about other tables: db.report, db.raw")

    await lake.send([lake.at("daily")], [lake.at("report")])
    found = await explained(lake, query="direction=upstream")
    assert mapping(found, "reasons") == {"other-tables": 1, "not-shown": 1}


async def test_events_of_no_run_and_damaged_and_large_ones(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_events, "MAX_EVENT_BYTES", 2_000)
    about: JsonObject = {
        "eventTime": "2026-01-01T00:00:00Z",
        "producer": "x",
        "schemaURL": "x",
        "dataset": lake.at("daily"),
    }
    assert (await lake.client.post("/api/v1/wh/lineage", about)).status == 201
    await lake.send([lake.at("raw")], [{**lake.at("daily"), "facets": {"x": {"long": "x" * 2_000}}}])
    run = await lake.send([lake.at("raw")], [lake.at("daily")])
    key = next(key for key, body in await stored(lake) if run.encode() in body)
    await lake.store.put(key, b"{damaged", ANY)

    assert mapping(await explained(lake), "reasons") == {"no-run": 1, "too-large": 1, "unreadable": 1}


async def stored(lake: Lake) -> list[tuple[str, bytes]]:
    """The stored events."""
    page = await lake.store.list("")
    keys = [each.key for each in page.entries if "/openlineage/" in each.key]
    found = [(key, await lake.store.get(key)) for key in keys]
    return [(key, read.body) for key, read in found if isinstance(read, Found)]


async def test_events_of_days_that_are_not_read_are_counted_by_their_names(lake: Lake) -> None:
    await lake.send([lake.at("raw")], [lake.at("daily")])
    await lake.send([lake.at("raw")], [lake.at("report")])
    day = day_of(lake.clock.now_ms()).isoformat()
    lake.clock.ms += 10 * DAY_MS

    found = await explained(lake)

    assert (found["earlier"], found["runs"]) == ([{"day": day, "events": 1}], [])


async def test_a_cycle_ends_and_leaves_no_run_without_an_edge(lake: Lake) -> None:
    await lake.send([lake.at("raw")], [lake.at("daily")])
    await lake.send([lake.at("daily")], [lake.at("raw")])

    graph = await lake.graph("daily", "depth=5&explain=true")

    assert (edges(graph), mapping(graph, "without-edges")["runs"]) == ({("raw", "daily"), ("daily", "raw")}, [])


async def test_of_thousands_of_senders_some_are_read_and_listed(lake: Lake) -> None:
    for sender in range(3_000):
        about = lake.at("daily") if sender % 2 else named(f"db.x{sender}")
        sent = lake.event([], [about])
        request = OperationRequest("POST", "", "", None, f"sender-{sender}", {}, lake.clock.now_ms() + 20_000)
        await receive_event(lake.catalog().session(request, ALLOW_ALL), sent, f"sender-{sender}")
    lake.client = lake.serve()

    with lake.counted.measure() as measured:
        found = await explained(lake)

    read = lineage_events.MAX_EVENTS
    assert (found["events"], mapping(found, "reasons")) == (read, {"no-inputs": read})
    assert len(objects(found, "runs")) == lineage_reasons.MAX_LISTED
    assert len({run["principal"] for run in objects(found, "runs")}) == lineage_reasons.MAX_LISTED
    assert measured.calls <= 350 + lineage_reasons.EARLIER_DAYS


async def test_the_latest_events_are_read_though_their_tags_name_others(lake: Lake) -> None:
    for number in range(lineage_reasons.MAX_OTHERS + 10):
        lake.clock.ms += 60_000
        await lake.send([], [named(f"db.x{number}")])

    found = await explained(lake)

    assert (found["events"], mapping(found, "reasons")) == (lineage_reasons.MAX_OTHERS, {"no-inputs": 40})


async def test_datasets_are_searched_up_to_a_limit(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasons_of_runs, "MAX_SEARCHED", 4)
    for number in range(4):
        await lake.send([named(f"db.x{number}")], [named(f"db.y{number}")])

    assert mapping(await explained(lake), "reasons") == {"unknown-datasets": 2, "not-searched": 2}


async def test_only_datasets_that_are_searched_count_towards_the_limit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reasons_of_runs, "MAX_SEARCHED", 30)
    inputs, outputs = ([named(f"db.{side}{number}") for number in range(20)] for side in ("x", "y"))
    await lake.send(inputs, outputs)

    assert mapping(await explained(lake), "reasons") == {"unknown-datasets": 1}


@pytest.fixture
async def spark() -> Mapping[str, JsonObject]:
    """The graphs of three tables about which Spark's own listener sent recorded events (tests/compact)."""
    clock = FakeRuntime()
    lines = [json.loads(line) for line in SPARK.read_text().splitlines()]
    clock.ms = ms("2026-11-23T09:10:00Z")
    store = MemoryStore(now_ms=clock.now_ms)
    catalog = build_catalog(Settings("demo"), store, "file:///lake", (), clock)
    client = Client(create_app({"demo": catalog}, HttpOptions()))
    assert (await client.post("/v1/demo/namespaces", {"namespace": ["sales"]})).status == 200
    folder = "file:///lake/demo/warehouse/sales"
    places = {"orders": "orders-01M83V02XEY5GG5A0AJK63M45C", "daily": "daily-01M83V0A61JW6FNB8SX173EPKV"}
    for name, place in places.items():
        body: JsonObject = {"name": name, "schema": schema("x"), "location": f"{folder}/{place}"}
        made = await client.post("/v1/demo/namespaces/sales/tables", body)
        assert made.status == 200, made.body
    commits = {"2026-11-23T09:15:14.512Z": ("orders", 3134576594932513181)}
    commits["2026-11-23T09:15:20.055Z"] = ("daily", 6964555305479573829)
    for at, (name, snapshot) in commits.items():
        clock.ms = ms(at)
        appended = append_snapshot(snapshot, clock.ms, f"{folder}/{places[name]}/metadata/m")
        made = await client.post(f"/v1/demo/namespaces/sales/tables/{name}", appended)
        assert made.status == 200, made.body
    for line in lines:
        clock.ms = max(clock.ms, ms(line["eventTime"]))
        assert (await client.post("/api/v1/demo/lineage", line)).status == 201
    return {
        name: (await client.get(f"/v1/demo/namespaces/sales/tables/{name}/lineage?explain=true")).json
        for name in places
    }


def ms(time: str) -> int:
    return int(datetime.fromisoformat(time).astimezone(UTC).timestamp() * 1000)


async def test_what_spark_sends_of_statements_without_inputs_has_reasons(spark: Mapping[str, JsonObject]) -> None:
    orders, daily = spark["orders"], spark["daily"]

    assert {("orders", "daily")} <= edges(daily)
    assert {("orders", "daily")} <= edges(orders)
    found = {
        str(mapping(run, "job")["name"]): run["reason"] for run in objects(mapping(orders, "without-edges"), "runs")
    }
    assert found["nightly.create_table.sales_orders"] == "no-inputs"
    assert set(found.values()) <= {"no-inputs", "no-outputs", "failed", "not-complete", "not-shown", "other-tables"}
    assert sum(mapping(mapping(orders, "without-edges"), "reasons").values()) >= 2  # type: ignore[arg-type]  # numbers
