"""Sends events to a webhook: one signed POST for each event, without redirects, to a URL of https, or, if private
addresses are allowed, of http on this machine."""

from collections.abc import Callable

from arco_catalog.planning.cloud_events import CONTENT_TYPE
from arco_catalog.upkeep.delivery.addresses import is_public, is_usable
from arco_catalog.upkeep.delivery.signing import key_of, signed_headers
from arco_catalog.upkeep.delivery.sink import (
    MAX_ANSWER_BYTES,
    DeliveryError,
    Message,
    ReceiverUnreachable,
    check_accepted,
)
from storage_backends import StoreDenied, StoreError, StoreUnavailable
from storage_backends.wire.exchange import retry_after_s
from storage_backends.wire.fetch import checked_url, fetch
from storage_backends.wire.http1 import AnswerTooLarge, NeverSent
from storage_backends.wire.pool import Timeouts

TIMEOUTS = Timeouts(connect_s=5.0, idle_s=10.0, exchange_s=15.0)
"""Less than the margin at the end of a lease, so that no request outlives the lease of its worker."""


class Webhook:
    """The receiver at a URL, which gets events that are signed with a secret. It must have a public address, unless
    `allows_private`; then it may also be at http on this machine. Raises `ValueError` for a URL or secret that can't
    be used."""

    def __init__(self, url: str, secret: str, now_ms: Callable[[], int], *, allows_private: bool) -> None:
        key_of(secret)
        try:
            self._host = checked_url(url, plain_loopback=allows_private).netloc
        except StoreDenied as error:
            raise ValueError(str(error)) from error
        self._url, self._secret, self._now_ms, self._allows_private = url, secret, now_ms, allows_private

    async def send(self, message: Message) -> None:
        """Sends a message to the webhook by one POST, with a fresh signature; returns if the status of the response is
        2xx, and raises `DeliveryError` for others; as `ReceiverUnreachable` if the request was never sent, the address
        is not permitted, or the receiver denies access or redirects."""
        headers = {
            "content-type": CONTENT_TYPE,
            **signed_headers(self._secret, message.id, self._now_ms() // 1000, message.body),
        }
        try:
            response = await fetch(
                self._url,
                headers,
                self._now_ms,
                MAX_ANSWER_BYTES,
                method="POST",
                body=message.body,
                plain_loopback=self._allows_private,
                timeouts=TIMEOUTS,
                permits=is_usable if self._allows_private else is_public,
            )
            status, pause_s = response.status, retry_after_s(response)
        except StoreError as error:
            status, pause_s = _status_of(error), 0.0
        check_accepted(f"the webhook at {self._host}", status, pause_s)

    async def close(self) -> None:
        """Does nothing: each message has a connection of its own."""


def _status_of(error: StoreError) -> int:
    """Returns the status of a response that was too large, since nothing else of it counts. For a request without a
    response raises `ReceiverUnreachable` if it was never sent, which is not the event's fault, else a plain
    `DeliveryError`."""
    cause = error.__cause__
    if isinstance(cause, AnswerTooLarge) and cause.status:
        return cause.status
    was_sent = isinstance(error, StoreUnavailable) and not isinstance(cause, NeverSent)
    raise (DeliveryError if was_sent else ReceiverUnreachable)(str(error)) from error
