"""Where a change came from travels from request headers to receipts (docs/design/reconciliation.md#rule-1), and
backfill keeps it."""

import pytest

from arco_catalog.cli.columns import format_author
from arco_catalog.http.asgi import Receive, Scope, Send
from arco_catalog.http.options import HttpOptions
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.state.receipt import base_of
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import Found
from tests.http.logged_service import LoggedService
from tests.support.http_service import HttpService
from tools.support.asgi_client import Client
from tools.support.request_bodies import set_property

TABLE = "/v1/wh/namespaces/db/tables/t"
RUN, TASK = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVRZ"
SERVO = {"x_arco_servo_run_id": RUN, "x_arco_servo_task_id": TASK}
CLAIMED: JsonObject = {"principal": "anonymous", "claimed": True}
"""The field of a source that was not authenticated."""
SOURCES: list[tuple[dict[str, str], JsonObject]] = [
    ({}, {"kind": "IcebergRest", "client_info": None, "principal": "anonymous"}),
    ({"user_agent": "Spark/4.1"}, {"kind": "IcebergRest", "client_info": "Spark/4.1", "principal": "anonymous"}),
    (
        {"user_agent": "Apache-HttpClient/5.6 (Java/17.0.15) of ada, token hunter2"},
        {"kind": "IcebergRest", "client_info": "Apache-HttpClient/5.6 Java/17.0.15", "principal": "anonymous"},
    ),
    (
        {"user_agent": "Apache-HttpClient/5.6", "x_client_version": "Apache Iceberg 1.11.0 (commit abc)"},
        {"kind": "IcebergRest", "client_info": "Apache-HttpClient/5.6 Iceberg/1.11.0", "principal": "anonymous"},
    ),
    (
        {"user_agent": "Spark/4.1", "x_client_version": "something else 1.0"},
        {"kind": "IcebergRest", "client_info": "Spark/4.1", "principal": "anonymous"},
    ),
    ({"user_agent": "a" * 300}, {"kind": "IcebergRest", "client_info": None, "principal": "anonymous"}),
    ({"user_agent": "a\tb"}, {"kind": "IcebergRest", "client_info": None, "principal": "anonymous"}),
    (SERVO, {"kind": "Servo", "run_id": RUN, "task_id": TASK, **CLAIMED}),
    ({**SERVO, "x_arco_servo_run_id": RUN.lower()}, {"kind": "Servo", "run_id": RUN, "task_id": TASK, **CLAIMED}),
    ({"x_arco_admin_user": "ada@example.org"}, {"kind": "AdminApi", "user_id": "ada@example.org", **CLAIMED}),
]


async def stored(service: HttpService, prefix: str = "") -> dict[str, JsonObject]:
    """Every JSON object whose key holds `prefix`."""
    found: dict[str, JsonObject] = {}
    for key in service.store.keys(""):
        answer = await service.store.get(key)
        if prefix in key and isinstance(answer, Found):
            document = loads(answer.body)
            assert isinstance(document, dict)
            found[key] = document
    return found


async def commit(service: HttpService, headers: dict[str, str]) -> int:
    return (await service.client.post(TABLE, set_property("a", "b"), **headers)).status


@pytest.mark.parametrize(("headers", "source"), SOURCES)
async def test_receipts_and_pointer_say_where_a_commit_came_from(
    service: HttpService, headers: dict[str, str], source: JsonObject
) -> None:
    assert await commit(service, headers) == 200

    receipts = [each for each in (await stored(service, "/iceberg/")).values() if base_of(each)]
    assert [each["source"] for each in receipts] == [source, source], "pending and committed"
    [pointer] = (await stored(service, "/iceberg_pointers/")).values()
    assert pointer["updated_by"] == source


@pytest.mark.parametrize(("headers", "source"), SOURCES)
async def test_backfill_keeps_it(service: HttpService, headers: dict[str, str], source: JsonObject) -> None:
    await commit(service, headers)
    written = await stored(service, "/iceberg/committed/")
    for key in written:
        await service.store.delete(key)
    other: JsonObject = {"kind": "Cli"}

    await reconcile(service.session(other))

    assert await stored(service, "/iceberg/committed/") == written
    assert source in [each["source"] for each in written.values()]


async def test_registry_commits_say_it_too(service: HttpService) -> None:
    await Client(service.client.app, {"x-arco-admin-user": "ada"}).delete(TABLE)

    operations = [each["operations"] for each in (await stored(service, "/core/commits/")).values()]
    assert any('"AdminApi"' in str(each).replace("'", '"') and "drop-table" in str(each) for each in operations)


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"x_arco_servo_run_id": RUN}, "must be sent together"),
        ({"x_arco_servo_task_id": TASK}, "must be sent together"),
        ({**SERVO, "x_arco_servo_run_id": "run-1"}, "X-Arco-Servo-Run-Id must be a ULID, not 'run-1'"),
        ({**SERVO, "x_arco_servo_task_id": "8" + TASK[1:]}, "X-Arco-Servo-Task-Id must be a ULID"),
        ({**SERVO, "x_arco_servo_task_id": f"{TASK}, {TASK}"}, "X-Arco-Servo-Task-Id must be a ULID"),
        ({**SERVO, "x_arco_servo_task_id": ""}, "X-Arco-Servo-Task-Id must be a ULID"),
        ({"x_arco_admin_user": ""}, "1 to 256 characters"),
        ({"x_arco_admin_user": "a" * 257}, "1 to 256 characters"),
        ({"x_arco_admin_user": "a\tb"}, "must not contain control characters"),
        ({"x_arco_admin_user": "a\x7fb"}, "must not contain control characters"),
        ({**SERVO, "x_arco_admin_user": "ada"}, "must not be sent together"),
    ],
)
async def test_incomplete_or_malformed_headers_are_refused(
    service: HttpService, headers: dict[str, str], why: str
) -> None:
    answer = await service.client.post(TABLE, set_property("a", "b"), **headers)

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert why in answer.message
    assert len(await stored(service, "/iceberg/committed/")) == 1, "the creation's alone"


ROLE = "arn:aws:sts::123456789012:assumed-role/servo"
CLAIMS = [SERVO, {"x_arco_admin_user": "ada"}, {"x_arco_admin_user": ""}, {"x_arco_servo_run_id": "x"}]


def through_the_door(service: HttpService, client: Client) -> Client:
    """A client that is signed in as a role."""
    context = {"authorizer": {"iam": {"userArn": f"{ROLE}/run-7"}}}

    async def behind(scope: Scope, receive: Receive, send: Send) -> None:
        await client.app({**scope, "aws.event": {"requestContext": context}}, receive, send)

    return Client(behind)


@pytest.mark.parametrize("headers", CLAIMS, ids=str)
@pytest.mark.parametrize("trusted", [(), ("arn:aws:sts::123456789012:assumed-role/other",), ("arn:aws:sts::*/admin*",)])
async def test_the_claim_of_a_principal_that_is_not_listed_is_ignored_and_logged(
    trusted: tuple[str, ...], headers: dict[str, str]
) -> None:
    service = LoggedService(options=HttpOptions(source_principals=trusted))
    await service.namespace("db", "db")
    await service.table("t")

    answer = await through_the_door(service, service.client).post(TABLE, set_property("a", "b"), **headers)

    receipts = [each for each in (await stored(service, "/iceberg/committed/")).values() if base_of(each)]
    assert answer.status == 200
    assert [each["source"] for each in receipts] == [{"kind": "IcebergRest", "client_info": None, "principal": ROLE}]
    line = service.last
    assert (line["principal"], line["session"], line["ignored_claim"]) == (ROLE, "run-7", True)


@pytest.mark.parametrize("trusted", [ROLE, "arn:aws:sts::123456789012:assumed-role/*"])
async def test_a_principal_that_the_operator_named_is_believed(trusted: str) -> None:
    service = LoggedService(options=HttpOptions(source_principals=(trusted,)))
    await service.namespace("db", "db")
    await service.table("t")

    await through_the_door(service, service.client).post(TABLE, set_property("a", "b"), x_arco_admin_user="ada")

    [receipt] = [each for each in (await stored(service, "/iceberg/committed/")).values() if base_of(each)]
    assert receipt["source"] == {"kind": "AdminApi", "user_id": "ada", "principal": ROLE}
    assert format_author(receipt) == f"{ROLE}/run-7 (admin ada)"
    assert "ignored_claim" not in service.last


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ({"kind": "AdminApi", "user_id": "ada", "principal": "anonymous", "claimed": True}, "claims admin ada"),
        ({"kind": "AdminApi", "user_id": "ada"}, "claims admin ada"),  # of the time when everybody was believed
        ({"kind": "Servo", "run_id": RUN, "task_id": TASK}, f"claims Servo run {RUN}, task {TASK}"),
        ({"kind": "Servo", "run_id": RUN, "task_id": TASK, "principal": ROLE}, f"Servo run {RUN}, task {TASK}"),
    ],
)
def test_people_are_shown_the_principal_and_that_a_claim_is_one(source: JsonObject, shown: str) -> None:
    assert format_author({"principal": "anonymous", "source": source}) == f"anonymous ({shown})"
