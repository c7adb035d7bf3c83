"""The store's clock, as its answers tell it: the only one that protocols compare (docs/design/store.md)."""

PRECISION_MS = 1_000
"""Stores tell whole seconds, rounded down (the `Date` header of HTTP)."""
MAX_CORRECTION_MS = 30_000
"""By how much the time in a new file may turn out to be wrong before it is current. Iceberg's Java client refuses to
build on metadata that is more than a minute ahead of its own clock ("Invalid update timestamp")."""


class StoreClock:
    """What one process knows of it: by how much, at least, its own clock must be wrong.

    A store's time lies between the sending of a call and its answer. Where the machine's clock may be right by that, it
    is believed: it is finer than the store's.
    """

    def __init__(self) -> None:
        self._behind_ms = 0
        """How far the machine's clock is behind the store's; negative for ahead."""

    def told(self, sent_ms: int, received_ms: int, store_ms: int) -> None:
        """Takes note of an answer: when its call was sent and answered by the machine's clock, and the store's time."""
        least, most = store_ms - received_ms, store_ms + PRECISION_MS - sent_ms
        self._behind_ms = max(least, min(0, most))

    def now_ms(self, machine_ms: int) -> int:
        """The store's time, given the machine's."""
        return machine_ms + self._behind_ms
