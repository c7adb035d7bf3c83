"""The statistics of a worker of background tasks, for metrics and logs."""

from dataclasses import field

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.tasks.feed_stats import FeedStats
from storage_backends.lazy_dataclass import dataclass


@dataclass(slots=True)
class ExpiryStats:
    """Counts of what executions of expiries did: `snapshots` that they removed, and those that were `cleaned` two days
    later: their files were deleted, or are kept for good; `files` that were deleted; expiries that were `held_back`,
    which kept snapshots or files; and the `failed` ones, failed sweeps and tables that a sweep could not read
    included."""

    snapshots: int = 0
    cleaned: int = 0
    files: int = 0
    held_back: int = 0
    failed: int = 0

    def add(self, other: "ExpiryStats") -> None:
        """Adds the counts of expiries of another worker, or of a later poll, to these."""
        self.snapshots += other.snapshots
        self.cleaned += other.cleaned
        self.files += other.files
        self.held_back += other.held_back
        self.failed += other.failed


@dataclass(slots=True)
class DeliveryStats:
    """Counts of what deliveries of events did: events that receivers have `accepted`; those that were `set_aside` as
    dead letters; and deliveries that `failed`, which are continued later. A run of a delivery that an error of the
    store ends does not count."""

    accepted: int = 0
    set_aside: int = 0
    failed: int = 0

    def add(self, other: "DeliveryStats") -> None:
        """Adds the counts of another worker, or of a later poll, to these."""
        self.accepted += other.accepted
        self.set_aside += other.set_aside
        self.failed += other.failed


@dataclass(slots=True)
class WorkStats:
    """Counts of a worker's executions of tasks, and of their results. `leases_lost` counts tasks that this worker took
    over because the lease of the worker before had run out, `given_back` those that it scheduled for others when it was
    stopped. `oldest_due_ms` is the longest time for which a task had been due without a worker. `due` and `scheduled`
    are the numbers of tasks that were due (those under way included) and that were not due yet, by the last complete
    listing of hints; None without one. Of a store that lists keys in order, `scheduled` counts a page at most.
    `stopped`: the time was over before all due tasks were executed. `error` is the reason why a catalog's tasks could
    not be executed."""

    executed: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    given_back: int = 0
    leases_lost: int = 0
    oldest_due_ms: int = 0
    due: int | None = None
    scheduled: int | None = None
    stopped: bool = False
    error: str | None = None
    expiries: ExpiryStats = field(default_factory=ExpiryStats)
    feed: FeedStats = field(default_factory=FeedStats)
    deliveries: DeliveryStats = field(default_factory=DeliveryStats)

    def waits(self, due_ms: int) -> None:
        """Records that a task has been due for this many milliseconds without a worker: the longest such time is
        kept."""
        self.oldest_due_ms = max(self.oldest_due_ms, due_ms)

    def add(self, other: "WorkStats") -> None:
        """Adds the counts of another worker, or of a later poll, to these. `oldest_due_ms` becomes the longer of both,
        `due` and `scheduled` those of the other, `stopped` is whether either stopped, and `error` stays if there is
        one."""
        self.executed += other.executed
        self.completed += other.completed
        self.failed += other.failed
        self.retried += other.retried
        self.given_back += other.given_back
        self.leases_lost += other.leases_lost
        self.waits(other.oldest_due_ms)
        self.due, self.scheduled = other.due, other.scheduled
        self.stopped = self.stopped or other.stopped
        self.error = self.error or other.error
        self.expiries.add(other.expiries)
        self.feed.add(other.feed)
        self.deliveries.add(other.deliveries)

    def to_json(self) -> JsonObject:
        """Returns the counts of a worker's executions of tasks, `oldest_due_ms` and `stopped`, for people and logs;
        without `due`, `scheduled`, `error`, and the counts of expiries, the feed and deliveries."""
        return {
            "executed": self.executed,
            "completed": self.completed,
            "failed": self.failed,
            "retried": self.retried,
            "given_back": self.given_back,
            "leases_lost": self.leases_lost,
            "oldest_due_ms": self.oldest_due_ms,
            "stopped": self.stopped,
        }
