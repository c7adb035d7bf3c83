"""Sends messages to a queue of Amazon SQS, by a signed request of our own.

Source: Amazon SQS API reference, SendMessage; developer guide, "Making API requests using the AWS JSON protocol".
"""

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from storage_backends.base import StoreDenied
from storage_backends.s3.json_api import Service, call, refusal

MAX_DELAY_S = 900
"""The longest that SQS keeps a message back."""
MAX_BYTES = 64 << 10

SQS = Service("sqs", "AWS_ENDPOINT_URL_SQS", "application/x-amz-json-1.0")
_HOST = re.compile(r"sqs\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


async def send_message(
    url: str, body: str, delay_s: int, environment: Mapping[str, str], now_ms: Callable[[], int]
) -> None:
    """Sends a message to the queue of this URL, which delivers it after `delay_s` seconds, or after 900 if that is
    less. `environment` has the variables of the credentials, and of the region unless the URL's host is
    `sqs.REGION.amazonaws.com` (or `.com.cn`); without one it is us-east-1. Raises `StoreDenied` without credentials,
    for an address that is not allowed, a URL or variables that can't be parsed, and if SQS refuses the message; raises
    `StoreUnavailable` if SQS is too busy or the outcome is unknown."""
    try:
        host = _HOST.fullmatch(urlsplit(url).hostname or "")
    except ValueError as error:
        raise StoreDenied(f"no message was sent to the queue {url!r}, which is not a valid URL: {error}") from error
    region = host[1] if host else environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    message = {"QueueUrl": url, "MessageBody": body, "DelaySeconds": min(delay_s, MAX_DELAY_S)}
    answer = await call(SQS, region, "AmazonSQS.SendMessage", message, environment, now_ms, MAX_BYTES)
    if answer.status != 200:
        raise refusal(f"the SQS queue {url} did not confirm the message", answer)
