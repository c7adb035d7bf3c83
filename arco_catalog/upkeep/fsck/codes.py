"""The kinds of inconsistency that a check may find, each with its meaning and its remedy: the table in docs/fsck.md."""

from enum import StrEnum
from typing import Self


class Severity(StrEnum):
    """The severity of an inconsistency: an error, a warning or a note."""

    ERROR = "error"
    """An object that clients need can't be read, or is not the committed one."""
    WARNING = "warning"
    """Another object is lost or may be lost. Clients lose nothing."""
    NOTE = "note"
    """An object that a dead process left behind. It takes space and does no harm."""


_RESTORE = "restore the object from an older version of it, or from a backup"
_WHOLE = "makes a commit from which manifest.json can be computed"
_NONE = "none is needed"
_ROLL_BACK = "restore the file; or expire the snapshot, or roll the table back to another"
_REPORT = "report it: this is a defect"
_RECEIPTS = (
    "delete it and the reconciler's checkpoints (operational/reconciler/), then run `arco reconcile`: it writes "
    "committed ones again"
)

_Member = tuple[str, Severity, str, str, str]


def _error(value: str, meaning: str, remedy: str, repair: str = "") -> _Member:
    """Returns the fields of a code with the severity of an error. `value` is the public name; `repair` is the effect of
    `--repair`, empty if there is none."""
    return value, Severity.ERROR, meaning, remedy, repair


def _warning(value: str, meaning: str, remedy: str, repair: str = "") -> _Member:
    """Returns the fields of a code with the severity of a warning; `value` and `repair` as in `_error`."""
    return value, Severity.WARNING, meaning, remedy, repair


def _note(value: str, meaning: str, remedy: str, repair: str = "") -> _Member:
    """Returns the fields of a code with the severity of a note; `value` and `repair` as in `_error`."""
    return value, Severity.NOTE, meaning, remedy, repair


class Code(StrEnum):
    """A kind of inconsistency that a check may find. The values are public: scripts use them. A member also has a
    severity, a meaning, a remedy, and the effect of `--repair`, which is empty if there is none."""

    severity: Severity
    meaning: str
    remedy: str
    repair: str

    def __new__(cls, value: str, severity: Severity, meaning: str, remedy: str, repair: str) -> Self:
        """Makes the member whose text is `value`."""
        code = str.__new__(cls, value)
        code._value_ = value
        code.severity, code.meaning, code.remedy, code.repair = severity, meaning, remedy, repair
        return code

    MANIFEST_MISSING = _error(
        "manifest-missing",
        "HEAD of the registry is gone, so no name can be resolved; the commits of its history exist",
        "stop all writers, then run `arco restore` (of a realm: `arco restore --realm-registry`)",
    )
    MANIFEST_UNREADABLE = _error(
        "manifest-unreadable",
        "HEAD of the registry is damaged, so no name can be resolved",
        "stop all writers, then run `arco restore` (of a realm: `arco restore --realm-registry`)",
    )
    MANIFEST_OLDER = _error(
        "manifest-older",
        "HEAD is an older one: a later commit is known to have been HEAD",
        "stop all writers, then run `arco restore --head COMMIT --replace` with the last of the commits that the "
        "finding names whose change clients know",
    )
    COMMIT_UNCONFIRMED = _warning(
        "commit-unconfirmed",
        "a commit is a child of HEAD, and no record proves whether it became HEAD: its writer died before the swap, or "
        "HEAD is an older one",
        f"{_NONE} unless manifest.json was restored; then compare the commit with what clients know",
    )
    COMMIT_MISSING = _warning(
        "commit-missing",
        "a commit of the registry's history is gone: the outcome of late retries stays unknown, and listings that "
        "began on it end",
        f"{_RESTORE}; if manifest.json needs it, run `arco fsck --repair --apply`",
        f"for HEAD itself: writes it again from manifest.json; for an older one: {_WHOLE}",
    )
    COMMIT_UNREADABLE = _warning(
        "commit-unreadable",
        "a commit of the registry's history is damaged",
        f"{_RESTORE}; if manifest.json needs it, run `arco fsck --repair --apply`",
        _WHOLE,
    )
    COMMIT_FOREIGN = _warning(
        "commit-foreign",
        "a commit object has another id than its key, or that of HEAD differs from HEAD",
        f"{_RESTORE}; if manifest.json needs it, run `arco fsck --repair --apply`",
        _WHOLE,
    )
    COMMIT_CANCELLED = _error(
        "commit-cancelled",
        "HEAD lists one operation as committed and as cancelled: a client may have got a failure",
        _REPORT,
    )
    SEGMENT_MISSING = _error(
        "segment-missing", "a part of the registry's index is gone: the names in it can't be resolved", _RESTORE
    )
    SEGMENT_UNREADABLE = _error(
        "segment-unreadable", "a part of the registry's index is damaged: the names in it can't be resolved", _RESTORE
    )
    SEGMENT_FOREIGN = _error(
        "segment-foreign", "a part of the registry's index differs from HEAD in its size, order or range", _RESTORE
    )
    ENTRY_UNREADABLE = _error("entry-unreadable", "an entry of the registry's index lacks a field", _REPORT)
    PARENT_MISSING = _error(
        "parent-missing",
        "a name lies in a namespace that does not exist, so it can't be listed",
        "make the namespace again",
    )
    VALUE_MISSING = _error(
        "value-missing",
        "the properties of a namespace are gone, so it can't be loaded",
        'restore the object, or write one: {"version":1,"properties":{}}',
    )
    VALUE_UNREADABLE = _error(
        "value-unreadable",
        "the properties of a namespace are damaged, so it can't be loaded",
        'restore the object, or write one: {"version":1,"properties":{}}',
    )
    VALUE_FOREIGN = _error(
        "value-foreign", "the properties of a namespace differ from the digest in their key", _RESTORE
    )
    HOLD_MISSING = _error(
        "hold-missing", "a table's location is not reserved for it: another table could be created there", _REPORT
    )
    HOLD_STRAY = _warning(
        "hold-stray", "a location is reserved for an entity without a name: no table can be created there", _REPORT
    )
    LOAN_MISFIT = _error(
        "loan-misfit",
        "the entry of a table and the list of borrowed folders differ: a purge of a folder's owner may delete files of "
        "the table",
        _REPORT,
    )
    POINTER_MISSING = _error(
        "pointer-missing",
        "the pointer of a table or view is gone: it can be neither read nor written",
        "stop all writers of the table, then run `arco restore`",
    )
    POINTER_UNREADABLE = _error(
        "pointer-unreadable",
        "the pointer of a table or view is damaged: it can be neither read nor written",
        "stop all writers of the table, then run `arco restore`",
    )
    POINTER_FOREIGN = _error(
        "pointer-foreign",
        "a pointer object is of another table or view",
        "stop all writers of the table, then run `arco restore`",
    )
    POINTER_OLDER = _error(
        "pointer-older",
        "a pointer is an older version: a commit is known to have replaced its metadata file",
        "stop all writers of the table; restore the newest version of the object, or run "
        "`arco restore --pointer ENTITY=FILE --replace` with the newest file that `arco receipts` lists",
    )
    POINTER_STRAY = _note("pointer-stray", "a pointer without a name: the create or registration did not finish", _NONE)
    METADATA_MISSING = _error(
        "metadata-missing",
        "the current metadata file of a table or view is gone, so it can't be loaded",
        "restore the file; or drop the table and register an older file (`arco receipts` lists them)",
    )
    METADATA_UNREADABLE = _error(
        "metadata-unreadable",
        "the current metadata file of a table or view is damaged, so it can't be loaded",
        "restore the file; or drop the table and register an older file (`arco receipts` lists them)",
    )
    METADATA_FOREIGN = _error(
        "metadata-foreign",
        "the current metadata file of a table or view is not the committed one: it differs from its pointer",
        "restore the committed file",
    )
    METADATA_OUT_OF_REACH = _warning(
        "metadata-out-of-reach",
        "the current metadata file is in no store of this catalog, is larger than its maximum, or has a name with an "
        "empty level ('//'), for which it has no key",
        "set --allowed-location and ARCO_MAX_METADATA as for the servers; move a table with an empty level in its "
        "location",
    )
    MANIFEST_LIST_MISSING = _error(
        "manifest-list-missing", "the manifest list of a snapshot is gone, so the snapshot can't be read", _ROLL_BACK
    )
    MANIFEST_LIST_UNREADABLE = _error(
        "manifest-list-unreadable",
        "the manifest list of a snapshot is damaged, so the snapshot can't be read",
        _ROLL_BACK,
    )
    MANIFEST_FILE_MISSING = _error(
        "manifest-file-missing", "a manifest of a snapshot is gone: its files can't be found", _ROLL_BACK
    )
    MANIFEST_FILE_UNREADABLE = _error(
        "manifest-file-unreadable", "a manifest is damaged: its files can't be found", _ROLL_BACK
    )
    MANIFEST_FILE_FOREIGN = _error(
        "manifest-file-foreign", "a manifest has another length than in its manifest list", _ROLL_BACK
    )
    DATA_FILE_MISSING = _error("data-file-missing", "a data or delete file of a snapshot is gone", _ROLL_BACK)
    DATA_FILE_FOREIGN = _error(
        "data-file-foreign", "a data or delete file has another size than in its manifest", _ROLL_BACK
    )
    STATISTICS_MISSING = _warning(
        "statistics-missing",
        "a statistics file is gone: queries are planned without it",
        "compute the statistics again",
    )
    STATISTICS_FOREIGN = _warning(
        "statistics-foreign",
        "a statistics file has another size than in the table metadata",
        "compute the statistics again",
    )
    LOGGED_FILE_MISSING = _warning(
        "logged-file-missing",
        "an earlier metadata file in the table's log is gone: the table can't be rolled back to it",
        "restore the file, if the table may have to be rolled back to it",
    )
    LOGGED_FILE_UNREADABLE = _warning(
        "logged-file-unreadable",
        "an earlier metadata file in the table's log is damaged: the table can't be rolled back to it",
        "restore the file, if the table may have to be rolled back to it",
    )
    LOGGED_FILE_FOREIGN = _warning(
        "logged-file-foreign",
        "an earlier metadata file differs from the table's log in its time, or is of another table",
        "restore the file, if the table may have to be rolled back to it",
    )
    FILES_ELSEWHERE = _note(
        "files-elsewhere",
        "a table refers to files outside of its locations and of its borrowed folders: their owner may delete them",
        f"{_NONE}, unless a table at that location is to be purged: the purge would delete them",
    )
    FILES_OUT_OF_REACH = _note(
        "files-out-of-reach",
        "a table refers to files in no store of this catalog, or by names with an empty level ('//'), '.' or '..', for "
        "which it has no keys: they can't be checked",
        "set --allowed-location as for the servers; leave files with such names in place, and do not expire snapshots "
        "for them",
    )
    FILES_UNCHECKED = _error(
        "files-unchecked",
        "not all files of a table were checked: the task on Spark failed, or was killed",
        "run `arco fsck --data --table TABLE`, which reports the error",
    )
    RECEIPT_MISSING = _warning(
        "receipt-missing",
        "a commit has no committed receipt: its writer died before writing it, or the receipt is gone",
        "run `arco reconcile`; for a receipt that is gone, `arco fsck --repair --apply`",
        "writes it, as the reconciler does",
    )
    RECEIPT_UNREADABLE = _warning("receipt-unreadable", "a receipt is damaged", _RECEIPTS)
    RECEIPT_FOREIGN = _warning("receipt-foreign", "a receipt is of another commit than its key", _RECEIPTS)
    MARKER_UNREADABLE = _warning(
        "marker-unreadable",
        "a slot of an idempotency key's marker is damaged: retries with the key fail until it expires",
        _RESTORE,
    )
    MARKER_FOREIGN = _warning(
        "marker-foreign",
        "a slot is of another marker: it has the answer of an attempt that this key never made",
        _RESTORE,
    )
    MARKER_GAP = _warning(
        "marker-gap", "a slot of a marker is gone, and later ones exist: a retry could be executed twice", _RESTORE
    )
    TRANSACTION_UNREADABLE = _error(
        "transaction-unreadable",
        "a transaction's decision is damaged: tables that wait for it can't be written",
        _RESTORE,
    )
    TRANSACTION_FOREIGN = _error("transaction-foreign", "a transaction's decision is of another transaction", _RESTORE)
    TRANSACTION_UNDECIDED = _note(
        "transaction-undecided",
        "a transaction's coordinator died before its decision; the next write of one of its tables aborts it",
        f"{_NONE}, unless the object was restored to an older version: then restore the newest",
    )
    TRANSACTION_MISSING = _error(
        "transaction-missing",
        "a table or a name waits for a transaction whose decision is gone: it counts as aborted, even if it committed",
        "restore the object from an older version of it before a client writes the table or uses the name",
    )
    INTENT_LEFT = _note(
        "intent-left",
        "a name waits for a transaction that is decided: its coordinator died before it could settle the name",
        "none is needed: the next request for the name settles it, or `arco reconcile`",
        "settles the name by the decision",
    )
    CLAIM_MISSING = _warning(
        "claim-missing",
        "the file that a table or view was registered from has no claim: the table that created it may remove it",
        _RESTORE,
        "claims the file again, unless it was claimed for removal",
    )
    CLAIM_UNREADABLE = _warning(
        "claim-unreadable",
        "the claim on a metadata file is damaged: the file can be neither registered nor removed",
        _RESTORE,
    )
    CLAIM_FOREIGN = _warning("claim-foreign", "the claim on a metadata file is of another file", _RESTORE)
    ROLE_MISFIT = _error(
        "role-misfit",
        "the two entries of a grant, of a role's assignment or of an id differ: listed rights may not apply",
        "make the grant or the assignment again, or revoke it; and report it: this is a defect",
    )
    PAGE_KEY_UNREADABLE = _error(
        "page-key-unreadable",
        "the key that seals a realm's page tokens is damaged: listings end after their first page",
        "delete the object: the next listing creates another, and listings under way start again",
    )
    PROPOSAL_UNREADABLE = _error(
        "proposal-unreadable",
        "a proposal, or the bell that announces proposals, is damaged: proposed changes are delayed",
        "delete the object: the bell is made again, and the change of a proposal has to be made again",
    )
    CATALOG_MISSING = _error(
        "catalog-missing",
        "a catalog of the realm has no state: all of it is gone",
        "restore its folder from a backup, or drop the catalog",
    )
    CATALOG_OUT_OF_REACH = _warning(
        "catalog-out-of-reach",
        "a catalog of the realm was not checked: its locations are not allowed here",
        "set --allowed-location as for the servers",
    )
    CATALOG_STRAY = _note(
        "catalog-stray",
        "a folder has the state of a catalog without a name: it was dropped, or its creation did not finish",
        "none is needed; to bring the catalog back, run `arco catalogs undrop NAME --folder FOLDER`",
    )
    CATALOG_CLOSED = _warning(
        "catalog-closed",
        "a catalog with a name is closed: its drop or its undrop did not finish, and nothing can be created in it",
        "run `arco catalogs drop NAME` to finish the drop, or `arco catalogs undrop NAME` to take it back",
    )
    CATALOG_COPY = _note(
        "catalog-copy",
        "the catalog is a copy of another one, made by `arco restore --from`: it deletes no files",
        "none is needed; when the original no longer exists, run `arco adopt`",
    )
    CHECKPOINT_UNREADABLE = _note(
        "checkpoint-unreadable",
        "a record of reconcilers or purges about tables is damaged: the next one reads these tables from the beginning",
        _NONE,
    )
    FLOOR_UNREADABLE = _warning(
        "floor-unreadable",
        "the floor below which receipts or registry commits were collected is damaged: no more are collected",
        "delete it: collected receipts count as missing until `arco reconcile` has written them again, from metadata; "
        "`arco gc --delete` writes the floor of the registry again",
    )
    TASK_MISFIT = _error(
        "task-misfit",
        "a tombstone and the task of its purge do not refer to each other: the table is never purged",
        _REPORT,
    )
    TASK_MISSING = _error(
        "task-missing",
        "all versions of a task are gone, and its purge has begun: its checkpoint is lost",
        "stop all workers; restore the objects",
    )
    TASK_UNREADABLE = _error(
        "task-unreadable",
        "a version of a task is damaged: if it is the last, no worker can continue the task",
        _RESTORE,
    )
    TASK_FOREIGN = _error(
        "task-foreign",
        "a version of a task has another number or task than its key, or cannot follow the one before it",
        _RESTORE,
    )
    TASK_GAP = _warning(
        "task-gap",
        "a version of a task is gone, and later ones exist: a part of the task's history is lost",
        "none is needed; the object may be restored from an older version of it",
    )
    TASK_OLDER = _error(
        "task-older",
        "the newest versions of a task are gone: its tombstone names a later one",
        "stop all workers; restore the objects",
    )
    TASK_STRAY = _note(
        "task-stray",
        "a purge is due that the registry does not name: the drop was undone, or did not commit",
        "run `arco tasks run`, which ends it and deletes no file",
    )
    HINT_MISSING = _warning(
        "hint-missing",
        "a task that has not ended has no hint: no worker finds it",
        "run `arco fsck --repair --apply`, or `arco tasks run TASK`",
        "puts the hint again",
    )
    HINT_LEFT = _note(
        "hint-left",
        "a task that has ended has a hint",
        "none is needed: the next worker that meets it removes it",
        "removes the hint",
    )
    HINT_STRAY = _note(
        "hint-stray",
        "a hint has no task, and the registry names none: the drop did not commit",
        "none is needed: the next worker that meets it removes it",
    )
    TOMBSTONE_OLDER = _error(
        "tombstone-older",
        "the registry has a purge that is not done, and its task has succeeded: HEAD is an older version",
        "stop all writers; restore the newest version of manifest.json",
    )
    PURGE_FAILED = _warning(
        "purge-failed",
        "a purge failed after it may have deleted files: no table can be created at the location",
        "run `arco tasks show TASK` for the reason, then `arco tasks retry TASK`",
    )
    FEED_UNREADABLE = _error(
        "feed-unreadable",
        "a segment of the event feed, the cursors or the floor can't be read: the feed ends there, or does not grow",
        "restore the object from an older version of it, or from a backup; cursors may be deleted, and a gap in the "
        "feed shows changes that are lost by that",
    )
    FEED_GAP = _error(
        "feed-gap",
        "a segment of the event feed is gone, and later ones exist: consumers do not get what comes after it",
        _RESTORE,
    )
    OBJECT_UNKNOWN = _warning(
        "object-unknown",
        "an object with a key that no version of the catalog writes",
        "find its writer: the catalog alone should have the right to write there",
    )
