"""What another catalog tells of one of its tables (docs/design/polaris.md#notifications)."""

from dataclasses import dataclass
from enum import StrEnum

from arco_catalog.iceberg.errors import AlreadyExists
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.names import dotted
from arco_catalog.state.followed import Followed
from arco_catalog.state.index import Namespace


class Event(StrEnum):
    """What has happened there, or with `VALIDATE`: may happen."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DROP = "DROP"
    VALIDATE = "VALIDATE"


@dataclass(frozen=True, slots=True)
class Notification:
    """One. `at` is its time, by the sender's clock, by which the notifications of a table are ordered."""

    event: Event
    at: int
    uuid: str
    metadata_location: str


def check_order(notification: Notification, namespace: Namespace, name: str, known: JsonObject | None) -> None:
    """Raises `AlreadyExists` for a notification that is not later than the last one which was admitted for the name:
    `known` is its entry, or what was dropped last under it."""
    last = None if known is None else Followed.of(known)
    if last is not None and notification.at <= last.notified:
        raise AlreadyExists(
            f"A notification with a newer timestamp has been admitted for table {dotted(namespace, name)}: "
            f"{last.notified}, and this one has {notification.at}"
        )
