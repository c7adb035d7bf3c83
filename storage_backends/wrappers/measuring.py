"""Records every call of a store with its outcome, and computes the longest chain of sequential calls."""

from collections import Counter
from collections.abc import Callable
from dataclasses import field
from time import perf_counter
from typing import Literal, NamedTuple

from storage_backends.base import Found
from storage_backends.lazy_dataclass import dataclass

Kind = Literal["get", "put", "delete", "list"]


class StoreCall:
    """One call of a store, which has begun: `answered` or `failed` ends it. `read` and `written` are bytes of bodies;
    `depth` is one more than that of the deepest call that had ended before this one began; times are by the
    measurement's clock, in seconds; `outcome` is the name of the result's class, or of the exception's. Until the call
    ends, `outcome` is empty and `ended` is `began`."""

    __slots__ = ("_measurement", "began", "depth", "ended", "key", "kind", "outcome", "read", "written")

    def __init__(self, measurement: "Measurement", kind: Kind, key: str, written: int) -> None:
        self._measurement: Measurement | None = measurement
        self.kind: Kind = kind
        self.key = key
        self.written = written
        self.read = 0
        self.outcome = ""
        self.depth = measurement.deepest_ended + 1
        self.began = self.ended = measurement.clock()

    def answered(self, answer: object) -> None:
        """Records that a call of the store has been answered: the time, the class of the answer, and for an object the
        number of bytes that were read."""
        if isinstance(answer, Found):
            self.read = len(answer.body)
        self._end(answer)

    def failed(self, error: BaseException) -> None:
        """Records that a call of the store has failed: the time, and the class of the exception that the call
        raised."""
        self._end(error)

    def _end(self, outcome: object) -> None:
        """Records when a call of the store ended, and the class of the answer or exception; calls that begin later are
        deeper."""
        measurement, self._measurement = self._measurement, None  # or the two would keep each other alive
        assert measurement is not None
        self.ended = measurement.clock()
        self.outcome = type(outcome).__name__
        if self.depth > measurement.deepest_ended:
            measurement.deepest_ended = self.depth


class Totals(NamedTuple):
    """Sums over the calls of a store. `depth` is the length of the longest chain of calls that came one after the
    other; `bytes_written` are of bodies that were sent, refused ones included; `unchanged` counts reads without a body,
    because the caller had the current version."""

    calls: int
    depth: int
    bytes_read: int
    bytes_written: int
    unchanged: int


@dataclass(slots=True)
class Measurement:
    """The calls of a store in one operation, in the order in which they began.

    `depth` is the longest chain of calls of which each began after the one before had ended: concurrent calls
    share a depth. It is never less than the operation's chain of dependent calls. It is more where a call
    began after an unrelated one had ended by chance, so measure over a store that takes an even time
    (or `MemoryStore` if nothing but the store is awaited).
    """

    clock: Callable[[], float] = perf_counter
    trace: list[StoreCall] = field(default_factory=list)
    deepest_ended: int = 0

    def call(self, kind: Kind, key: str, written: int = 0) -> StoreCall:
        """Records a call of the store that begins now, and returns the record of it. `written` is the size in bytes of
        the body that it sends."""
        call = StoreCall(self, kind, key, written)
        self.trace.append(call)
        return call

    @property
    def calls(self) -> int:
        """The number of calls of the store that have begun, ended ones included."""
        return len(self.trace)

    @property
    def log(self) -> list[tuple[Kind, str]]:
        """The kind and the key of all calls of the store, in the order in which they began."""
        return [(call.kind, call.key) for call in self.trace]

    @property
    def by_kind(self) -> Counter[Kind]:
        """The number of calls of each kind that have begun."""
        return Counter(call.kind for call in self.trace)

    @property
    def depth(self) -> int:
        """The greatest number of calls of the store that came one after the other."""
        return self.totals().depth

    @property
    def bytes_read(self) -> int:
        """The number of bytes of objects that were read: of a range, only those in it."""
        return self.totals().bytes_read

    @property
    def bytes_written(self) -> int:
        """The number of bytes in the bodies of all writes, refused ones included."""
        return self.totals().bytes_written

    def totals(self) -> Totals:
        """Returns the sums over all calls, computed in one pass."""
        depth = read = written = unchanged = 0
        for call in self.trace:
            depth = max(depth, call.depth)
            read += call.read
            written += call.written
            unchanged += call.outcome == "Unchanged"
        return Totals(len(self.trace), depth, read, written, unchanged)
