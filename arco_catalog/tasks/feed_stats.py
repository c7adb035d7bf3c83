"""The counts of a sequencer of the event feed, for metrics and logs."""

from dataclasses import field

from storage_backends.lazy_dataclass import dataclass

MAX_REASONS = 20
"""The number of reasons for failures that are kept; all are counted."""


@dataclass(slots=True)
class FeedStats:
    """The counts of steps of a sequencer: `records` that it numbered, `segments` that it made, `lost_segments` that
    another sequencer made first, `gaps` in the feed, tables or views that could not be read (`failed`, and the first
    `reasons`), runs that ended with an error (`errors`), and subscriptions whose task could not be made (`waiting`).
    `lag_ms` is the maximum age of a change that entered, by the wall clock; 0 if none did. `is_end` is whether the last
    step entered all that it found."""

    records: int = 0
    segments: int = 0
    lost_segments: int = 0
    gaps: int = 0
    failed: int = 0
    errors: int = 0
    waiting: int = 0
    lag_ms: int = 0
    is_end: bool = False
    reasons: list[str] = field(default_factory=list)

    @property
    def all_failed(self) -> int:
        """The number of failures of all kinds."""
        return self.failed + self.errors + self.waiting

    def fails(self, reason: str) -> None:
        """Counts a table or view that the sequencer could not read, and adds the `reason` to the reasons, up to
        `MAX_REASONS`."""
        self.failed += 1
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append(reason)

    def add(self, other: "FeedStats") -> None:
        """Adds the counts of another run of a sequencer to these. `lag_ms` becomes the larger of both, `is_end` that of
        the other; the reasons of the other are not added."""
        self.records += other.records
        self.segments += other.segments
        self.lost_segments += other.lost_segments
        self.gaps += other.gaps
        self.failed += other.failed
        self.errors += other.errors
        self.waiting += other.waiting
        self.lag_ms = max(self.lag_ms, other.lag_ms)
        self.is_end = other.is_end
