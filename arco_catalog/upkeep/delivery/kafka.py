"""Sends events to topics of Apache Kafka, by librdkafka, which the extra `kafka` installs.

The addresses of the brokers, and how to log in to them, are in a file of properties that the environment of the worker
names: a subscription has the topic alone, so none can have the password sent to other brokers.

Source: CloudEvents, "Kafka Protocol Binding" 1.0.2, structured content mode; librdkafka, CONFIGURATION.md.
"""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from confluent_kafka import KafkaError, KafkaException, Producer

from arco_catalog.config.variables import KAFKA_PROPERTIES
from arco_catalog.planning.cloud_events import CONTENT_TYPE
from arco_catalog.upkeep.delivery.sink import DeliveryError, EventRefused, Message, ReceiverUnreachable

TOPIC = re.compile(r"kafka:(?!\.{1,2}$)([A-Za-z0-9._-]{1,249})")
"""A topic, as subscriptions name it."""
WITHOUT_ENTITY = "catalog"
"""The key of messages that are about no table or view, so that one partition keeps their order."""
SEND_S = 15
"""Less than the margin at the end of a lease, so that no message outlives the lease of its worker."""
FLUSH_S = SEND_S + 1.0
SETTINGS: Mapping[str, str | int | bool] = {
    "acks": "all",
    "enable.idempotence": True,
    "message.timeout.ms": SEND_S * 1000,
    "topic.metadata.propagation.max.ms": 5000,
    "queue.buffering.max.ms": 0,
    "log_level": 0,
}
"""What replaces properties of the file: a message is accepted when all replicas in sync have it; it is sent at once,
and for `SEND_S` at most; the library writes nothing to stderr, since the subscription has the problem."""
REFUSALS = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD)
"""The errors by which Kafka does not accept a message, whatever its state is."""
MAX_FILE_BYTES = 64 << 10


class KafkaTopic:
    """A topic of Kafka, given as `kafka:TOPIC`, at the brokers that the file has which `environment` names. Raises
    `ValueError` for another name."""

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        match = TOPIC.fullmatch(name)
        if match is None:
            raise ValueError(f"{name!r} is not a topic of Kafka")
        self._topic = match[1]
        self._environment = environment
        self._producer: Producer | None = None
        self._problem = ""
        self._lock = Lock()

    async def send(self, message: Message) -> None:
        """Sends a message, and returns when all replicas in sync have it. Raises `DeliveryError`:
        `ReceiverUnreachable`, unless the message is too large or invalid."""
        await asyncio.to_thread(self._send, message)

    async def close(self) -> None:
        """Ends the connections to the brokers."""
        await asyncio.to_thread(self._close)

    def _send(self, message: Message) -> None:
        """Does what `send` does. Blocks."""
        with self._lock:
            try:
                self._produce(message)
            except KafkaException as error:
                failure = self._error(error.args[0])
                self._discard()  # after a fatal error, a producer sends nothing more
                raise failure from error

    def _close(self) -> None:
        """Does what `close` does. Blocks, while a message is sent until that ends."""
        with self._lock:
            self._discard()

    def _produce(self, message: Message) -> None:
        """Sends a message by the present producer, or a new one. Raises `KafkaException`, and `ReceiverUnreachable` for
        a file that can't be used."""
        if self._producer is None:
            self._producer = Producer(self._settings())
        errors: list[KafkaError | None] = []
        self._producer.produce(
            self._topic,
            message.body,
            message.entity or WITHOUT_ENTITY,
            on_delivery=lambda error, _: errors.append(error),
            headers={"content-type": CONTENT_TYPE},
        )
        self._producer.flush(FLUSH_S)
        error = errors[0] if errors else KafkaError(KafkaError.REQUEST_TIMED_OUT)
        if error is not None:
            raise KafkaException(error)

    def _settings(self) -> dict[str, object]:
        """Returns the settings of a producer. Raises `ReceiverUnreachable` for a file that can't be used."""
        try:
            properties = read_properties(KAFKA_PROPERTIES.require(self._environment))
        except KeyError:
            raise ReceiverUnreachable(
                f"the brokers of Kafka are not known: {KAFKA_PROPERTIES.name} names no file of properties"
            ) from None
        except (OSError, ValueError) as error:
            raise ReceiverUnreachable(f"the file of {KAFKA_PROPERTIES.name} can't be used: {error}") from error
        return {**properties, **SETTINGS, "error_cb": self._note}

    def _note(self, error: KafkaError) -> None:
        """Keeps what the library reports of connections and logins: a message that is not sent only times out."""
        if error.name() != "_ALL_BROKERS_DOWN":  # it has no reason
            self._problem = f" ({error.str()})"

    def _error(self, error: KafkaError) -> DeliveryError:
        """Returns the error of a delivery for an error of Kafka."""
        kind = EventRefused if error.code() in REFUSALS else ReceiverUnreachable
        return kind(f"the message was not sent to the topic {self._topic} of Kafka: {error.str()}{self._problem}")

    def _discard(self) -> None:
        """Ends the producer, and what it has not sent. Blocks for some milliseconds."""
        producer, self._producer, self._problem = self._producer, None, ""
        if producer is not None:
            producer.purge()
            producer.close()


def read_properties(path: str) -> dict[str, str]:
    """Returns the properties in a file of lines `NAME=VALUE`, and comments that begin with `#`; leaves out lines with
    no name, such as empty ones. Raises `OSError`, and `ValueError` for another line, which is not quoted since it may
    have a password, for a large file, and without brokers."""
    with Path(path).open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"the file of properties has more than {MAX_FILE_BYTES:,} bytes")
    found: dict[str, str] = {}
    for number, line in enumerate(content.decode().splitlines(), 1):
        name, separator, value = line.strip().partition("=")
        if not name or name.startswith("#"):
            continue
        if not separator:
            raise ValueError(f"the file's line {number} is not NAME=VALUE")
        found[name.strip()] = value.strip()
    if not found.get("bootstrap.servers"):
        raise ValueError("the file has no bootstrap.servers, the addresses of the brokers")
    return found
