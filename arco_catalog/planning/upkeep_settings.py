"""The settings of purges and collections. Every request has them, and few need what acts on them: so this module needs
no other of the catalog."""

from enum import StrEnum

from storage_backends.lazy_dataclass import dataclass

HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * HOUR_MS
LEAST_STS_S = 900


class PurgeMode(StrEnum):
    """How the catalog handles a drop with `purgeRequested=true`: it purges the table later (`async`), waits for the
    purge if there is no time to undo the drop (`sync`), or drops the table without a purge (`off`)."""

    ASYNC = "async"
    SYNC = "sync"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class PurgeSettings:
    """The operator's settings of purges: `purge.mode`, `purge.undrop-window`, `purge.trust-locations` and
    `purge.whole-location`; and `vended_ms`, the lifetime of credentials that clients get for a table's files."""

    mode: PurgeMode = PurgeMode.ASYNC
    undrop_window_ms: int = DAY_MS
    trust_locations: bool = False
    whole_location: bool = False
    vended_ms: int = HOUR_MS


def vended_ms(lifetime_s: int) -> int:
    """Returns the maximum lifetime of a vended credential in milliseconds, given the operator's setting in seconds: at
    least 15 minutes, because STS issues none for less."""
    return 1_000 * max(lifetime_s, LEAST_STS_S)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long objects are kept that a collection may delete, in milliseconds: receipts, lineage events, registry
    commits, reports and segments of the event feed (`receipts_ms`), tombstones of plain drops and of ended purges
    (`undrop_ms`), ended tasks, orphans, markers and decisions. An operator sets the times of receipts and of plain
    drops, and whether markers are collected; the others are fixed, most of them by the protocols."""

    receipts_ms: int = 90 * DAY_MS
    undrop_ms: int = 30 * DAY_MS
    tasks_ms: int = 30 * DAY_MS
    orphans_ms: int = 7 * DAY_MS
    """For objects that a writer left and that never took effect. Page tokens are valid for this time."""
    markers_ms: int = 2 * DAY_MS
    """Counted from slot 0 of a marker. No request takes over an older marker, which may be partly collected."""
    decisions_ms: int = 3 * DAY_MS
    proposals_ms: int = DAY_MS
    """For proposals of processes that died: longer than any other process reads them."""
    plans_ms: int = 2 * DAY_MS
    """For requests of scans: a plan lives a day, and names a request that was stored on the day on which it began."""
    markers: bool = True
    """Whether markers are collected, and decisions, to which markers may refer."""
    margin_ms: int = HOUR_MS
    """Longer than any request takes, and than the clocks of one store's servers differ."""

    def with_margin(self, limit_ms: int) -> int:
        """Returns a time or an age in milliseconds, plus the margin after which every request has ended that ran at
        that time."""
        return limit_ms + self.margin_ms
