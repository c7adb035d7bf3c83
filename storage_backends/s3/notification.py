"""Sends messages to queues of Amazon SQS and topics of Amazon SNS that ARNs name, by signed requests of our own.

Source: Amazon SQS API reference, SendMessage; Amazon SNS API reference, Publish; both on the AWS query protocol and on
FIFO queues and topics.
"""

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from storage_backends.base import InvalidContent, StoreDenied, StoreError, StoreUnavailable
from storage_backends.s3.config import S3Config
from storage_backends.s3.credentials import credentials_of
from storage_backends.s3.endpoint import domain_of
from storage_backends.s3.json_api import CONTENT, Service, call, refusal
from storage_backends.s3.signature import Scope, signed, signing_stamp
from storage_backends.wire.fetch import fetch
from storage_backends.wire.http1 import Response

MAX_MESSAGE_BYTES = 256 << 10
"""The largest message that queues and topics take."""
MAX_ANSWER_BYTES = 64 << 10
ARN = re.compile(r"arn:aws(?:-cn|-us-gov)?:(sqs|sns):([a-z0-9-]+):([0-9]{12}):([A-Za-z0-9_-]+(?:\.fifo)?)")
"""The name of a queue or topic: its service, region, account and own name."""
_SQS = Service("sqs", "AWS_ENDPOINT_URL_SQS", "1.0")
_CODE = re.compile(rb"<Code>([A-Za-z.]{1,100})</Code>")


async def publish(
    arn: str, body: str, group: str, message: str, environment: Mapping[str, str], now_ms: Callable[[], int]
) -> None:
    """Sends a message to the queue or topic of an ARN. A FIFO one keeps the order of messages of one `group`, and drops
    a message with the id of one that it got within five minutes. Raises `ValueError` for another ARN, `StoreDenied`
    without credentials or if the message is refused, and `StoreUnavailable` if the service is too busy or the outcome
    is unknown."""
    match = ARN.fullmatch(arn)
    if match is None:
        raise ValueError(f"{arn!r} is not the ARN of a queue of SQS or a topic of SNS")
    service, region, account, name = match.groups()
    fifo = {"MessageGroupId": group, "MessageDeduplicationId": message} if name.endswith(".fifo") else {}
    if service == "sqs":
        url = f"https://sqs.{region}.{domain_of(region)}/{account}/{name}"
        sent = {"QueueUrl": url, "MessageBody": body, **fifo}
        answer = await call(_SQS, region, "AmazonSQS.SendMessage", sent, environment, now_ms, MAX_ANSWER_BYTES)
        if answer.status != 200:
            raise refusal(f"the message was not sent to the SQS queue {name}", answer)
        return
    form = {"Action": "Publish", "Version": "2010-03-31", "TopicArn": arn, "Message": body, **fifo}
    answer = await _query(region, urlencode(form).encode(), environment, now_ms)
    if answer.status != 200:
        raise _refusal(name, answer)


async def _query(region: str, form: bytes, environment: Mapping[str, str], now_ms: Callable[[], int]) -> Response:
    """Calls SNS with a form, and returns the response, whatever its status."""
    configured = environment.get("AWS_ENDPOINT_URL_SNS") or environment.get("AWS_ENDPOINT_URL")
    url = f"{(configured or f'https://sns.{region}.{domain_of(region)}').rstrip('/')}/"
    keys = await credentials_of(S3Config.from_environment(environment).credentials).current()
    named = {"host": url.split("/")[2], "content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    headers = signed(keys, Scope(region, "sns"), signing_stamp(now_ms()), "POST", "/", "", named, form)
    return await fetch(
        url, headers, now_ms, MAX_ANSWER_BYTES, method="POST", body=form, plain_loopback=configured is not None
    )


def _refusal(topic: str, response: Response) -> StoreError:
    """Returns the error for a response of SNS with another status than 200, with its error code."""
    found = _CODE.search(response.body)
    code = f"status {response.status}" if found is None else found[1].decode()
    transient = response.status >= 500 or response.status == 429 or code.startswith(("Throttl", "Internal"))
    denied = InvalidContent if code.startswith(CONTENT) else StoreDenied
    return (StoreUnavailable if transient else denied)(f"the message was not sent to the topic {topic}: {code}")
