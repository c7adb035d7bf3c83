"""What a check says of each damage: the table in docs/fsck.md.

A cell has the codes of which one at least is told, `UNNOTICED`, or `NEVER` where there is no such damage: an object
that is written once has no older version.
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
"""What may be told as well, because it follows."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is told of one role."""

    gone: Cell
    cut: Cell
    older: Cell
    foreign: Cell
    why: str = ""
    """Why something can't be noticed, or need not be."""

    def cell(self, way: str) -> Cell:
        """What is told of one way."""
        return {"gone": self.gone, "cut": self.cut, "older": self.older, "foreign": self.foreign}[way]


def told(*codes: Code) -> Cell:
    """One of these, at least."""
    return frozenset(codes)


TO_BE_DELETED = "the purge is deleting it, and fails where it can't read what it needs"
NOT_NEEDED = "nobody needs it any more"
SAME_SIZE = "one of the very size can't be told: nothing keeps a digest"
PURGED = "its log is not followed any more"

DAMAGE: Mapping[str, Row] = {
    "HEAD": Row(
        told(Code.MANIFEST_MISSING),
        told(Code.MANIFEST_UNREADABLE),
        told(Code.MANIFEST_OLDER, Code.COMMIT_UNCONFIRMED),
        told(Code.COMMIT_MISSING),
    ),
    "HEAD's commit object": Row(told(Code.COMMIT_MISSING), told(Code.COMMIT_FOREIGN), NEVER, told(Code.COMMIT_FOREIGN)),
    "commit object": Row(told(Code.COMMIT_MISSING), told(Code.COMMIT_UNREADABLE), NEVER, told(Code.COMMIT_FOREIGN)),
    "commit object that never was HEAD": Row(UNNOTICED, UNNOTICED, NEVER, UNNOTICED, NOT_NEEDED),
    "segment of HEAD's index": Row(
        told(Code.SEGMENT_MISSING), told(Code.SEGMENT_UNREADABLE), NEVER, told(Code.SEGMENT_FOREIGN)
    ),
    "segment that was replaced": Row(
        UNNOTICED, UNNOTICED, NEVER, UNNOTICED, "only a listing that was begun on an older HEAD reads it, and then ends"
    ),
    "properties of a namespace": Row(
        told(Code.VALUE_MISSING), told(Code.VALUE_UNREADABLE), NEVER, told(Code.VALUE_FOREIGN)
    ),
    "properties that were replaced": Row(UNNOTICED, UNNOTICED, NEVER, UNNOTICED, NOT_NEEDED),
    "pointer": Row(
        told(Code.POINTER_MISSING),
        told(Code.POINTER_UNREADABLE),
        told(Code.POINTER_OLDER),
        told(Code.POINTER_FOREIGN),
    ),
    "pointer, older only by a mark, a fence or an intent": Row(
        NEVER, NEVER, UNNOTICED, NEVER, "it names the same file: nothing is lost, and a mark is put again"
    ),
    "pointer of a table that is purging": Row(
        told(Code.POINTER_MISSING), told(Code.POINTER_UNREADABLE), told(Code.POINTER_OLDER), told(Code.POINTER_FOREIGN)
    ),
    "pointer of a table that is purged": Row(UNNOTICED, UNNOTICED, UNNOTICED, UNNOTICED, NOT_NEEDED),
    "current metadata file": Row(
        told(Code.METADATA_MISSING), told(Code.METADATA_UNREADABLE), NEVER, told(Code.METADATA_FOREIGN)
    ),
    "earlier metadata file": Row(
        told(Code.LOGGED_FILE_MISSING), told(Code.LOGGED_FILE_UNREADABLE), NEVER, told(Code.LOGGED_FILE_FOREIGN)
    ),
    "manifest list": Row(
        told(Code.MANIFEST_LIST_MISSING),
        told(Code.MANIFEST_LIST_UNREADABLE),
        NEVER,
        UNNOTICED,
        "nothing that names a manifest list tells its length, or what is in it",
    ),
    "manifest": Row(
        told(Code.MANIFEST_FILE_MISSING), told(Code.MANIFEST_FILE_UNREADABLE), NEVER, told(Code.MANIFEST_FILE_FOREIGN)
    ),
    "data file": Row(
        told(Code.DATA_FILE_MISSING), told(Code.DATA_FILE_FOREIGN), NEVER, told(Code.DATA_FILE_FOREIGN), SAME_SIZE
    ),
    "statistics file": Row(
        told(Code.STATISTICS_MISSING), told(Code.STATISTICS_FOREIGN), NEVER, told(Code.STATISTICS_FOREIGN), SAME_SIZE
    ),
    "manifest list of a dropped table": Row(
        told(Code.MANIFEST_LIST_MISSING), UNNOTICED, NEVER, UNNOTICED, "files of dropped tables are not read"
    ),
    "file of a table that is dropped": Row(
        UNNOTICED, UNNOTICED, NEVER, UNNOTICED, "files of dropped tables are not looked at; undrop looks at the lists"
    ),
    "file of a table that is purging": Row(UNNOTICED, UNNOTICED, NEVER, UNNOTICED, TO_BE_DELETED),
    "committed receipt": Row(
        told(Code.RECEIPT_MISSING), told(Code.RECEIPT_UNREADABLE), NEVER, told(Code.RECEIPT_FOREIGN)
    ),
    "pending receipt": Row(
        UNNOTICED,
        told(Code.RECEIPT_UNREADABLE),
        NEVER,
        told(Code.RECEIPT_FOREIGN),
        "the committed receipt says the same; without either, that is missed",
    ),
    "committed receipt of a table that is purging": Row(
        UNNOTICED, told(Code.RECEIPT_UNREADABLE), NEVER, told(Code.RECEIPT_FOREIGN), TO_BE_DELETED
    ),
    "pending receipt of a table that is purging": Row(
        UNNOTICED, told(Code.RECEIPT_UNREADABLE), NEVER, told(Code.RECEIPT_FOREIGN), TO_BE_DELETED
    ),
    "committed receipt of a table that is purged": Row(
        UNNOTICED,
        told(Code.RECEIPT_UNREADABLE),
        NEVER,
        told(Code.RECEIPT_FOREIGN),
        PURGED,
    ),
    "pending receipt of a table that is purged": Row(
        UNNOTICED,
        told(Code.RECEIPT_UNREADABLE),
        NEVER,
        told(Code.RECEIPT_FOREIGN),
        PURGED,
    ),
    "marker's earlier slot": Row(told(Code.MARKER_GAP), told(Code.MARKER_UNREADABLE), NEVER, told(Code.MARKER_FOREIGN)),
    "marker's last slot": Row(
        UNNOTICED,
        told(Code.MARKER_UNREADABLE),
        NEVER,
        told(Code.MARKER_FOREIGN),
        "as if the server had died before its answer: a retry finds what was committed, and answers",
    ),
    "transaction's decision": Row(
        UNNOTICED,
        told(Code.TRANSACTION_UNREADABLE),
        told(Code.TRANSACTION_UNDECIDED),
        told(Code.TRANSACTION_FOREIGN),
        "all that it decided is settled; as long as something waits for it, it is missed (`transaction-missing`)",
    ),
    "claim on a file": Row(told(Code.CLAIM_MISSING), told(Code.CLAIM_UNREADABLE), NEVER, told(Code.CLAIM_FOREIGN)),
    "log of walks": Row(
        UNNOTICED,
        told(Code.CHECKPOINT_UNREADABLE),
        UNNOTICED,
        UNNOTICED,
        "the reconciler walks once more, and finds all receipts there",
    ),
    "chunk of a purge's inventory": Row(
        UNNOTICED, told(Code.CHECKPOINT_UNREADABLE), NEVER, UNNOTICED, "the purge lists its table's files once more"
    ),
    "first version of a task": Row(told(Code.TASK_GAP), told(Code.TASK_UNREADABLE), NEVER, told(Code.TASK_FOREIGN)),
    "further version of a task": Row(told(Code.TASK_GAP), told(Code.TASK_UNREADABLE), NEVER, told(Code.TASK_FOREIGN)),
    "last version of a task": Row(
        UNNOTICED,
        told(Code.TASK_UNREADABLE),
        NEVER,
        told(Code.TASK_FOREIGN),
        "as if its writer had died before it: the next worker goes on from the version before, or makes the first",
    ),
    "first version of a task that has ended": Row(
        UNNOTICED, told(Code.TASK_UNREADABLE), NEVER, told(Code.TASK_FOREIGN), "as if the collector were at it"
    ),
    "further version of a task that has ended": Row(
        told(Code.TASK_GAP), told(Code.TASK_UNREADABLE), NEVER, told(Code.TASK_FOREIGN)
    ),
    "last version of a task that has ended": Row(
        told(Code.HINT_MISSING), told(Code.TASK_UNREADABLE), NEVER, told(Code.TASK_FOREIGN)
    ),
    "hint": Row(told(Code.HINT_MISSING), NEVER, NEVER, told(Code.OBJECT_UNKNOWN)),
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
