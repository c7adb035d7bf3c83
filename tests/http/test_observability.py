"""The line that each request leaves: what happened, as the budgets and the answer have it."""

import asyncio
import logging
import re
import time
from collections.abc import Mapping
from urllib.parse import quote

import pytest
import yaml

from arco_catalog.http.app import create_app
from arco_catalog.http.asgi import Message
from arco_catalog.http.console.routes import CONSOLE
from arco_catalog.http.discovery_routes import DISCOVERY
from arco_catalog.http.management.routes import BASE, MANAGEMENT, SPECIFIED
from arco_catalog.http.routes import HEALTH, ROUTES
from arco_catalog.iceberg.json import JsonObject, JsonValue, loads
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.protocol.request_stats import RequestStats, collect_stats, current_stats
from arco_catalog.state.fields import mapping
from arco_catalog.tasks.work_stats import ExpiryStats, WorkStats
from arco_catalog.telemetry.collection_line import collection_line
from arco_catalog.telemetry.emf import MetricLine
from arco_catalog.telemetry.lines import JsonLines, TextLines
from arco_catalog.telemetry.names import OPERATIONS, UNKNOWN, operation
from arco_catalog.telemetry.reconcile_line import reconcile_line
from arco_catalog.telemetry.request_log import RequestLog
from arco_catalog.telemetry.tasks_line import TaskLines, tasks_line
from arco_catalog.telemetry.telemetry import Telemetry
from storage_backends import Found, Missing, StoreUnavailable, Unchanged, Unknown, Version
from tests.http.logged_service import NAMESPACE, LoggedService
from tests.http.specification import polaris_endpoints
from tests.support.fake_runtime import FakeRuntime
from tests.support.http_service import HttpService
from tools.openapi.specifications import MANAGEMENT as EXTRACT
from tools.openapi.specifications import documents, nameless, read
from tools.support.asgi_client import Answer, Client, scope_of
from tools.support.environment import PROJECT
from tools.support.request_bodies import renaming, set_property, transaction

DB = "/v1/wh/namespaces/db"
T = f"{DB}/tables/t"
JSON = {"content-type": "application/json"}

"""The specification, as the fuzzer keeps it."""


@pytest.fixture
async def service() -> LoggedService:
    """A catalog with the namespace `db` and in it the table `t`, and no lines so far."""
    made = LoggedService()
    await made.namespace("db", "db")
    await made.table("t")
    made.lines.clear()
    return made


def table_uuid(answer: Answer) -> JsonValue:
    metadata = answer.json["metadata"]
    assert isinstance(metadata, dict)
    return metadata["table-uuid"]


def pointer(service: HttpService, entity: JsonValue) -> JsonObject:
    body = service.store._objects[f"wh/_catalog/iceberg_pointers/{entity}.json"].body
    document = loads(body)
    assert isinstance(document, dict)
    return document


async def commit(client: Client, value: str, **headers: str) -> Answer:
    return await client.post(T, set_property("a", value), **headers)


class TestALoad:
    async def test_has_a_line_with_all_fields(self, service: LoggedService) -> None:
        began = time.perf_counter()
        answer = await service.client.get(
            T, user_agent="Trino/476 (a secret)", x_request_id="req-1", traceparent=f"00-{'a' * 32}-{'b' * 16}-01"
        )
        passed_ms = 1_000 * (time.perf_counter() - began)

        line = service.last
        latency, entity = line.pop("Latency"), line.pop("entity")
        assert isinstance(latency, float)
        assert 0 < latency <= passed_ms + 0.001  # it is rounded
        assert isinstance(entity, str)
        assert pointer(service, entity)["entity"] == entity
        assert isinstance(line.pop("_aws"), dict)
        assert line == {
            "time": "2026-01-01T00:00:00.000Z",
            "level": "info",
            "Warehouse": "wh",
            "Operation": "loadTable",
            "method": "GET",
            "route": "/v1/{prefix}/namespaces/{namespace}/tables/{table}",
            "status": 200,
            "Requests": 1,
            "ServerErrors": 0,
            "StoreCalls": 2,
            "StoreDepth": 1,
            "StoreBytesRead": 0,
            "StoreBytesWritten": 0,
            "Conflicts": 0,
            "CacheHits": 2,
            "Denials": 0,
            "UnknownOutcomes": 0,
            "StaleKeys": 0,
            "answer_bytes": len(answer.body),
            "table_uuid": table_uuid(answer),
            "principal": "anonymous",
            "request_id": "req-1",
            "trace_id": "a" * 32,
            "agent": "Trino/476",
        }

    async def test_reads_everything_when_cold(self, service: LoggedService) -> None:
        answer = await service.serve().get(T)

        assert service.cost() == (3, 3)
        assert service.last["CacheHits"] == 0
        read = service.last["StoreBytesRead"]
        assert isinstance(read, int)
        assert read > len(answer.body) / 2

    async def test_of_what_is_not_there_is_an_error_of_the_clients(self, service: LoggedService) -> None:
        await service.client.get(f"{DB}/tables/none")

        line = service.last
        assert (line["status"], line["error_type"], line["error"]) == (404, "NoSuchTableException", "NoSuchTable")
        assert (line["level"], line["ServerErrors"], service.cost()) == ("info", 0, (1, 1))
        assert "entity" not in line

    async def test_that_the_store_does_not_answer_is_an_error_of_ours(self, service: LoggedService) -> None:
        async def get(key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
            raise StoreUnavailable("it is gone")

        service.store.get = get  # type: ignore[method-assign]

        assert (await service.client.get(T)).status == 503

        line = service.last
        assert (line["error_type"], line["error"]) == ("ServiceUnavailableException", "StoreUnavailable")
        assert (line["level"], line["ServerErrors"]) == ("error", 1)
        calls = line["StoreCalls"]
        assert isinstance(calls, int)
        assert calls >= 1

    async def test_that_fails_unexpectedly_logs_the_class_of_the_failure(
        self, service: LoggedService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def get(key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
            raise LookupError("hunter2")

        monkeypatch.setattr(service.store, "get", get)
        monkeypatch.setattr(logging.getLogger("arco_catalog.http.errors"), "disabled", True)

        assert (await service.serve().get(T)).status == 500

        assert (service.last["error_type"], service.last["error"]) == ("InternalServerError", "LookupError")
        assert "hunter2" not in service.lines[-1]


class TestACommit:
    @pytest.mark.parametrize(
        ("cold", "keyed", "depth", "calls"), [(False, True, 3, 7), (True, True, 6, 10), (False, False, 3, 5)]
    )
    async def test_keeps_to_its_budget(
        self, service: LoggedService, cold: bool, keyed: bool, depth: int, calls: int
    ) -> None:
        client = service.serve() if cold else service.client

        answer = await commit(client, "1", **({"idempotency_key": service.key()} if keyed else {}))

        assert answer.status == 200
        assert service.cost() == (depth, calls)
        line = service.last
        assert (line["Operation"], line["outcome"], line["tries"], line["Conflicts"]) == ("updateTable", "moved", 1, 0)
        written = line["StoreBytesWritten"]
        assert isinstance(written, int)
        assert written > len(answer.body) / 2
        assert pointer(service, line["entity"])["id"] == line["attempt"]
        assert line["table_uuid"] == table_uuid(answer)

    async def test_that_lost_its_compare_and_swap_logs_the_conflict(self, service: LoggedService) -> None:
        await commit(service.client, "1")
        await commit(service.serve(), "2")
        await commit(service.client, "3")

        assert [line["Conflicts"] for line in service.parsed_lines] == [0, 0, 1]
        assert (service.last["outcome"], service.last["status"]) == ("moved", 200)

    async def test_whose_requirement_fails_logs_the_refusal(self, service: LoggedService) -> None:
        requirement = {"type": "assert-table-uuid", "uuid": "0190c8de-6a3c-7e55-9cba-3a4b9a2f1c01"}
        await service.client.post(T, {**set_property("a", "1"), "requirements": [requirement]})

        line = service.last
        assert (line["status"], line["error_type"], line["error"]) == (409, "CommitFailedException", "CommitFailed")
        assert "outcome" not in line

    async def test_that_changes_nothing_is_logged_as_unchanged(self, service: LoggedService) -> None:
        await commit(service.client, "1")
        await commit(service.client, "1")

        assert [line["outcome"] for line in service.parsed_lines] == ["moved", "unchanged"]

    async def test_again_under_its_key_is_logged_as_a_replay(self, service: LoggedService) -> None:
        key = service.key()
        await commit(service.client, "1", idempotency_key=key)
        await commit(service.client, "1", idempotency_key=key)

        first, second = service.parsed_lines
        assert (first["outcome"], second["outcome"]) == ("moved", "replayed")
        assert (first["entity"], first["key"]) == (second["entity"], second["key"])
        assert [name for name in service.store.keys("wh/_catalog/iceberg_idempotency/") if f"/{first['key']}" in name]
        assert key not in "".join(service.lines)

    async def test_under_a_key_older_than_a_day_is_no_error_of_ours(self, service: LoggedService) -> None:
        key = service.key()
        service.clock.ms += 86_400_000 + 60_000
        answer = await commit(service.client, "1", idempotency_key=key)

        line = service.last
        assert (answer.status, line["status"], line["error_type"]) == (500, 500, "CommitStateUnknownException")
        assert (line["level"], line["ServerErrors"], line["error"]) == ("info", 0, "CommitStateUnknown")
        assert (line["UnknownOutcomes"], line["unknown_outcome"], line["StaleKeys"]) == (1, "key-expired", 1)

    async def test_whose_outcome_the_store_does_not_tell_is_counted_with_the_reason(
        self, service: LoggedService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put = service.store.put

        async def silent(key: str, *rest: object) -> object:
            outcome = await put(key, *rest)  # type: ignore[arg-type]
            return Unknown("lost") if "/iceberg_pointers/" in key else outcome

        monkeypatch.setattr(service.store, "put", silent)
        answer = await commit(service.client, "1")

        line = service.last
        assert (answer.status, line["error_type"]) == (500, "CommitStateUnknownException")
        assert (line["UnknownOutcomes"], line["unknown_outcome"]) == (1, "store-timeout")

    async def test_that_fails_unexpectedly_is_an_unknown_outcome_by_a_fault_of_ours(
        self, service: LoggedService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def put(key: str, *rest: object) -> object:
            raise LookupError("hunter2")

        monkeypatch.setattr(service.store, "put", put)
        monkeypatch.setattr(logging.getLogger("arco_catalog.http.errors"), "disabled", True)
        await commit(service.client, "1")

        assert (service.last["UnknownOutcomes"], service.last["unknown_outcome"]) == (1, "internal")

    async def test_of_which_the_outcome_is_known_has_no_reason(self, service: LoggedService) -> None:
        await commit(service.client, "1")

        assert service.last["UnknownOutcomes"] == 0
        assert "unknown_outcome" not in service.last

    async def test_whose_answer_was_lost_is_logged_as_found_by_its_evidence(self, service: LoggedService) -> None:
        key = service.key()
        await commit(service.client, "1", idempotency_key=key)
        [final] = [name for name in service.store.keys("wh/_catalog/iceberg_idempotency/") if name.endswith("/1.json")]
        await service.store.delete(final)

        await commit(service.serve(), "1", idempotency_key=key)

        assert (service.last["status"], service.last["outcome"]) == (200, "evidence")

    async def test_that_drops_a_convenience_counts_it(
        self, service: LoggedService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put = service.store.put

        async def failing(key: str, *rest: object) -> object:
            if "/committed/" in key:
                raise StoreUnavailable("it is gone")
            return await put(key, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(service.store, "put", failing)

        await commit(service.client, "1")

        assert (service.last["outcome"], service.last["dropped_writes"]) == ("moved", 1)

    async def test_of_several_tables_counts_them(self, service: LoggedService) -> None:
        await service.table("u")

        changes = transaction(set_property("a", "1"), "t", "u")
        answer = await service.client.post("/v1/wh/transactions/commit", changes)

        assert answer.status == 204
        assert (service.last["Operation"], service.last["entities"], service.last["outcome"]) == (
            "commitTransaction",
            2,
            "moved",
        )
        assert not {"entity", "table_uuid"} & set(service.last)


class TestWhatARequestIsAbout:
    async def test_a_creation_is_about_what_it_made(self, service: LoggedService) -> None:
        answer = await service.table("u")

        assert service.last["table_uuid"] == table_uuid(answer)
        assert service.last["entity"] == pointer(service, service.last["entity"])["entity"]

    @pytest.mark.parametrize("change", ["drop", "rename", "register", "head"])
    async def test_every_change_of_a_name_is_about_its_table(self, service: LoggedService, change: str) -> None:
        await service.client.get(T)
        loaded = service.last
        location = await service.keep_metadata("elsewhere")
        match change:
            case "drop":
                answer = await service.client.delete(T)
            case "rename":
                answer = await service.client.post("/v1/wh/tables/rename", renaming("t", "v"))
            case "register":
                answer = await service.client.post(f"{DB}/register", {"name": "r", "metadata-location": location})
            case _:
                answer = await service.client.head(T)

        assert answer.status < 300
        assert service.last["table_uuid"] == loaded["table_uuid"]
        assert (service.last["entity"] == loaded["entity"]) == (change != "register")

    async def test_a_listing_is_about_no_table(self, service: LoggedService) -> None:
        await service.client.get(f"{DB}/tables")

        assert not {"entity", "entities", "attempt", "tries"} & set(service.last)


class TestRequestsThatGoNowhere:
    async def test_an_unknown_path_is_not_repeated(self, service: LoggedService) -> None:
        await service.client.get("/hunter2/v1")

        assert (service.last["Operation"], service.last["status"]) == (UNKNOWN, 404)
        assert "route" not in service.last
        assert "hunter2" not in service.lines[-1]

    async def test_a_method_that_is_none_is_not_repeated(self, service: LoggedService) -> None:
        await service.client.send("HUNTER2", T)

        assert (service.last["Operation"], service.last["status"], service.last["method"]) == (UNKNOWN, 405, "other")
        assert service.last["error_type"] == "UnsupportedOperationException"
        assert "HUNTER2" not in service.lines[-1]

    async def test_an_unknown_warehouse_makes_no_metrics_of_its_own(self, service: LoggedService) -> None:
        await service.client.get("/v1/hunter2/namespaces")

        assert (service.last["Warehouse"], service.last["error"]) == ("wh", "NoSuchWarehouse")
        assert "hunter2" not in service.lines[-1]

    async def test_a_request_to_one_of_several_warehouses_is_logged_under_its_name(
        self, service: LoggedService
    ) -> None:
        telemetry = Telemetry([JsonLines(service.lines.append)], service.clock)
        client = Client(create_app({"wh": service.catalog(), "two": service.catalog()}, telemetry=telemetry))

        await client.get(T)
        await client.get("/v1/config")

        assert [line["Warehouse"] for line in service.parsed_lines] == ["wh", "-"]

    async def test_a_client_that_hangs_up_is_logged(self, service: LoggedService) -> None:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        await service.client.app(scope_of("POST", T, JSON), receive, send)

        assert sent == []
        assert (service.last["status"], service.last["error"], service.last["Operation"]) == (
            499,
            "ClientGone",
            "updateTable",
        )
        assert "error_type" not in service.last

    async def test_a_request_that_is_cancelled_is_logged(self, service: LoggedService) -> None:
        waiting = asyncio.Event()

        async def receive() -> Message:
            waiting.set()
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Message) -> None:
            raise AssertionError

        task = asyncio.ensure_future(service.client.app(scope_of("POST", T, JSON), receive, send))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert (service.last["status"], service.last["error"]) == (499, "CancelledError")


class TestIds:
    async def test_a_receipt_has_that_of_its_request(self, service: LoggedService) -> None:
        await commit(service.client, "b", x_request_id="abc-1")
        keys = [key for key in [*service.store.keys()] if "/committed/" in key]
        receipts = [loads(service.store._objects[key].body) for key in keys]
        ids = [mapping(each, "request").get("id") for each in receipts if isinstance(each, dict)]
        assert ids.count("abc-1") == 1

    async def test_a_request_is_answered_with_its_id(self, service: LoggedService) -> None:
        own = await service.client.get(T, x_request_id="abc-1")
        given = [await service.client.get(T) for _ in range(2)]

        assert own.headers["X-Request-Id"] == "abc-1"
        ids = [answer.headers["X-Request-Id"] for answer in given]
        assert ids == [line["request_id"] for line in service.parsed_lines[1:]]
        assert len({*ids}) == 2

    @pytest.mark.parametrize("sent", ["a b", "x" * 129, "é", "a\tb", "", "{"])
    async def test_what_is_no_id_is_replaced(self, service: LoggedService, sent: str) -> None:
        answer = await service.client.get(T, x_request_id=sent)

        assert answer.headers["X-Request-Id"] == service.last["request_id"] != sent

    async def test_a_function_knows_a_request_as_its_gateway_and_its_platform_do(self, service: LoggedService) -> None:
        class Context:
            aws_request_id = "8f5b-1"

        event = {"requestContext": {"requestId": "JKJaXmPLvHcESHA="}}
        scope = {**scope_of("GET", T, {}), "aws.event": event, "aws.context": Context()}

        answer = await service.client.exchange(scope, [])

        assert answer.headers["X-Request-Id"] == service.last["request_id"] == "JKJaXmPLvHcESHA="
        assert service.last["invocation"] == "8f5b-1"

    @pytest.mark.parametrize("sent", ["", "x", f"00-{'a' * 31}-{'b' * 16}-01", f"00-{'0' * 32}-{'b' * 16}-01"])
    async def test_what_is_no_trace_is_left_out(self, service: LoggedService, sent: str) -> None:
        await service.client.get(T, traceparent=sent)

        assert "trace_id" not in service.last

    @pytest.mark.parametrize(
        ("sent", "logged"),
        [
            ("PyIceberg/0.12.0", "PyIceberg/0.12.0"),
            ("Apache-HttpClient/5.4.3 (Java/17.0.9)", "Apache-HttpClient/5.4.3 Java/17.0.9"),
            ("Mozilla/5.0 (X11; token=hunter2) a/1 b/2 c/3 d/4", "Mozilla/5.0 a/1 b/2 c/3"),
            ("hunter2", None),
            ("Bearer eyJhbGciOi/x", None),
            ("\x1b[31m", None),
        ],
    )
    async def test_the_products_of_a_user_agent_are_logged(
        self, service: LoggedService, sent: str, logged: str | None
    ) -> None:
        await service.client.get(T, user_agent=sent)

        assert service.last.get("agent") == logged


class TestExporters:
    async def test_a_teller_that_fails_costs_no_answer_and_silences_no_other(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Failing:
            async def export(self, request_log: RequestLog) -> None:
                raise OSError("the pipe is broken")

        service = LoggedService(exporters=[Failing()])

        assert (await service.client.get("/v1/config")).status == 200

        assert service.last["Operation"] == "getConfig"
        assert "failed to export a request" in caplog.text

    async def test_no_request_is_logged_without_an_exporter(self, service: LoggedService) -> None:
        quiet = Client(create_app({"wh": service.catalog()}))

        answer = await quiet.get(T)

        assert (answer.status, service.lines) == (200, [])
        assert "X-Request-Id" not in answer.headers
        assert current_stats().store is None

    async def test_a_record_is_open_only_inside(self) -> None:
        record = RequestStats()
        with collect_stats(record):
            assert current_stats() is record
        assert current_stats() is not record

    async def test_requests_beside_each_other_have_a_line_each(self, service: LoggedService) -> None:
        answers = await asyncio.gather(*(service.client.get(T) for _ in range(8)), commit(service.client, "1"))

        assert [answer.status for answer in answers] == [200] * 9
        loads = [line for line in service.parsed_lines if line["Operation"] == "loadTable"]
        assert len(loads) == 8
        calls = [line["StoreCalls"] for line in loads]
        assert all(isinstance(count, int) and 2 <= count <= 4 for count in calls)

    async def test_people_get_a_line_of_text(self, service: LoggedService) -> None:
        lines: list[str] = []
        client = Client(
            create_app({"wh": service.catalog()}, telemetry=Telemetry([TextLines(lines.append)], service.clock))
        )

        await client.get(f"{DB}%0A%1b/tables/t?token=hunter2", authorization="Bearer hunter2")

        [line] = lines
        assert re.fullmatch(
            r"GET /v1/wh/namespaces/db%0A%1b/tables/t 400 BadRequestException loadTable "
            r"\d+\.\d ms, 0 store calls 0 deep",
            line,
        )

    async def test_a_raw_path_does_not_speak_to_a_terminal(self, service: LoggedService) -> None:
        lines: list[str] = []
        client = Client(
            create_app({"wh": service.catalog()}, telemetry=Telemetry([TextLines(lines.append)], service.clock))
        )

        await client.exchange({**scope_of("GET", T, {}), "raw_path": b"/\x1b[31m\n\x9b\xe9" + b"x" * 9999}, [])

        [line] = lines
        assert line.isprintable()
        assert line.startswith("GET /?[31m???xx")
        assert len(line) < 700


HOSTILE = ("a\nb", '\r\n{"level":"info"}', "\x1b[2J\x1b]0;x\x07", "\u2028x", "\x9b31m", "\x00", "\ud7ff\U0001f600")


class TestNothingForgesALine:
    @pytest.mark.parametrize("text", HOSTILE)
    async def test_hostile_text_in_any_place_leaves_one_line_of_json(self, service: LoggedService, text: str) -> None:
        name = quote(text, safe="")
        headers = {"user-agent": f"x/1 {text}/2", "x-request-id": text, "traceparent": text, "accept": text}
        for method, target in (
            ("GET", f"{DB}/tables/{name}"),
            ("GET", f"/v1/{name}/namespaces"),
            ("GET", f"/{name}"),
            ("DELETE", f"{DB}/tables/t?{name}={name}"),
            (f"GET{text}", T),
        ):
            service.lines.clear()
            await service.client.send(method, target, headers=headers)
            [line] = service.lines
            assert re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", line) is None
            assert line.isascii()
            assert isinstance(loads(line.encode()), dict)


class TestMetrics:
    async def test_every_line_is_in_the_embedded_metric_format(self, service: LoggedService) -> None:
        await service.client.get(T)
        await commit(service.client, "1", idempotency_key=service.key())
        await service.client.get("/v1/other/namespaces")
        await service.client.get("/nowhere")
        await service.client.get("/v1/config")

        for line in service.parsed_lines:
            found = metrics(line)
            assert found == {
                ("Warehouse",): METRICS,
                ("Operation", "Warehouse"): OF_AN_OPERATION,
                (): {"StaleKeys": "Count"},
            }
            assert namespaces(line) == {NAMESPACE}
            timestamp = line["_aws"]["Timestamp"]  # type: ignore[index,call-overload]
            assert timestamp == service.clock.now_ms()

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

    def test_the_line_of_tasks_has_what_alarms_are_made_of(self) -> None:
        stats = WorkStats(
            executed=5,
            completed=2,
            failed=1,
            retried=1,
            given_back=1,
            leases_lost=3,
            oldest_due_ms=7_900,
            expiries=ExpiryStats(snapshots=9, cleaned=8, files=70, held_back=6, failed=5),
        )

        line = loads(tasks_line("wh", stats, at_ms=0, namespace=NAMESPACE).encode())

        assert isinstance(line, dict)
        counts = {"TasksExecuted": 5, "TasksCompleted": 2, "TasksFailed": 1, "TasksRetried": 1, "LeasesLost": 3}
        counts |= {"SnapshotsExpired": 9, "SnapshotsCleaned": 8, "ExpiredFiles": 70}
        counts |= {"ExpiriesHeldBack": 6, "ExpiriesFailed": 5}
        assert {name: line[name] for name in counts} == counts
        assert (line["TasksDueAge"], line["given_back"], line["level"]) == (7, 1, "error")
        units = dict.fromkeys(counts, "Count")
        assert metrics(line) == {
            ("Warehouse",): {**units, "TasksDueAge": "Seconds"},
            (): {"TasksFailed": "Count", "LeasesLost": "Count", "TasksDueAge": "Seconds"},
        }

    def test_a_run_that_found_nothing_to_do_pays_only_for_the_metrics_that_alarms_wait_for(self) -> None:
        walk = reconcile_line("wh", ReconcileStats(pointers=9), began_ms=0, ended_ms=7, namespace=NAMESPACE)
        look = tasks_line("wh", WorkStats(), at_ms=0, namespace=NAMESPACE)
        collection = collection_line("wh", completed=True, collected=0, left=0, at_ms=0, namespace=NAMESPACE)

        parsed = [loads(line.encode()) for line in (walk, look, collection)]

        assert [metrics(line) for line in parsed if isinstance(line, dict)] == [
            {("Warehouse",): {"ReconcileCompleted": "Count"}},
            {("Warehouse",): {"TasksDueAge": "Seconds"}, (): {"TasksDueAge": "Seconds"}},
            {("Warehouse",): {"CollectionCompleted": "Count", "StateObjects": "Count"}, (): {"StateObjects": "Count"}},
        ]

    def test_a_catalog_that_could_not_be_opened_or_read_has_no_metrics_of_tasks(self) -> None:
        """Missing data is what the alarm on their age waits for."""
        line = loads(tasks_line("wh", WorkStats(error="hunter2"), at_ms=0, namespace=NAMESPACE).encode())

        assert isinstance(line, dict)
        assert line["level"] == "error"
        assert line["error"] == "the tasks could not be executed"
        assert "hunter2" not in str(line)
        assert not {"_aws", "TasksDueAge"} & {*line}

    def test_the_line_of_a_collection_has_the_size_of_the_state_if_all_of_it_was_listed(self) -> None:
        done, stopped = (
            loads(
                collection_line(
                    "wh", completed=completed, collected=200, left=700, at_ms=0, namespace=NAMESPACE
                ).encode()
            )
            for completed in (True, False)
        )

        assert isinstance(done, dict)
        assert isinstance(stopped, dict)
        assert (done["CollectionCompleted"], done["ObjectsCollected"], done["StateObjects"]) == (1, 200, 700)
        assert metrics(done) == {
            ("Warehouse",): dict.fromkeys(("CollectionCompleted", "ObjectsCollected", "StateObjects"), "Count"),
            (): {"StateObjects": "Count"},
        }
        assert (stopped["CollectionCompleted"], "_aws" in stopped) == (0, False)

    def test_a_server_logs_each_poll_that_executed_a_task_and_otherwise_one_in_a_while(self) -> None:
        lines, clock = list[str](), FakeRuntime()
        task_lines = TaskLines(lines.append, None, clock.now_ms)

        task_lines.tell("wh", WorkStats(oldest_due_ms=4_000))
        assert lines == []
        task_lines.tell("wh", WorkStats(executed=1, completed=1))
        assert [loads(line.encode())["TasksDueAge"] for line in lines] == [4]  # type: ignore[index,call-overload]
        task_lines.tell("wh", WorkStats())
        assert len(lines) == 1
        clock.ms += 300_000
        task_lines.tell("wh", WorkStats())
        assert len(lines) == 2


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
    "Denials": "Count",
    "UnknownOutcomes": "Count",
}
OF_AN_OPERATION = {name: METRICS[name] for name in ("Requests", "ServerErrors", "Latency")}
UNITS = {"Seconds", "Microseconds", "Milliseconds", "Bytes", "Kilobytes", "Megabytes", "Percent", "Count", "None"}


def namespaces(line: JsonObject) -> set[JsonValue]:
    aws = line["_aws"]
    assert isinstance(aws, dict)
    directives = aws["CloudWatchMetrics"]
    assert isinstance(directives, list)
    return {directive["Namespace"] for directive in directives if isinstance(directive, dict)}


def metrics(line: JsonObject) -> Mapping[tuple[str, ...], Mapping[str, str]]:
    """The metrics with their units, by set of dimensions, of a document that obeys the specification of the Embedded
    Metric Format: what must be there, of which type, and how much of it at most."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    aws = line["_aws"]
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
            value = line[metric]  # a target member at the root, a number
            assert isinstance(value, int | float)
            assert not isinstance(value, bool)
            units[metric] = unit
        assert isinstance(dimensions, list)
        assert dimensions
        for dimension in dimensions:
            assert isinstance(dimension, list)
            assert len(dimension) <= 30
            for member in dimension:
                value = line[str(member)]
                assert isinstance(value, str)
                assert 1 <= len(value) <= 1024
            found[tuple(sorted(map(str, dimension)))] = units
    assert len(str(line)) < 4096
    return found


DELEGATED = {
    f"{method.upper()} /delegation-service/api{path}".replace("{id}", "{task}"): item[method]["operationId"]
    for path, item in yaml.safe_load((PROJECT / "docs/delegation-service.openapi.yaml").read_text())["paths"].items()
    for method in item.keys() & {"get", "post"}
}
"""The names of the operations of a delegation service, as its document has them."""
DISCOVERED = {route.endpoint for route in DISCOVERY}
METHODS = ("get", "put", "post", "delete")


class TestNames:
    def test_every_route_has_a_name_of_its_own(self) -> None:
        named = {route.endpoint: operation(route.endpoint) for route in (*ROUTES, *HEALTH, *MANAGEMENT, *CONSOLE)}

        assert UNKNOWN not in named.values()
        assert set(OPERATIONS) == set(named) | set(DELEGATED)
        # GET and HEAD of /health are one, and both addresses that lead to the console
        assert len({*named.values()}) == len(named) - 2

    def test_names_of_tasks_are_those_of_the_document_of_the_delegation_service(self) -> None:
        assert len(DELEGATED) == 4
        assert DELEGATED.items() <= OPERATIONS.items()

    def test_names_are_those_of_the_specification(self) -> None:
        ids = {
            f"{method.upper()} {path}": item[method]["operationId"]
            for path, item in documents()[0]["paths"].items()
            for method in set(item) & {"get", "head", "post", "delete"}
        } | {endpoint: specified["operation"] for endpoint, specified in polaris_endpoints().items()}
        assert {name: ids[name] for name in OPERATIONS if name in ids} == {
            name: operation
            for name, operation in OPERATIONS.items()
            if not name.endswith(("/health", "/undrop", "/lineage", "/openapi.json", "/governance"))
            and not name.endswith(("/resolve", "/events"))  # of proposals
            and not any(part in name for part in ("/timeline", "/compare"))
            and name not in DISCOVERED
            and name not in DELEGATED
            and not name.partition(" ")[2].startswith((BASE, "/ui"))
            and name != "GET /"
        }

    def test_names_of_management_are_those_of_its_specification(self) -> None:
        ids = {
            nameless(f"{method.upper()} {path}"): specified["operationId"]
            for path, item in read(EXTRACT)["paths"].items()
            for method, specified in item.items()
            if method in METHODS
        }
        assert {nameless(route.endpoint): operation(route.endpoint) for route in SPECIFIED} == ids
