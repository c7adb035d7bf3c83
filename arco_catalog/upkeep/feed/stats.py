"""The counts of a sequencer's steps, for metrics and logs."""

from dataclasses import dataclass, field

from arco_catalog.iceberg.json import JsonObject

MAX_REASONS = 20
"""The number of reasons for failures that are kept; all are counted."""


@dataclass(slots=True)
class FeedStats:
    """The counts of steps of a sequencer: `records` that it numbered, `segments` that it made, `lost_segments` that
    another sequencer made first, `gaps` among the records, and tables or views that could not be read (`failed`).
    `lag_ms` is how old the oldest change was that entered, by the wall clock; 0 if none did. `is_end` is whether the
    last step entered all that it found."""

    records: int = 0
    segments: int = 0
    lost_segments: int = 0
    gaps: int = 0
    failed: int = 0
    lag_ms: int = 0
    is_end: bool = False
    reasons: list[str] = field(default_factory=list)
    error: str | None = None

    def fails(self, reason: str) -> None:
        """Counts a table or view that could not be read."""
        self.failed += 1
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append(reason)

    def to_json(self) -> JsonObject:
        """Returns the counts for people and logs."""
        return {
            "records": self.records,
            "segments": self.segments,
            "lost_segments": self.lost_segments,
            "gaps": self.gaps,
            "failed": self.failed,
            "lag_ms": self.lag_ms,
            "is_end": self.is_end,
        }
