"""An estimate of the store's clock from its answers. Protocols compare only times of that clock
(docs/design/store.md)."""

PRECISION_MS = 1_000
"""Stores answer with whole seconds, rounded down (the `Date` header of HTTP)."""
MAX_CORRECTION_MS = 30_000
"""A new metadata file whose time proves to be wrong by more than this is written anew before it becomes current.
Iceberg's Java client rejects metadata that is more than a minute ahead of its own clock ("Invalid update
timestamp")."""


class StoreClock:
    """The correction of the machine's clock to that of the store.

    The store's time of an answer is between the sending of the call and the arrival of the answer. If the machine's
    clock agrees with that, the correction is 0, because the machine's clock is more precise. Otherwise it is the least
    that makes them agree.
    """

    def __init__(self) -> None:
        self.behind_ms = 0
        """How far the machine's clock is behind the store's; negative if it is ahead."""

    def update(self, sent_ms: int, received_ms: int, store_ms: int) -> None:
        """Sets the correction of the machine's clock to the store's after an answer: 0 if the clocks agree, else the
        least that makes them agree. `sent_ms` and `received_ms` are times of the machine's clock, `store_ms` is the
        store's time in the answer, in milliseconds too, but rounded down to a whole second."""
        lowest, highest = store_ms - received_ms, store_ms + PRECISION_MS - sent_ms
        self.behind_ms = max(lowest, min(0, highest))

    def now_ms(self, machine_ms: int) -> int:
        """Returns the store's time for a time of the machine's clock."""
        return machine_ms + self.behind_ms
