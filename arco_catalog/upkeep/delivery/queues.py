"""Sends events to queues and topics of clouds: Amazon SQS and SNS, Google Cloud Pub/Sub, Azure Storage queues. The
process's own credentials for that cloud must allow it."""

from collections.abc import Awaitable, Callable, Mapping

from arco_catalog.upkeep.delivery.sink import EventRefused, Message, ReceiverUnreachable
from storage_backends import InvalidContent, StoreError

Put = Callable[[Message], Awaitable[None]]
"""Sends a message once. Raises `StoreError`."""


class Queue:
    """A queue or topic, which `put` sends a message to, of at most `max_bytes`."""

    def __init__(self, put: Put, max_bytes: int) -> None:
        self._put = put
        self._max_bytes = max_bytes

    async def send(self, message: Message) -> None:
        """Sends a message once. Raises `EventRefused` if it is too large or the queue does not accept the content, and
        `ReceiverUnreachable` for an outage or a lack of rights."""
        if len(message.body) > self._max_bytes:
            raise EventRefused(f"the event has {len(message.body):,} bytes, more than the queue takes")
        try:
            await self._put(message)
        except InvalidContent as error:
            raise EventRefused(str(error)) from error
        except StoreError as error:  # an outage or a lack of rights is not because of the event
            raise ReceiverUnreachable(str(error)) from error


def queue_of(name: str, environment: Mapping[str, str], now_ms: Callable[[], int]) -> Queue | None:
    """Returns the queue or topic of a cloud that has this name, with the credentials of the environment; None if the
    name has not the form of one. Imports only the modules of that cloud. Raises `ValueError` or `StoreError` for
    credentials that can't be used."""
    if name.startswith("arn:"):
        from storage_backends.s3 import notification as aws

        if aws.ARN.fullmatch(name) is None:
            return None
        return Queue(
            lambda message: aws.publish(
                name, message.body.decode(), message.entity or "catalog", message.id, environment, now_ms
            ),
            aws.MAX_MESSAGE_BYTES,
        )
    if name.startswith("projects/"):
        from storage_backends.gcs import notification as google

        if google.TOPIC.fullmatch(name) is None:
            return None
        topic = google.Topic(name, environment, now_ms)
        return Queue(lambda message: topic.publish(message.body, message.entity or ""), google.MAX_MESSAGE_BYTES)
    if ".queue.core." in name:
        from storage_backends.azure import notification as azure

        if azure.QUEUE.fullmatch(name) is None:
            return None
        queue = azure.MessageQueue(name, environment, now_ms)
        return Queue(lambda message: queue.put(message.body), azure.MAX_MESSAGE_BYTES)
    return None
