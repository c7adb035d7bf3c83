"""Messages of Amazon SQS, against moto."""

from typing import Any

import pytest
from botocore.session import Session  # type: ignore[import-untyped]

from storage_backends import StoreDenied, StoreUnavailable
from storage_backends.clock import system_now_ms
from storage_backends.s3.queue import send_message
from tools.support.ports import free_port

KEYS = {"AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "a-key"}
NOWHERE = "https://sqs.eu-west-1.amazonaws.com/123456789012/none"


@pytest.fixture
def aws(s3_endpoint: str) -> dict[str, str]:
    return {"AWS_ENDPOINT_URL": s3_endpoint, **KEYS}


@pytest.fixture
def sqs(s3_endpoint: str) -> Any:
    keys = {"aws_access_key_id": "an-id", "aws_secret_access_key": "a-key"}
    return Session().create_client("sqs", region_name="eu-west-1", endpoint_url=s3_endpoint, **keys)


def url_of(sqs: Any, name: str) -> str:
    """A new queue's URL, as Amazon spells it."""
    sqs.create_queue(QueueName=name)
    return f"https://sqs.eu-west-1.amazonaws.com/123456789012/{name}"


async def test_a_message_is_received_as_it_was_sent(aws: dict[str, str], sqs: Any) -> None:
    url = url_of(sqs, "work-now")
    await send_message(url, '{"version": 1, "work": "tasks"}', 0, aws, system_now_ms)
    [received] = sqs.receive_message(QueueUrl=url)["Messages"]
    assert received["Body"] == '{"version": 1, "work": "tasks"}'


async def test_a_message_is_kept_back_for_as_long_as_sqs_can(aws: dict[str, str], sqs: Any) -> None:
    url = url_of(sqs, "work-later")
    await send_message(url, "{}", 3_600, aws, system_now_ms)
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessagesDelayed"])
    assert counts["Attributes"] == {"ApproximateNumberOfMessagesDelayed": "1"}


async def test_a_queue_that_is_not_there_denies(aws: dict[str, str]) -> None:
    with pytest.raises(StoreDenied, match=r"the SQS queue \S+ did not confirm the message: "):
        await send_message(NOWHERE, "{}", 0, aws, system_now_ms)


async def test_a_queue_that_does_not_answer_is_unavailable() -> None:
    no_one = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(StoreUnavailable, match="no complete answer"):
        await send_message(NOWHERE, "{}", 0, {**KEYS, "AWS_ENDPOINT_URL_SQS": no_one}, system_now_ms)


@pytest.mark.parametrize(
    ("url", "variables"),
    [
        (NOWHERE, {"AWS_ENDPOINT_URL_SQS": "http://[x"}),
        (NOWHERE, {"ARCO_S3_CLIENT": "http"}),
        ("https://[x", {}),
    ],
)
async def test_what_cannot_be_parsed_is_an_error_of_the_store(url: str, variables: dict[str, str]) -> None:
    with pytest.raises(StoreDenied, match=r"no (message|request) was sent to"):
        await send_message(url, "{}", 0, {**KEYS, **variables}, system_now_ms)
