"""What a receiver of events is: the message that it gets, and the ways in which a delivery fails."""

from typing import ClassVar, Protocol

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.cloud_events import encode
from arco_catalog.state.fields import text
from storage_backends.lazy_dataclass import dataclass

MAX_ANSWER_BYTES = 64 << 10
"""The maximum size of a receiver's response, of which only the status and `Retry-After` are read."""
DENIALS = frozenset({401, 403, 404, 405, 407, 410})
"""Statuses by which a receiver denies access to the sender, whatever the event is."""
REFUSALS = frozenset({400, 413, 415, 422})
"""Statuses by which a receiver does not accept an event."""
OVERLOADS = frozenset({429, 503})
"""Statuses by which a receiver accepts events later, and may request a pause."""


class DeliveryError(Exception):
    """A receiver did not take an event. The event is kept as a dead letter if it has failed `max_tries` times by then,
    by any errors with such a limit; None if it is tried for ever, since it is not because of the event. `pause_s` is
    the pause in seconds that the receiver requests before the next attempt; 0 if it requests none."""

    max_tries: ClassVar[int | None] = 12

    def __init__(self, reason: str, pause_s: float = 0.0) -> None:
        super().__init__(reason)
        self.pause_s = pause_s


class EventRefused(DeliveryError):
    """The receiver does not accept the event itself."""

    max_tries = 3


class ReceiverUnreachable(DeliveryError):
    """The receiver can't be reached, or takes nothing from this sender; or the subscription's filter or the feed can't
    be read."""

    max_tries = None


@dataclass(frozen=True, slots=True)
class Message:
    """A CloudEvent as it is sent: its id, the entity that it is about, None without one, and its bytes."""

    id: str
    entity: str | None
    body: bytes

    @classmethod
    def of(cls, event: JsonObject) -> "Message":
        """Returns the message of a CloudEvent; its entity is the event's partition key. Raises `InternalError` for one
        without an id."""
        entity = event.get("partitionkey")
        return cls(text(event, "id"), entity if isinstance(entity, str) else None, encode(event))


class Sink(Protocol):
    """The interface of receivers of events."""

    async def send(self, message: Message) -> None:
        """Sends a message once; returns when the receiver has accepted it. Raises `DeliveryError`."""
        ...

    async def close(self) -> None:
        """Ends the connections that are kept between messages. A later message opens new ones."""
        ...


def check_accepted(receiver: str, status: int, pause_s: float) -> None:
    """Checks by the status of its response that a receiver has accepted a message: any 2xx. Raises the error of an
    event for `REFUSALS`, `ReceiverUnreachable` for `DENIALS` and redirects, and else a plain `DeliveryError`, for
    `OVERLOADS` with the pause in seconds that the response requests. The error has no more of the response, and the
    name `receiver`."""
    if 200 <= status < 300:
        return
    reason = f"{receiver} answered with status {status}"
    if status in REFUSALS:
        raise EventRefused(reason)
    if status in DENIALS or 300 <= status < 400:
        raise ReceiverUnreachable(reason)
    raise DeliveryError(reason, pause_s if status in OVERLOADS else 0.0)
