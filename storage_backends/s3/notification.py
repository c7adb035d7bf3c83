"""Sends messages to queues of Amazon SQS and topics of Amazon SNS that ARNs name, by signed requests of our own.

Source: Amazon SQS API reference, SendMessage; Amazon SNS API reference, Publish; both on the AWS query protocol and on
FIFO queues and topics.
"""

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from storage_backends.s3.endpoint import domain_of
from storage_backends.s3.json_api import Service, call, post, refusal, refusal_of_code
from storage_backends.s3.queue import SQS

MAX_MESSAGE_BYTES = 256 << 10
"""The largest message that queues and topics take."""
MAX_ANSWER_BYTES = 64 << 10
ARN = re.compile(r"arn:aws(?:-cn|-us-gov)?:(sqs|sns):([a-z0-9-]+):([0-9]{12}):([A-Za-z0-9_-]+(?:\.fifo)?)")
"""The name of a queue or topic: its service, region, account and own name."""
_SNS = Service("sns", "AWS_ENDPOINT_URL_SNS", "application/x-www-form-urlencoded; charset=utf-8")
_CODE = re.compile(rb"<Code>([A-Za-z.]{1,100})</Code>")


async def publish(
    arn: str, body: str, group: str, message: str, environment: Mapping[str, str], now_ms: Callable[[], int]
) -> None:
    """Sends a message with the text `body` to the queue or topic of an ARN. A FIFO one keeps the order of messages of
    one `group`, and drops a message whose id, `message`, it got within five minutes. Raises `ValueError` for another
    ARN, `StoreDenied` without credentials, for variables that can't be parsed or if the message is refused, and
    `StoreUnavailable` if the service is too busy or the outcome is unknown."""
    match = ARN.fullmatch(arn)
    if match is None:
        raise ValueError(f"{arn!r} is not the ARN of a queue of SQS or a topic of SNS in aws, aws-cn or aws-us-gov")
    service, region, account, name = match.groups()
    fifo = {"MessageGroupId": group, "MessageDeduplicationId": message} if name.endswith(".fifo") else {}
    if service == "sqs":
        url = f"https://sqs.{region}.{domain_of(region)}/{account}/{name}"
        sent = {"QueueUrl": url, "MessageBody": body, **fifo}
        answer = await call(SQS, region, "AmazonSQS.SendMessage", sent, environment, now_ms, MAX_ANSWER_BYTES)
        if answer.status != 200:
            raise refusal(f"the SQS queue {name} did not take the message, or failed and may have it", answer)
        return
    form = urlencode({"Action": "Publish", "Version": "2010-03-31", "TopicArn": arn, "Message": body, **fifo}).encode()
    answer = await post(_SNS, region, {}, form, environment, now_ms, MAX_ANSWER_BYTES)
    if answer.status != 200:
        found = _CODE.search(answer.body)
        code = "" if found is None else found[1].decode()
        raise refusal_of_code(
            f"the SNS topic {name} did not take the message, or failed and may have it", answer.status, code
        )
