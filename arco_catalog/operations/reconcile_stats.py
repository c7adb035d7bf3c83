"""The counts and examples of what the reconciler found and wrote in a run. Their number and length are limited, so that
they always fit into one response."""

from dataclasses import field

from arco_catalog.iceberg.json import JsonObject, JsonValue
from storage_backends.lazy_dataclass import dataclass

MAX_EXAMPLES = 100
"""Maximum examples of missing receipts, and of unreadable records; all are counted."""
MAX_TEXT_LENGTH = 1_000
"""Maximum characters of a text in an example: clients choose how long names and principals are."""


@dataclass(slots=True)
class ReconcileStats:
    """The counts of a run of the reconciler. Each pointer is `orphaned` (its entity is neither live nor dropped in
    HEAD; `nameless` in JSON), `unchanged`, `walked`, or left for a later run, which `stopped` reports. The walks of
    `incomplete` of the walked ones are not over: files are left, a record can't be read, or a transaction is pending.
    `files` counts the commits that were examined, `written` the missing receipts that were written (none by a dry run).

    `missing` has examples of the `missing_count` missing receipts, each with the record that proves the commit, and
    `unreadable` the reasons of some of the `unreadable_count` failures, most of which are records that can't be read.
    """

    pointers: int = 0
    orphaned: int = 0
    unchanged: int = 0
    walked: int = 0
    files: int = 0
    written: int = 0
    incomplete: int = 0
    stopped: bool = False
    unreadable_count: int = 0
    unreadable: list[str] = field(default_factory=list)
    missing_count: int = 0
    missing: list[JsonObject] = field(default_factory=list)

    def lacks(self, receipt: JsonObject) -> None:
        """Counts a receipt that the reconciler found missing, and adds `receipt`, which describes it, with values that
        `_cut` shortens, to the examples if there are fewer than `MAX_EXAMPLES`."""
        self.missing_count += 1
        self._keep([], [{name: _cut(value) if isinstance(value, str) else value for name, value in receipt.items()}])

    def fails(self, reason: str) -> None:
        """Counts a record that the reconciler could not read, or another failure such as a walk that did not end, and
        adds the `reason`, which `_cut` shortens, to the examples if there are fewer than `MAX_EXAMPLES`."""
        self.unreadable_count += 1
        self._keep([_cut(reason)], [])

    def add(self, other: "ReconcileStats") -> None:
        """Adds to these counts and examples of a run of the reconciler those of another run, or of a part of this one;
        there are at most `MAX_EXAMPLES` examples of a kind afterwards."""
        self.pointers += other.pointers
        self.orphaned += other.orphaned
        self.unchanged += other.unchanged
        self.walked += other.walked
        self.files += other.files
        self.written += other.written
        self.incomplete += other.incomplete
        self.stopped |= other.stopped
        self.unreadable_count += other.unreadable_count
        self.missing_count += other.missing_count
        self._keep(other.unreadable, other.missing)

    def _keep(self, unreadable: list[str], missing: list[JsonObject]) -> None:
        """Adds examples, up to `MAX_EXAMPLES` of each kind."""
        self.unreadable += unreadable[: max(0, MAX_EXAMPLES - len(self.unreadable))]
        self.missing += missing[: max(0, MAX_EXAMPLES - len(self.missing))]

    def to_json(self) -> JsonObject:
        """Returns the counts and examples, as `arco reconcile` and the reconciler's functions report them."""
        unreadable: list[JsonValue] = [*self.unreadable]
        missing: list[JsonValue] = [*self.missing]
        return {
            "pointers": self.pointers,
            "nameless": self.orphaned,
            "unchanged": self.unchanged,
            "walked": self.walked,
            "files": self.files,
            "written": self.written,
            "incomplete": self.incomplete,
            "stopped": self.stopped,
            "unreadable_count": self.unreadable_count,
            "unreadable": unreadable,
            "missing_count": self.missing_count,
            "missing": missing,
        }


def _cut(text: str) -> str:
    """Returns a text; a longer one than `MAX_TEXT_LENGTH` is cut there, with three dots at the end."""
    return text if len(text) <= MAX_TEXT_LENGTH else f"{text[:MAX_TEXT_LENGTH]}..."
