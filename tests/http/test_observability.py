"""The line that each request leaves: what happened, as the budgets and the answer have it."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from arco_catalog.http.app import create_app
from arco_catalog.http.asgi import Message
from arco_catalog.http.routes import HEALTH, ROUTES
from arco_catalog.http.telemetry.emf import MetricLine
from arco_catalog.http.telemetry.lines import JsonLines, TextLines
from arco_catalog.http.telemetry.names import OPERATIONS, UNKNOWN, operation
from arco_catalog.http.telemetry.reconcile_line import reconcile_line
from arco_catalog.http.telemetry.request_log import RequestLog
from arco_catalog.http.telemetry.telemetry import Telemetry
from arco_catalog.iceberg.json import JsonObject, JsonValue, loads
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.operations.request_stats import RequestStats, collect_stats, current_stats
from storage_backends import Found, Missing, StoreUnavailable, Unchanged, Version
from tests.http.client import Answer, Client, scope_of
from tests.http.conftest import Site
from tests.http.watched import NAMESPACE, Watched
from tests.support.catalog_fixture import set_property

DB = "/v1/wh/namespaces/db"
T = f"{DB}/tables/t"
JSON = {"content-type": "application/json"}
OPENAPI = Path(__file__).parents[1] / "fuzz/openapi.json"
"""The specification, as the fuzzer keeps it."""


@pytest.fixture
async def site() -> Watched:
    """A catalog with the namespace `db` and in it the table `t`, and nothing told yet."""
    made = Watched()
    await made.namespace("db", "db")
    await made.table("t")
    made.lines.clear()
    return made


def table_uuid(answer: Answer) -> JsonValue:
    metadata = answer.json["metadata"]
    assert isinstance(metadata, dict)
    return metadata["table-uuid"]


def pointer(site: Site, entity: JsonValue) -> JsonObject:
    body = site.store._objects[f"wh/_catalog/iceberg_pointers/{entity}.json"].body
    document = loads(body)
    assert isinstance(document, dict)
    return document


async def commit(client: Client, value: str, **headers: str) -> Answer:
    return await client.post(T, set_property("a", value), **headers)


class TestALoad:
    async def test_is_told_whole(self, site: Watched) -> None:
        began = time.perf_counter()
        answer = await site.client.get(
            T, user_agent="Trino/476 (a secret)", x_request_id="req-1", traceparent=f"00-{'a' * 32}-{'b' * 16}-01"
        )
        passed_ms = 1_000 * (time.perf_counter() - began)

        told = site.last
        latency, entity = told.pop("Latency"), told.pop("entity")
        assert isinstance(latency, float)
        assert 0 < latency <= passed_ms + 0.001  # it is rounded
        assert isinstance(entity, str)
        assert pointer(site, entity)["entity"] == entity
        assert isinstance(told.pop("_aws"), dict)
        assert told == {
            "time": "2026-01-01T00:00:00.000Z",
            "level": "info",
            "Warehouse": "wh",
            "Operation": "loadTable",
            "method": "GET",
            "route": "/v1/{prefix}/namespaces/{namespace}/tables/{table}",
            "status": 200,
            "Requests": 1,
            "ServerErrors": 0,
            "StoreCalls": 3,
            "StoreDepth": 1,
            "StoreBytesRead": 0,
            "StoreBytesWritten": 0,
            "Conflicts": 0,
            "CacheHits": 3,
            "answer_bytes": len(answer.body),
            "table_uuid": table_uuid(answer),
            "principal": "anonymous",
            "request_id": "req-1",
            "trace_id": "a" * 32,
            "agent": "Trino/476",
        }

    async def test_reads_everything_when_cold(self, site: Watched) -> None:
        answer = await site.serve().get(T)

        assert site.cost() == (3, 3)
        assert site.last["CacheHits"] == 0
        read = site.last["StoreBytesRead"]
        assert isinstance(read, int)
        assert read > len(answer.body) / 2

    async def test_of_what_is_not_there_is_an_error_of_the_clients(self, site: Watched) -> None:
        await site.client.get(f"{DB}/tables/none")

        told = site.last
        assert (told["status"], told["error_type"], told["error"]) == (404, "NoSuchTableException", "NoSuchTable")
        assert (told["level"], told["ServerErrors"], site.cost()) == ("info", 0, (1, 1))
        assert "entity" not in told

    async def test_that_the_store_does_not_answer_is_an_error_of_ours(self, site: Watched) -> None:
        async def get(key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
            raise StoreUnavailable("it is gone")

        site.store.get = get  # type: ignore[method-assign]

        assert (await site.client.get(T)).status == 503

        told = site.last
        assert (told["error_type"], told["error"]) == ("ServiceUnavailableException", "StoreUnavailable")
        assert (told["level"], told["ServerErrors"]) == ("error", 1)
        calls = told["StoreCalls"]
        assert isinstance(calls, int)
        assert calls >= 1

    async def test_that_fails_unexpectedly_tells_the_class_of_the_failure(
        self, site: Watched, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def get(key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
            raise LookupError("hunter2")

        monkeypatch.setattr(site.store, "get", get)
        monkeypatch.setattr(logging.getLogger("arco_catalog.http.errors"), "disabled", True)

        assert (await site.serve().get(T)).status == 500

        assert (site.last["error_type"], site.last["error"]) == ("InternalServerError", "LookupError")
        assert "hunter2" not in site.lines[-1]


class TestACommit:
    @pytest.mark.parametrize(
        ("cold", "keyed", "depth", "calls"), [(False, True, 3, 7), (True, True, 6, 10), (False, False, 3, 5)]
    )
    async def test_keeps_to_its_budget(self, site: Watched, cold: bool, keyed: bool, depth: int, calls: int) -> None:
        client = site.serve() if cold else site.client

        answer = await commit(client, "1", **({"idempotency_key": site.key()} if keyed else {}))

        assert answer.status == 200
        assert site.cost() == (depth, calls)
        told = site.last
        assert (told["Operation"], told["outcome"], told["tries"], told["Conflicts"]) == ("updateTable", "moved", 1, 0)
        written = told["StoreBytesWritten"]
        assert isinstance(written, int)
        assert written > len(answer.body) / 2
        assert pointer(site, told["entity"])["id"] == told["attempt"]
        assert told["table_uuid"] == table_uuid(answer)

    async def test_that_lost_its_compare_and_swap_tells_the_conflict(self, site: Watched) -> None:
        await commit(site.client, "1")
        await commit(site.serve(), "2")
        await commit(site.client, "3")

        assert [told["Conflicts"] for told in site.told] == [0, 0, 1]
        assert (site.last["outcome"], site.last["status"]) == ("moved", 200)

    async def test_whose_requirement_fails_tells_the_refusal(self, site: Watched) -> None:
        requirement = {"type": "assert-table-uuid", "uuid": "0190c8de-6a3c-7e55-9cba-3a4b9a2f1c01"}
        await site.client.post(T, {**set_property("a", "1"), "requirements": [requirement]})

        told = site.last
        assert (told["status"], told["error_type"], told["error"]) == (409, "CommitFailedException", "CommitFailed")
        assert "outcome" not in told

    async def test_that_changes_nothing_says_so(self, site: Watched) -> None:
        await commit(site.client, "1")
        await commit(site.client, "1")

        assert [told["outcome"] for told in site.told] == ["moved", "unchanged"]

    async def test_again_under_its_key_is_told_as_a_replay(self, site: Watched) -> None:
        key = site.key()
        await commit(site.client, "1", idempotency_key=key)
        await commit(site.client, "1", idempotency_key=key)

        first, second = site.told
        assert (first["outcome"], second["outcome"]) == ("moved", "replayed")
        assert (first["entity"], first["key"]) == (second["entity"], second["key"])
        assert [name for name in site.store.keys("wh/_catalog/iceberg_idempotency/") if f"/{first['key']}" in name]
        assert key not in "".join(site.lines)

    async def test_whose_answer_was_lost_is_told_as_found_by_its_evidence(self, site: Watched) -> None:
        key = site.key()
        await commit(site.client, "1", idempotency_key=key)
        [final] = [name for name in site.store.keys("wh/_catalog/iceberg_idempotency/") if name.endswith("/1.json")]
        await site.store.delete(final)

        await commit(site.serve(), "1", idempotency_key=key)

        assert (site.last["status"], site.last["outcome"]) == (200, "evidence")

    async def test_that_drops_a_convenience_counts_it(self, site: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
        put = site.store.put

        async def failing(key: str, *rest: object) -> object:
            if "/committed/" in key:
                raise StoreUnavailable("it is gone")
            return await put(key, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(site.store, "put", failing)

        await commit(site.client, "1")

        assert (site.last["outcome"], site.last["dropped_writes"]) == ("moved", 1)

    async def test_of_several_tables_counts_them(self, site: Watched) -> None:
        await site.table("u")
        changes = [{"identifier": {"namespace": ["db"], "name": name}, **set_property("a", "1")} for name in ("t", "u")]

        answer = await site.client.post("/v1/wh/transactions/commit", {"table-changes": changes})

        assert answer.status == 204
        assert (site.last["Operation"], site.last["entities"], site.last["outcome"]) == (
            "commitTransaction",
            2,
            "moved",
        )
        assert not {"entity", "table_uuid"} & set(site.last)


class TestWhatARequestIsAbout:
    async def test_a_creation_is_about_what_it_made(self, site: Watched) -> None:
        answer = await site.table("u")

        assert site.last["table_uuid"] == table_uuid(answer)
        assert site.last["entity"] == pointer(site, site.last["entity"])["entity"]

    @pytest.mark.parametrize("change", ["drop", "rename", "register", "head"])
    async def test_every_change_of_a_name_is_about_its_table(self, site: Watched, change: str) -> None:
        await site.client.get(T)
        loaded = site.last
        location = await site.keep_metadata("elsewhere")
        both = {name: {"namespace": ["db"], "name": table} for name, table in (("source", "t"), ("destination", "v"))}
        match change:
            case "drop":
                answer = await site.client.delete(T)
            case "rename":
                answer = await site.client.post("/v1/wh/tables/rename", both)
            case "register":
                answer = await site.client.post(f"{DB}/register", {"name": "r", "metadata-location": location})
            case _:
                answer = await site.client.head(T)

        assert answer.status < 300
        assert site.last["table_uuid"] == loaded["table_uuid"]
        assert (site.last["entity"] == loaded["entity"]) == (change != "register")

    async def test_a_listing_is_about_no_table(self, site: Watched) -> None:
        await site.client.get(f"{DB}/tables")

        assert not {"entity", "entities", "attempt", "tries"} & set(site.last)


class TestRequestsThatGoNowhere:
    async def test_an_unknown_path_is_not_repeated(self, site: Watched) -> None:
        await site.client.get("/hunter2/v1")

        assert (site.last["Operation"], site.last["status"]) == (UNKNOWN, 404)
        assert "route" not in site.last
        assert "hunter2" not in site.lines[-1]

    async def test_a_method_that_is_none_is_not_repeated(self, site: Watched) -> None:
        await site.client.send("HUNTER2", T)

        assert (site.last["Operation"], site.last["status"], site.last["method"]) == (UNKNOWN, 405, "other")
        assert site.last["error_type"] == "UnsupportedOperationException"
        assert "HUNTER2" not in site.lines[-1]

    async def test_an_unknown_warehouse_makes_no_metrics_of_its_own(self, site: Watched) -> None:
        await site.client.get("/v1/hunter2/namespaces")

        assert (site.last["Warehouse"], site.last["error"]) == ("wh", "NoSuchWarehouse")
        assert "hunter2" not in site.lines[-1]

    async def test_a_request_to_one_of_several_warehouses_is_told_as_its_own(self, site: Watched) -> None:
        telemetry = Telemetry([JsonLines(site.lines.append)], site.clock)
        client = Client(create_app({"wh": site.catalog(), "two": site.catalog()}, telemetry=telemetry))

        await client.get(T)
        await client.get("/v1/config")

        assert [told["Warehouse"] for told in site.told] == ["wh", "-"]

    async def test_a_client_that_hangs_up_is_told_of(self, site: Watched) -> None:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        await site.client.app(scope_of("POST", T, JSON), receive, send)

        assert sent == []
        assert (site.last["status"], site.last["error"], site.last["Operation"]) == (499, "ClientGone", "updateTable")
        assert "error_type" not in site.last

    async def test_a_request_that_is_cancelled_is_told_of(self, site: Watched) -> None:
        waiting = asyncio.Event()

        async def receive() -> Message:
            waiting.set()
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Message) -> None:
            raise AssertionError

        task = asyncio.ensure_future(site.client.app(scope_of("POST", T, JSON), receive, send))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert (site.last["status"], site.last["error"]) == (499, "CancelledError")


class TestIds:
    async def test_a_request_is_answered_with_its_id(self, site: Watched) -> None:
        own = await site.client.get(T, x_request_id="abc-1")
        given = [await site.client.get(T) for _ in range(2)]

        assert own.headers["X-Request-Id"] == "abc-1"
        ids = [answer.headers["X-Request-Id"] for answer in given]
        assert ids == [told["request_id"] for told in site.told[1:]]
        assert len({*ids}) == 2

    @pytest.mark.parametrize("sent", ["a b", "x" * 129, "é", "a\tb", "", "{"])
    async def test_what_is_no_id_is_replaced(self, site: Watched, sent: str) -> None:
        answer = await site.client.get(T, x_request_id=sent)

        assert answer.headers["X-Request-Id"] == site.last["request_id"] != sent

    async def test_a_function_knows_a_request_as_its_gateway_and_its_platform_do(self, site: Watched) -> None:
        class Context:
            aws_request_id = "8f5b-1"

        event = {"requestContext": {"requestId": "JKJaXmPLvHcESHA="}}
        scope = {**scope_of("GET", T, {}), "aws.event": event, "aws.context": Context()}

        answer = await site.client.exchange(scope, [])

        assert answer.headers["X-Request-Id"] == site.last["request_id"] == "JKJaXmPLvHcESHA="
        assert site.last["invocation"] == "8f5b-1"

    @pytest.mark.parametrize("sent", ["", "x", f"00-{'a' * 31}-{'b' * 16}-01", f"00-{'0' * 32}-{'b' * 16}-01"])
    async def test_what_is_no_trace_is_left_out(self, site: Watched, sent: str) -> None:
        await site.client.get(T, traceparent=sent)

        assert "trace_id" not in site.last

    @pytest.mark.parametrize(
        ("sent", "told"),
        [
            ("PyIceberg/0.12.0", "PyIceberg/0.12.0"),
            ("Apache-HttpClient/5.4.3 (Java/17.0.9)", "Apache-HttpClient/5.4.3 Java/17.0.9"),
            ("Mozilla/5.0 (X11; token=hunter2) a/1 b/2 c/3 d/4", "Mozilla/5.0 a/1 b/2 c/3"),
            ("hunter2", None),
            ("Bearer eyJhbGciOi/x", None),
            ("\x1b[31m", None),
        ],
    )
    async def test_of_a_user_agent_its_products_are_told(self, site: Watched, sent: str, told: str | None) -> None:
        await site.client.get(T, user_agent=sent)

        assert site.last.get("agent") == told


class TestWhoTells:
    async def test_a_teller_that_fails_costs_no_answer_and_silences_no_other(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Failing:
            async def export(self, request_log: RequestLog) -> None:
                raise OSError("the pipe is broken")

        site = Watched(exporters=[Failing()])

        assert (await site.client.get("/v1/config")).status == 200

        assert site.last["Operation"] == "getConfig"
        assert "could not be reported" in caplog.text

    async def test_nobody_listens_unless_asked(self, site: Watched) -> None:
        quiet = Client(create_app({"wh": site.catalog()}))

        answer = await quiet.get(T)

        assert (answer.status, site.lines) == (200, [])
        assert "X-Request-Id" not in answer.headers
        assert current_stats().store is None

    async def test_a_record_is_open_only_inside(self) -> None:
        record = RequestStats()
        with collect_stats(record):
            assert current_stats() is record
        assert current_stats() is not record

    async def test_requests_beside_each_other_have_a_line_each(self, site: Watched) -> None:
        answers = await asyncio.gather(*(site.client.get(T) for _ in range(8)), commit(site.client, "1"))

        assert [answer.status for answer in answers] == [200] * 9
        loads = [told for told in site.told if told["Operation"] == "loadTable"]
        assert len(loads) == 8
        calls = [told["StoreCalls"] for told in loads]
        assert all(isinstance(count, int) and 3 <= count <= 4 for count in calls)

    async def test_people_get_a_line_of_text(self, site: Watched) -> None:
        lines: list[str] = []
        client = Client(create_app({"wh": site.catalog()}, telemetry=Telemetry([TextLines(lines.append)], site.clock)))

        await client.get(f"{DB}%0A%1b/tables/t?token=hunter2", authorization="Bearer hunter2")

        [line] = lines
        assert re.fullmatch(
            r"GET /v1/wh/namespaces/db%0A%1b/tables/t 400 BadRequestException loadTable "
            r"\d+\.\d ms, 0 store calls 0 deep",
            line,
        )

    async def test_a_raw_path_does_not_speak_to_a_terminal(self, site: Watched) -> None:
        lines: list[str] = []
        client = Client(create_app({"wh": site.catalog()}, telemetry=Telemetry([TextLines(lines.append)], site.clock)))

        await client.exchange({**scope_of("GET", T, {}), "raw_path": b"/\x1b[31m\n\x9b\xe9" + b"x" * 9999}, [])

        [line] = lines
        assert line.isprintable()
        assert line.startswith("GET /?[31m???xx")
        assert len(line) < 700


HOSTILE = ("a\nb", '\r\n{"level":"info"}', "\x1b[2J\x1b]0;x\x07", "\u2028x", "\x9b31m", "\x00", "\ud7ff\U0001f600")


class TestNothingForgesALine:
    @pytest.mark.parametrize("text", HOSTILE)
    async def test_hostile_text_in_any_place_leaves_one_line_of_json(self, site: Watched, text: str) -> None:
        name = quote(text, safe="")
        headers = {"user-agent": f"x/1 {text}/2", "x-request-id": text, "traceparent": text, "accept": text}
        for method, target in (
            ("GET", f"{DB}/tables/{name}"),
            ("GET", f"/v1/{name}/namespaces"),
            ("GET", f"/{name}"),
            ("DELETE", f"{DB}/tables/t?{name}={name}"),
            (f"GET{text}", T),
        ):
            site.lines.clear()
            await site.client.send(method, target, headers=headers)
            [line] = site.lines
            assert re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", line) is None
            assert line.isascii()
            assert isinstance(loads(line.encode()), dict)


class TestMetrics:
    async def test_every_line_is_in_the_embedded_metric_format(self, site: Watched) -> None:
        await site.client.get(T)
        await commit(site.client, "1", idempotency_key=site.key())
        await site.client.get("/v1/other/namespaces")
        await site.client.get("/nowhere")
        await site.client.get("/v1/config")

        for told in site.told:
            found = metrics(told)
            assert found == {("Warehouse",): METRICS, ("Operation", "Warehouse"): OF_AN_OPERATION}
            assert namespaces(told) == {NAMESPACE}
            timestamp = told["_aws"]["Timestamp"]  # type: ignore[index,call-overload]
            assert timestamp == site.clock.now_ms()

    @pytest.mark.parametrize("name", ["", "AWS/Lambda", ":x", "a\nb", "x" * 256, "é"])
    def test_a_namespace_that_cloudwatch_refuses_is_refused_at_the_start(self, name: str) -> None:
        with pytest.raises(ValueError, match="invalid CloudWatch metrics namespace"):
            MetricLine(name, ())

    def test_without_a_namespace_there_are_no_metrics(self) -> None:
        assert MetricLine(None, ()).encode(1, {"a": 2}) == '{"a":2}'

    def test_a_reconcilers_run_that_reached_the_end_completes(self) -> None:
        stats = ReconcileStats(pointers=9, walked=5, written=2, unreadable_count=1, unreadable=["hunter2"])

        done, stopped = (
            loads(reconcile_line("wh", each, began_ms=0, ended_ms=7, namespace=NAMESPACE).encode())
            for each in (stats, ReconcileStats(stopped=True))
        )

        assert isinstance(done, dict)
        assert isinstance(stopped, dict)
        assert (done["ReconcileCompleted"], done["ReceiptsWritten"], done["PointersUnreadable"]) == (1, 2, 1)
        assert stopped["ReconcileCompleted"] == 0
        assert metrics(done) == {
            ("Warehouse",): {
                "ReconcileCompleted": "Count",
                "ReceiptsWritten": "Count",
                "PointersWalked": "Count",
                "PointersUnreadable": "Count",
            }
        }
        assert "hunter2" not in str(done)


METRICS = {
    "Requests": "Count",
    "ServerErrors": "Count",
    "Latency": "Milliseconds",
    "StoreCalls": "Count",
    "StoreDepth": "Count",
    "StoreBytesRead": "Bytes",
    "StoreBytesWritten": "Bytes",
    "Conflicts": "Count",
    "CacheHits": "Count",
}
OF_AN_OPERATION = {name: METRICS[name] for name in ("Requests", "ServerErrors", "Latency")}
UNITS = {"Seconds", "Microseconds", "Milliseconds", "Bytes", "Kilobytes", "Megabytes", "Percent", "Count", "None"}


def namespaces(told: JsonObject) -> set[JsonValue]:
    aws = told["_aws"]
    assert isinstance(aws, dict)
    directives = aws["CloudWatchMetrics"]
    assert isinstance(directives, list)
    return {directive["Namespace"] for directive in directives if isinstance(directive, dict)}


def metrics(told: JsonObject) -> Mapping[tuple[str, ...], Mapping[str, str]]:
    """The metrics with their units, by set of dimensions, of a document that obeys the specification of the Embedded
    Metric Format: what must be there, of which type, and how much of it at most."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    aws = told["_aws"]
    assert isinstance(aws, dict)
    assert set(aws) == {"Timestamp", "CloudWatchMetrics"}
    assert isinstance(aws["Timestamp"], int)
    directives = aws["CloudWatchMetrics"]
    assert isinstance(directives, list)
    for directive in directives:
        assert isinstance(directive, dict)
        assert set(directive) == {"Namespace", "Dimensions", "Metrics"}
        name, dimensions, definitions = (directive[each] for each in ("Namespace", "Dimensions", "Metrics"))
        assert isinstance(name, str)
        assert 1 <= len(name) <= 1024
        assert isinstance(definitions, list)
        assert len(definitions) <= 100
        units: dict[str, str] = {}
        for definition in definitions:
            assert isinstance(definition, dict)
            assert set(definition) <= {"Name", "Unit", "StorageResolution"}
            metric, unit = str(definition["Name"]), str(definition["Unit"])
            assert unit in UNITS
            value = told[metric]  # a target member at the root, a number
            assert isinstance(value, int | float)
            assert not isinstance(value, bool)
            units[metric] = unit
        assert isinstance(dimensions, list)
        assert dimensions
        for dimension in dimensions:
            assert isinstance(dimension, list)
            assert len(dimension) <= 30
            for member in dimension:
                value = told[str(member)]
                assert isinstance(value, str)
                assert 1 <= len(value) <= 1024
            found[tuple(sorted(map(str, dimension)))] = units
    assert len(str(told)) < 4096
    return found


class TestNames:
    def test_every_route_has_a_name_of_its_own(self) -> None:
        named = {route.endpoint: operation(route.endpoint) for route in (*ROUTES, *HEALTH)}

        assert UNKNOWN not in named.values()
        assert set(OPERATIONS) == set(named)
        assert len({*named.values()}) == len(named) - 1  # GET and HEAD of /health are one

    def test_names_are_those_of_the_specification(self) -> None:
        ids = {
            f"{method.upper()} {path}": item[method]["operationId"]
            for path, item in json.loads(OPENAPI.read_text())["paths"].items()
            for method in set(item) & {"get", "head", "post", "delete"}
        }
        assert {name: ids[name] for name in OPERATIONS if name in ids} == {
            name: operation for name, operation in OPERATIONS.items() if not name.endswith("/health")
        }
