"""Queues and topics of clouds take events: Amazon SQS and SNS (moto), Azure Storage (Azurite), and Pub/Sub (a stub that
follows Google's reference)."""

import json
import re
import urllib.request
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from botocore.session import Session  # type: ignore[import-untyped]

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.upkeep.delivery.queues import queue_of
from arco_catalog.upkeep.delivery.sink import DeliveryError, EventRefused, Message, ReceiverUnreachable
from storage_backends.azure.authorization import API_VERSION
from storage_backends.azure.config import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from storage_backends.azure.notification import ENDPOINT
from storage_backends.azure.signature import date_stamp, decoded_key, signed
from storage_backends.clock import system_now_ms
from storage_backends.gcs.notification import EMULATOR
from tests.support.stub_server import stub_server
from tools.support.azurite import PROGRAM
from tools.support.ports import free_port
from tools.support.server_process import listening

KEYS = {"AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "a-key"}
MESSAGE = Message("01KDVDNA00Q0CE18T0QX4DH52F", "01KDVDNA000000000000000006", '{"id":"ü&<>"}'.encode())
REGION, ACCOUNT = "eu-west-1", "123456789012"
TOPIC = "projects/lake-prod/topics/changes"
QUEUES = PROGRAM.parent.parent / "queue" / "main.js"
QUEUE = f"https://{DEVELOPMENT_ACCOUNT}.queue.core.windows.net/changes"


async def send(name: str, environment: Mapping[str, str], message: Message = MESSAGE) -> None:
    """Sends a message to a queue, which must be known by its name."""
    queue = queue_of(name, environment, system_now_ms)
    assert queue is not None
    await queue.send(message)


@pytest.fixture
def aws(s3_endpoint: str) -> dict[str, str]:
    return {"AWS_ENDPOINT_URL": s3_endpoint, **KEYS}


def client(service: str, endpoint: str) -> Any:
    keys = {"aws_access_key_id": "an-id", "aws_secret_access_key": "a-key"}
    return Session().create_client(service, region_name=REGION, endpoint_url=endpoint, **keys)


async def test_a_queue_of_sqs_takes_an_event(aws: dict[str, str], s3_endpoint: str) -> None:
    sqs = client("sqs", s3_endpoint)
    url = sqs.create_queue(QueueName="changes")["QueueUrl"]

    await send(f"arn:aws:sqs:{REGION}:{ACCOUNT}:changes", aws)

    [received] = sqs.receive_message(QueueUrl=url)["Messages"]
    assert received["Body"].encode() == MESSAGE.body


async def test_a_fifo_queue_keeps_the_order_of_an_entity_and_drops_repetitions(
    aws: dict[str, str], s3_endpoint: str
) -> None:
    sqs = client("sqs", s3_endpoint)
    url = sqs.create_queue(QueueName="changes.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:changes.fifo"

    await send(arn, aws)
    await send(arn, aws)
    await send(arn, aws, Message("another", None, b"{}"))

    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"])[
        "Messages"
    ]
    assert [(each["Body"].encode(), each["Attributes"]["MessageGroupId"]) for each in received] == [
        (MESSAGE.body, MESSAGE.entity),
        (b"{}", "catalog"),
    ]


async def test_a_topic_of_sns_takes_an_event(aws: dict[str, str], s3_endpoint: str) -> None:
    sns, sqs = client("sns", s3_endpoint), client("sqs", s3_endpoint)
    topic = sns.create_topic(Name="changes")["TopicArn"]
    url = sqs.create_queue(QueueName="subscribed")["QueueUrl"]
    sns.subscribe(
        TopicArn=topic,
        Protocol="sqs",
        Endpoint=f"arn:aws:sqs:{REGION}:{ACCOUNT}:subscribed",
        Attributes={"RawMessageDelivery": "true"},
    )
    assert topic == f"arn:aws:sns:{REGION}:{ACCOUNT}:changes"

    await send(topic, aws)

    [received] = sqs.receive_message(QueueUrl=url)["Messages"]
    assert received["Body"].encode() == MESSAGE.body


@pytest.mark.parametrize("service", ["sqs", "sns"])
async def test_a_queue_that_is_not_there_is_not_the_event_s_fault(aws: dict[str, str], service: str) -> None:
    with pytest.raises(ReceiverUnreachable, match="did not take the message"):
        await send(f"arn:aws:{service}:{REGION}:{ACCOUNT}:none", aws)


async def test_an_outage_of_a_service_is_not_the_event_s_fault() -> None:
    with pytest.raises(ReceiverUnreachable):
        await send(f"arn:aws:sqs:{REGION}:{ACCOUNT}:x", {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}", **KEYS})


@pytest.mark.parametrize(
    ("service", "status", "code", "error"),
    [
        ("sqs", 400, "com.amazonaws.sqs#InvalidMessageContents", EventRefused),
        ("sqs", 400, "com.amazonaws.sqs#QueueDoesNotExist", ReceiverUnreachable),
        ("sqs", 400, "com.amazonaws.sqs#RequestThrottled", ReceiverUnreachable),
        ("sqs", 503, "", ReceiverUnreachable),
        ("sns", 400, "InvalidParameter", EventRefused),
        ("sns", 400, "ParameterValueInvalid", EventRefused),
        ("sns", 403, "AuthorizationError", ReceiverUnreachable),
        ("sns", 500, "InternalError", ReceiverUnreachable),
    ],
)
async def test_a_code_of_aws_decides_what_comes_next(
    service: str, status: int, code: str, error: type[DeliveryError]
) -> None:
    text = json.dumps({"__type": code}) if service == "sqs" else f"<Error><Code>{code}</Code></Error>"

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, text=text)

    async with stub_server(handle) as server:
        with pytest.raises(DeliveryError) as failed:
            await send(f"arn:aws:{service}:{REGION}:{ACCOUNT}:x", {"AWS_ENDPOINT_URL": server.uri, **KEYS})
    assert type(failed.value) is error


async def test_a_name_with_a_character_that_sqs_does_not_permit_is_sent_in_ascii(
    aws: dict[str, str], s3_endpoint: str
) -> None:
    sqs = client("sqs", s3_endpoint)
    url = sqs.create_queue(QueueName="names")["QueueUrl"]
    event: JsonObject = {"id": "1", "subject": "db/\uffff\u0001\U0001f600"}

    await send(f"arn:aws:sqs:{REGION}:{ACCOUNT}:names", aws, Message.of(event))

    [received] = sqs.receive_message(QueueUrl=url)["Messages"]
    assert received["Body"].isascii()
    assert json.loads(received["Body"]) == event


async def test_an_event_that_is_too_large_is_refused(aws: dict[str, str]) -> None:
    with pytest.raises(EventRefused, match="more than the queue takes"):
        await send(f"arn:aws:sqs:{REGION}:{ACCOUNT}:x", aws, Message("x", None, b"x" * (256 * 1024 + 1)))


async def test_a_topic_of_pub_sub_takes_an_event() -> None:
    got: list[tuple[str, dict[str, Any]]] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        got.append((request.path, json.loads(await request.read())))
        return web.json_response({"messageIds": ["1"]})

    async with stub_server(handle) as server:
        await send(TOPIC, {EMULATOR: server.uri.removeprefix("http://")})
        await send(TOPIC, {EMULATOR: server.uri.removeprefix("http://")}, Message("x", None, b"{}"))

    [(path, body), (_, unordered)] = got
    assert path == f"/v1/{TOPIC}:publish"
    [message] = body["messages"]
    assert b64decode(message["data"]) == MESSAGE.body
    assert message["orderingKey"] == MESSAGE.entity
    assert unordered == {"messages": [{"data": "e30="}]}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, EventRefused),
        (413, EventRefused),
        (404, ReceiverUnreachable),
        (403, ReceiverUnreachable),
        (429, ReceiverUnreachable),
        (503, ReceiverUnreachable),
    ],
)
async def test_a_status_of_pub_sub_decides_what_comes_next(status: int, error: type[DeliveryError]) -> None:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"error": {"code": status}}, status=status)

    async with stub_server(handle) as server:
        with pytest.raises(DeliveryError) as failed:
            await send(TOPIC, {EMULATOR: server.uri.removeprefix("http://")})
    assert type(failed.value) is error


@contextmanager
def azurite_queues() -> Iterator[str]:
    """Azurite's queues, at the URL of its account."""

    def command(port: int, folder: Path) -> list[str | Path]:
        options = ["--queueHost", "127.0.0.1", "--queuePort", str(port), "--silent", "--skipApiVersionCheck"]
        return ["node", QUEUES, *options, "--inMemoryPersistence", "--disableTelemetry"]

    with listening(command) as url:
        yield f"{url}/{DEVELOPMENT_ACCOUNT}"


def call(endpoint: str, method: str, target: str) -> bytes:
    """Sends a signed request to Azurite."""
    path = f"/{DEVELOPMENT_ACCOUNT}/{target}"
    headers = {"x-ms-date": date_stamp(system_now_ms()), "x-ms-version": API_VERSION, "content-type": "text/plain"}
    sent = signed(DEVELOPMENT_ACCOUNT, decoded_key(DEVELOPMENT_KEY), method, path, {}, headers, 0)
    request = urllib.request.Request(f"{endpoint}/{target}", data=None, headers=sent, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())


@pytest.mark.needs("node")
async def test_a_queue_of_azure_storage_takes_an_event() -> None:
    with azurite_queues() as endpoint:
        call(endpoint, "PUT", "changes")
        environment = {ENDPOINT: endpoint, "AZURE_STORAGE_KEY": DEVELOPMENT_KEY}

        await send(QUEUE, environment)

        found = re.findall(rb"<MessageText>([^<]*)</MessageText>", call(endpoint, "GET", "changes/messages"))
        assert [b64decode(each) for each in found] == [MESSAGE.body]
        with pytest.raises(ReceiverUnreachable, match="status 404"):
            await send(QUEUE.replace("changes", "none"), environment)
        with pytest.raises(ReceiverUnreachable, match="status 403"):
            await send(QUEUE, {**environment, "AZURE_STORAGE_KEY": "YWJj"})


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("arn:aws:s3:::bucket", "arn:aws:sqs:REGION:ACCOUNT:QUEUE"),
        ("arn:aws:sqs:eu-west-1:1:x", "arn:aws:sqs:REGION:ACCOUNT:QUEUE"),
        ("projects/x", "projects/PROJECT/topics/TOPIC"),
        ("https://x.queue.core.windows.net.example.com/a", "https://ACCOUNT.queue.core.windows.net/QUEUE"),
        ("https://account.queue.core.windows.net/a-queue/", "https://ACCOUNT.queue.core.windows.net/QUEUE"),
    ],
)
def test_a_wrong_name_of_a_queue_is_refused_with_the_form_of_one(name: str, form: str) -> None:
    with pytest.raises(ValueError, match=form):
        queue_of(name, {}, system_now_ms)


@pytest.mark.parametrize("name", ["https://example.com/", "https://example.com/arn:aws:sqs", ""])
def test_what_is_no_queue_has_none(name: str) -> None:
    assert queue_of(name, {}, system_now_ms) is None
