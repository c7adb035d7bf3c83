"""Sends events to queues and topics: Amazon SQS and SNS, Google Cloud Pub/Sub, Azure Storage queues and Event
Grid, Apache Kafka. The process's own credentials must allow it."""

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from arco_catalog.upkeep.delivery.sink import EventRefused, Message, ReceiverUnreachable, Sink
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
            raise EventRefused(
                f"the event has {len(message.body):,} bytes, more than the queue takes: {self._max_bytes:,} at most "
                "are sent to any queue or topic of this sort"
            )
        try:
            await self._put(message)
        except InvalidContent as error:
            raise EventRefused(str(error)) from error
        except StoreError as error:  # an outage or a lack of rights is not because of the event
            raise ReceiverUnreachable(str(error)) from error

    async def close(self) -> None:
        """Does nothing: each message has a connection of its own."""


FORMS = {
    "kafka:": "a topic of Kafka is kafka:TOPIC; its brokers are in the file that the workers' environment names",
    "arn:": "a queue or topic of AWS is arn:aws:sqs:REGION:ACCOUNT:QUEUE or arn:aws:sns:REGION:ACCOUNT:TOPIC",
    "projects/": "a topic of Pub/Sub is projects/PROJECT/topics/TOPIC",
    ".eventgrid.azure.": "a topic of Event Grid is https://NAME.REGION-1.eventgrid.azure.net/api/events, or "
    "https://NAMESPACE.REGION-1.eventgrid.azure.net/topics/TOPIC",
    ".queue.core.": "a queue of Azure Storage is https://ACCOUNT.queue.core.windows.net/QUEUE, without more",
}
"""The forms of the names of queues and topics, by what only such names begin with or have in their host."""


def queue_of(name: str, environment: Mapping[str, str], now_ms: Callable[[], int]) -> Sink | None:
    """Returns the queue or topic of this name, with the credentials of the environment; None if the name is of
    something else. Imports only the modules of its service. Raises `ValueError` for a name that is none by its form, or
    whose library is not installed, and `ValueError` or `StoreError` for variables of Google or Azure that can't be
    parsed or used; other faults of credentials appear when a message is sent."""
    queue = _queue_of(name, environment, now_ms)
    host = urlsplit(name).hostname or ""
    form = next((form for part, form in FORMS.items() if name.startswith(part) or part in host), None)
    if queue is None and form is not None:
        raise ValueError(form)
    return queue


def _queue_of(name: str, environment: Mapping[str, str], now_ms: Callable[[], int]) -> Sink | None:
    """Returns the queue or topic of this name; None if the name has not the form of one, also where `queue_of` then
    raises `ValueError` for the form. Raises the other errors of `queue_of`."""
    if name.startswith("kafka:"):
        return _topic_of_kafka(name, environment)
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
    if ".eventgrid.azure." in name:
        from storage_backends.azure import event_grid

        if event_grid.TOPIC.fullmatch(name) is None:
            return None
        grid = event_grid.Topic(name, environment, now_ms)
        return Queue(lambda message: grid.publish(message.body), event_grid.MAX_MESSAGE_BYTES)
    return None


def _topic_of_kafka(name: str, environment: Mapping[str, str]) -> Sink | None:
    """Returns the topic of Kafka of this name; None for another name. Raises `ValueError` without the library."""
    try:
        from arco_catalog.upkeep.delivery.kafka import TOPIC, KafkaTopic
    except ModuleNotFoundError as error:  # functions don't have the module either
        raise ValueError(
            "events are sent to Kafka by servers and commands that have its client: confluent-kafka is not installed: "
            "install the extra 'kafka' of arco-catalog"
        ) from error
    return None if TOPIC.fullmatch(name) is None else KafkaTopic(name, environment)
