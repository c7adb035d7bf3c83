"""What the deployed function writes to its log: a line a request, and nothing that a request brought."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

from arco_catalog.http.lambda_adapter import Endpoint
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.state.runtime import SystemRuntime
from tests.lambda_.conftest import WAREHOUSE, Caller
from tools.gateway.running import running
from tools.gateway.sandbox import Function, Pool
from tools.support.request_bodies import schema, set_property, uuid7

PLANTED = "planted-51f0c2"
NAMESPACE = f"/v1/{WAREHOUSE}/namespaces/db"


def test_the_function_tells_of_each_request_in_a_line_of_metrics_and_of_no_secret(
    folder: Path, deployed: Callable[[], dict[str, str]], tmp_path: Path
) -> None:
    log, environment = tmp_path / "log", deployed()
    environment["AWS_SECRET_ACCESS_KEY"] = f"{PLANTED}-aws"
    runtime = SystemRuntime()
    key = uuid7(runtime.now_ms(), runtime)
    with running(folder, Endpoint.HTTP_API, log, {**environment, "ARCO_LOG_LEVEL": "debug"}) as uri:
        caller = Caller(uri)
        secret = ("Authorization", f"Bearer {PLANTED}-token")
        statuses = [
            caller.get(f"/v1/config?warehouse={WAREHOUSE}&token={PLANTED}-query", secret).status,
            caller.post(f"/v1/{WAREHOUSE}/namespaces", {"namespace": ["db"]}, secret).status,
            caller.post(f"{NAMESPACE}/tables", {"name": "t", "schema": schema("x")}, secret).status,
            caller.post(
                f"{NAMESPACE}/tables/t", set_property("p", f"{PLANTED}-value"), secret, ("Idempotency-Key", key)
            ).status,
            caller.get(f"{NAMESPACE}/tables/{PLANTED}-name", secret).status,
        ]

    text = log.read_text()
    told = [line for line in map(_read, text.splitlines()) if line is not None and "_aws" in line]
    assert statuses == [200, 200, 200, 200, 404]
    assert [line["status"] for line in told] == statuses
    operations = ["getConfig", "createNamespace", "createTable", "updateTable", "loadTable"]
    assert [line["Operation"] for line in told] == operations
    commit = told[3]
    assert isinstance(commit["StoreCalls"], int)
    assert commit["StoreCalls"] >= 7
    assert commit["entity"]
    directive = cast(list[JsonObject], cast(JsonObject, commit["_aws"])["CloudWatchMetrics"])
    assert {str(each["Namespace"]) for each in directive} == {"ArcoCatalog"}
    assert PLANTED not in text
    assert key not in text


async def test_what_is_queued_is_told_of_in_lines_of_json_without_what_a_message_says(
    folder: Path, deployed: Callable[[], dict[str, str]], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    records = [{"messageId": "m1", "body": f"{{{PLANTED}"}, {"messageId": "m2", "body": f'{{"{PLANTED}": 1}}'}]
    async with Pool(Function(folder, "lambda.work.handler", deployed(), log, 60.0), 1) as pool:
        answer = loads(await pool.invoke(dumps({"Records": cast(JsonValue, records)})))

    told = [line for line in map(_read, log.read_text().splitlines()) if line is not None]
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}, {"itemIdentifier": "m2"}]}
    assert [line["message"] for line in told if line.get("level") == "error"] == [
        "the job of message m1 failed or is not complete, and SQS redelivers the message, up to the queue's limit",
        "the job of message m2 failed or is not complete, and SQS redelivers the message, up to the queue's limit",
    ]
    assert PLANTED not in log.read_text()


def _read(line: str) -> JsonObject | None:
    if not line.startswith("{"):
        return None
    document = loads(line.encode())
    assert isinstance(document, dict)
    return document
