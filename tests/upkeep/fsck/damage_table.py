"""The findings that a check reports for each damage of each object: the table in docs/fsck.md.

A cell has the codes of which at least one is reported, `UNNOTICED`, or `NEVER` for a damage that is impossible: an
object that is written once has no older version.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from arco_catalog.upkeep.fsck.codes import Code

Cell = frozenset[Code] | None

UNNOTICED: Cell = frozenset()
NEVER: Cell = None
BESIDE = frozenset(
    {
        *(Code.FILES_ELSEWHERE, Code.POINTER_STRAY, Code.TASK_STRAY, Code.VALUE_MISSING),
        *(Code.COMMIT_UNREADABLE, Code.HINT_MISSING),
    }
)
"""Codes that may be reported in addition, because they follow from the damage."""


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one object, a cell for each damage."""

    gone: Cell
    cut: Cell
    older: Cell
    foreign: Cell
    why: str = ""
    """Why something can't be noticed, or need not be."""

    def cell(self, way: str) -> Cell:
        """Returns the cell of one damage."""
        return {"gone": self.gone, "cut": self.cut, "older": self.older, "foreign": self.foreign}[way]


def reported(*codes: Code) -> Cell:
    """Returns the cell for at least one of these codes."""
    return frozenset(codes)


TO_BE_DELETED = "the purge is deleting it, and fails where it can't read what it needs"
NOT_NEEDED = "it is not needed any more"
SAME_SIZE = "a file of the same size can't be distinguished: no record has a digest"
PURGED = "its log is not followed any more"

DAMAGE: Mapping[str, Row] = {
    "HEAD": Row(
        reported(Code.MANIFEST_MISSING),
        reported(Code.MANIFEST_UNREADABLE),
        reported(Code.MANIFEST_OLDER, Code.COMMIT_UNCONFIRMED),
        reported(Code.COMMIT_MISSING),
    ),
    "HEAD's commit object": Row(
        reported(Code.COMMIT_MISSING), reported(Code.COMMIT_UNREADABLE), NEVER, reported(Code.COMMIT_FOREIGN)
    ),
    "commit object": Row(
        reported(Code.COMMIT_MISSING), reported(Code.COMMIT_UNREADABLE), NEVER, reported(Code.COMMIT_FOREIGN)
    ),
    "commit object that never was HEAD": Row(UNNOTICED, UNNOTICED, NEVER, UNNOTICED, NOT_NEEDED),
    "segment of HEAD's index": Row(
        reported(Code.SEGMENT_MISSING), reported(Code.SEGMENT_UNREADABLE), NEVER, reported(Code.SEGMENT_FOREIGN)
    ),
    "segment that was replaced": Row(
        UNNOTICED, UNNOTICED, NEVER, UNNOTICED, "only a listing that was begun on an older HEAD reads it, and then ends"
    ),
    "properties of a namespace": Row(
        reported(Code.VALUE_MISSING), reported(Code.VALUE_UNREADABLE), NEVER, reported(Code.VALUE_FOREIGN)
    ),
    "properties that were replaced": Row(UNNOTICED, UNNOTICED, NEVER, UNNOTICED, NOT_NEEDED),
    "pointer": Row(
        reported(Code.POINTER_MISSING),
        reported(Code.POINTER_UNREADABLE),
        reported(Code.POINTER_OLDER),
        reported(Code.POINTER_FOREIGN),
    ),
    "pointer, older only by a mark, a fence or an intent": Row(
        NEVER, NEVER, UNNOTICED, NEVER, "it names the same file: nothing is lost, and a mark is put again"
    ),
    "pointer of a table that is purging": Row(
        reported(Code.POINTER_MISSING),
        reported(Code.POINTER_UNREADABLE),
        reported(Code.POINTER_OLDER),
        reported(Code.POINTER_FOREIGN),
    ),
    "pointer of a table that is purged": Row(UNNOTICED, UNNOTICED, UNNOTICED, UNNOTICED, NOT_NEEDED),
    "current metadata file": Row(
        reported(Code.METADATA_MISSING), reported(Code.METADATA_UNREADABLE), NEVER, reported(Code.METADATA_FOREIGN)
    ),
    "earlier metadata file": Row(
        reported(Code.LOGGED_FILE_MISSING),
        reported(Code.LOGGED_FILE_UNREADABLE),
        NEVER,
        reported(Code.LOGGED_FILE_FOREIGN),
    ),
    "manifest list": Row(
        reported(Code.MANIFEST_LIST_MISSING),
        reported(Code.MANIFEST_LIST_UNREADABLE),
        NEVER,
        UNNOTICED,
        "no record has the length or the content of a manifest list",
    ),
    "manifest": Row(
        reported(Code.MANIFEST_FILE_MISSING),
        reported(Code.MANIFEST_FILE_UNREADABLE),
        NEVER,
        reported(Code.MANIFEST_FILE_FOREIGN),
    ),
    "data file": Row(
        reported(Code.DATA_FILE_MISSING),
        reported(Code.DATA_FILE_FOREIGN),
        NEVER,
        reported(Code.DATA_FILE_FOREIGN),
        SAME_SIZE,
    ),
    "statistics file": Row(
        reported(Code.STATISTICS_MISSING),
        reported(Code.STATISTICS_FOREIGN),
        NEVER,
        reported(Code.STATISTICS_FOREIGN),
        SAME_SIZE,
    ),
    "manifest list of a dropped table": Row(
        reported(Code.MANIFEST_LIST_MISSING), UNNOTICED, NEVER, UNNOTICED, "files of dropped tables are not read"
    ),
    "file of a table that is dropped": Row(
        UNNOTICED,
        UNNOTICED,
        NEVER,
        UNNOTICED,
        "files of dropped tables are not checked; undrop checks the manifest lists",
    ),
    "file of a table that is purging": Row(UNNOTICED, UNNOTICED, NEVER, UNNOTICED, TO_BE_DELETED),
    "committed receipt": Row(
        reported(Code.RECEIPT_MISSING), reported(Code.RECEIPT_UNREADABLE), NEVER, reported(Code.RECEIPT_FOREIGN)
    ),
    "pending receipt": Row(
        UNNOTICED,
        reported(Code.RECEIPT_UNREADABLE),
        NEVER,
        reported(Code.RECEIPT_FOREIGN),
        "the committed receipt has the same content; if both are missing, `receipt-missing` is reported",
    ),
    "committed receipt of a table that is purging": Row(
        UNNOTICED, reported(Code.RECEIPT_UNREADABLE), NEVER, reported(Code.RECEIPT_FOREIGN), TO_BE_DELETED
    ),
    "pending receipt of a table that is purging": Row(
        UNNOTICED, reported(Code.RECEIPT_UNREADABLE), NEVER, reported(Code.RECEIPT_FOREIGN), TO_BE_DELETED
    ),
    "committed receipt of a table that is purged": Row(
        UNNOTICED,
        reported(Code.RECEIPT_UNREADABLE),
        NEVER,
        reported(Code.RECEIPT_FOREIGN),
        PURGED,
    ),
    "pending receipt of a table that is purged": Row(
        UNNOTICED,
        reported(Code.RECEIPT_UNREADABLE),
        NEVER,
        reported(Code.RECEIPT_FOREIGN),
        PURGED,
    ),
    "marker's earlier slot": Row(
        reported(Code.MARKER_GAP), reported(Code.MARKER_UNREADABLE), NEVER, reported(Code.MARKER_FOREIGN)
    ),
    "marker's last slot": Row(
        UNNOTICED,
        reported(Code.MARKER_UNREADABLE),
        NEVER,
        reported(Code.MARKER_FOREIGN),
        "as if the server had died before its answer: a retry finds what was committed, and answers",
    ),
    "transaction's decision": Row(
        UNNOTICED,
        reported(Code.TRANSACTION_UNREADABLE),
        reported(Code.TRANSACTION_UNDECIDED),
        reported(Code.TRANSACTION_FOREIGN),
        "all that it decided is settled; as long as something waits for it, it is missed (`transaction-missing`)",
    ),
    "claim on a file": Row(
        reported(Code.CLAIM_MISSING), reported(Code.CLAIM_UNREADABLE), NEVER, reported(Code.CLAIM_FOREIGN)
    ),
    "log of walks": Row(
        UNNOTICED,
        reported(Code.CHECKPOINT_UNREADABLE),
        UNNOTICED,
        UNNOTICED,
        "the reconciler walks once more, and finds all receipts there",
    ),
    "chunk of a purge's inventory": Row(
        UNNOTICED, reported(Code.CHECKPOINT_UNREADABLE), NEVER, UNNOTICED, "the purge lists its table's files once more"
    ),
    "first version of a task": Row(
        reported(Code.TASK_GAP), reported(Code.TASK_UNREADABLE), NEVER, reported(Code.TASK_FOREIGN)
    ),
    "further version of a task": Row(
        reported(Code.TASK_GAP), reported(Code.TASK_UNREADABLE), NEVER, reported(Code.TASK_FOREIGN)
    ),
    "last version of a task": Row(
        UNNOTICED,
        reported(Code.TASK_UNREADABLE),
        NEVER,
        reported(Code.TASK_FOREIGN),
        "as if its writer had died before it: the next worker goes on from the version before, or makes the first",
    ),
    "first version of a task that has ended": Row(
        UNNOTICED,
        reported(Code.TASK_UNREADABLE),
        NEVER,
        reported(Code.TASK_FOREIGN),
        "the collector may be deleting it",
    ),
    "further version of a task that has ended": Row(
        reported(Code.TASK_GAP), reported(Code.TASK_UNREADABLE), NEVER, reported(Code.TASK_FOREIGN)
    ),
    "last version of a task that has ended": Row(
        reported(Code.HINT_MISSING), reported(Code.TASK_UNREADABLE), NEVER, reported(Code.TASK_FOREIGN)
    ),
    "hint": Row(reported(Code.HINT_MISSING), NEVER, NEVER, reported(Code.OBJECT_UNKNOWN)),
}


def as_markdown() -> str:
    """The table as the page has it."""
    head = "| object | gone | cut | older version | another's | why not |\n| --- | --- | --- | --- | --- | --- |\n"
    rows = [(role, *(_shown(row.cell(way)) for way in WAYS), row.why) for role, row in DAMAGE.items()]
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)


WAYS = ("gone", "cut", "older", "foreign")


def _shown(cell: Cell) -> str:
    if cell is None:
        return ""
    return ", ".join(f"`{code}`" for code in sorted(cell)) or "not noticed"
