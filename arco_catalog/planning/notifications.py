"""Notifications from another catalog about one of its tables (docs/design/polaris.md#notifications)."""

from enum import StrEnum

from arco_catalog.iceberg.errors import AlreadyExists, BadRequest
from arco_catalog.planning.names import dotted
from arco_catalog.state.index import Namespace
from storage_backends.lazy_dataclass import dataclass

AHEAD_MS = 24 * 60 * 60 * 1000
"""How far the time of a notification may be ahead of the store's clock."""


class Event(StrEnum):
    """The event at the other catalog that a notification reports. `VALIDATE` reports none: it only checks whether a
    notification would be accepted."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DROP = "DROP"
    VALIDATE = "VALIDATE"


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification from another catalog about one of its tables: the event, the table's uuid and its metadata file.
    Its time `at`, in milliseconds of the sender's clock, orders the notifications of a table."""

    event: Event
    at: int
    uuid: str
    metadata_location: str


def check_time(notification: Notification, now_ms: int) -> None:
    """Raises `BadRequest` for a notification with a time more than a day ahead of the store's. If it were accepted, all
    notifications about the same name until that time would be refused."""
    if notification.at > now_ms + AHEAD_MS:
        raise BadRequest(
            f"Invalid request.payload.timestamp: {notification.at} is more than a day ahead of {now_ms}, the time of "
            "the store: it must be in milliseconds since 1970"
        )


def check_order(notification: Notification, namespace: Namespace, name: str, last: int | None) -> None:
    """Raises `AlreadyExists` for a notification with a time that is not later than `last`, the time of the last one
    that was applied to the name, in milliseconds; `last` is None if there was none, and any time will do."""
    if last is not None and notification.at <= last:
        raise AlreadyExists(
            f"A notification with the same or a newer timestamp has been admitted for table {dotted(namespace, name)}: "
            f"{last}, and this one has {notification.at}"
        )
