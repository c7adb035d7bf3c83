"""The meaning and the remedy of each code of a check: the table in docs/fsck.md."""

from collections.abc import Mapping

from arco_catalog.upkeep.fsck.codes import Code, Diagnosis, Severity

_RESTORE = "restore the object from an older version of it, or from a backup"
_NONE = "none is needed"
_ROLL_BACK = "restore the file; or expire the snapshot, or roll the table back to another"
_REPORT = "report it: this is a defect"
_RECEIPTS = (
    "delete it and the reconciler's checkpoints (operational/reconciler/), then run `arco reconcile`: it writes "
    "committed ones again"
)

DIAGNOSES: Mapping[Code, Diagnosis] = {
    Code.MANIFEST_MISSING: Diagnosis(
        Severity.ERROR,
        "HEAD of the registry is gone, so no name can be resolved; the commits of its history exist",
        "stop all writers, then run `arco restore` (of a realm: `arco restore --realm-registry`)",
    ),
    Code.MANIFEST_UNREADABLE: Diagnosis(
        Severity.ERROR,
        "HEAD of the registry is damaged, so no name can be resolved",
        "stop all writers, then run `arco restore` (of a realm: `arco restore --realm-registry`)",
    ),
    Code.MANIFEST_OLDER: Diagnosis(
        Severity.ERROR,
        "HEAD is an older one: a later commit is known to have been HEAD",
        "stop all writers, then run `arco restore --head COMMIT --replace` with the last of the commits that the "
        "finding names whose change clients know",
    ),
    Code.COMMIT_UNCONFIRMED: Diagnosis(
        Severity.WARNING,
        "a commit is a child of HEAD, and no record proves whether it became HEAD: its writer died before the swap, or "
        "HEAD is an older one",
        f"{_NONE} unless manifest.json was restored; then compare the commit with what clients know",
    ),
    Code.COMMIT_MISSING: Diagnosis(
        Severity.WARNING,
        "a commit of the registry's history is gone: the outcome of late retries stays unknown, and listings that "
        "began on it end",
        "for HEAD itself: copy manifest.json to this key; for an older one: restore it",
        "for HEAD itself: writes it again from manifest.json",
    ),
    Code.COMMIT_UNREADABLE: Diagnosis(Severity.WARNING, "a commit of the registry's history is damaged", _RESTORE),
    Code.COMMIT_FOREIGN: Diagnosis(
        Severity.WARNING,
        "a commit object has another id than its key, or that of HEAD differs from HEAD",
        _RESTORE,
    ),
    Code.COMMIT_CANCELLED: Diagnosis(
        Severity.ERROR,
        "HEAD lists one operation as committed and as cancelled: a client may have got a failure",
        _REPORT,
    ),
    Code.SEGMENT_MISSING: Diagnosis(
        Severity.ERROR, "a part of the registry's index is gone: the names in it can't be resolved", _RESTORE
    ),
    Code.SEGMENT_UNREADABLE: Diagnosis(
        Severity.ERROR, "a part of the registry's index is damaged: the names in it can't be resolved", _RESTORE
    ),
    Code.SEGMENT_FOREIGN: Diagnosis(
        Severity.ERROR, "a part of the registry's index differs from HEAD in its size, order or range", _RESTORE
    ),
    Code.ENTRY_UNREADABLE: Diagnosis(Severity.ERROR, "an entry of the registry's index lacks a field", _REPORT),
    Code.PARENT_MISSING: Diagnosis(
        Severity.ERROR,
        "a name lies in a namespace that does not exist, so it can't be listed",
        "make the namespace again",
    ),
    Code.VALUE_MISSING: Diagnosis(
        Severity.ERROR,
        "the properties of a namespace are gone, so it can't be loaded",
        'restore the object, or write one: {"version":1,"properties":{}}',
    ),
    Code.VALUE_UNREADABLE: Diagnosis(
        Severity.ERROR,
        "the properties of a namespace are damaged, so it can't be loaded",
        'restore the object, or write one: {"version":1,"properties":{}}',
    ),
    Code.VALUE_FOREIGN: Diagnosis(
        Severity.ERROR, "the properties of a namespace differ from the digest in their key", _RESTORE
    ),
    Code.HOLD_MISSING: Diagnosis(
        Severity.ERROR,
        "a table's location is not reserved for it: another table could be created there",
        _REPORT,
    ),
    Code.HOLD_STRAY: Diagnosis(
        Severity.WARNING,
        "a location is reserved for an entity without a name: no table can be created there",
        _REPORT,
    ),
    Code.LOAN_MISFIT: Diagnosis(
        Severity.ERROR,
        "the entry of a table and the list of borrowed folders differ: a purge of a folder's owner may delete files of "
        "the table",
        _REPORT,
    ),
    Code.POINTER_MISSING: Diagnosis(
        Severity.ERROR,
        "the pointer of a table or view is gone: it can be neither read nor written",
        "stop all writers of the table, then run `arco restore`",
    ),
    Code.POINTER_UNREADABLE: Diagnosis(
        Severity.ERROR,
        "the pointer of a table or view is damaged: it can be neither read nor written",
        "stop all writers of the table, then run `arco restore`",
    ),
    Code.POINTER_FOREIGN: Diagnosis(
        Severity.ERROR,
        "a pointer object is of another table or view",
        "stop all writers of the table, then run `arco restore`",
    ),
    Code.POINTER_OLDER: Diagnosis(
        Severity.ERROR,
        "a pointer is an older version: a commit is known to have replaced its metadata file",
        "stop all writers of the table; restore the newest version of the object, or run "
        "`arco restore --pointer ENTITY=FILE --replace` with the newest file that `arco receipts` lists",
    ),
    Code.POINTER_STRAY: Diagnosis(
        Severity.NOTE, "a pointer without a name: the create or registration did not finish", _NONE
    ),
    Code.METADATA_MISSING: Diagnosis(
        Severity.ERROR,
        "the current metadata file of a table or view is gone, so it can't be loaded",
        "restore the file; or drop the table and register an older file (`arco receipts` lists them)",
    ),
    Code.METADATA_UNREADABLE: Diagnosis(
        Severity.ERROR,
        "the current metadata file of a table or view is damaged, so it can't be loaded",
        "restore the file; or drop the table and register an older file (`arco receipts` lists them)",
    ),
    Code.METADATA_FOREIGN: Diagnosis(
        Severity.ERROR,
        "the current metadata file of a table or view is not the committed one: it differs from its pointer",
        "restore the committed file",
    ),
    Code.METADATA_OUT_OF_REACH: Diagnosis(
        Severity.WARNING,
        "the current metadata file is in no store of this catalog, is larger than its maximum, or has a name with an "
        "empty level ('//'), for which it has no key",
        "set --allowed-location and ARCO_MAX_METADATA as for the servers; move a table with an empty level in its "
        "location",
    ),
    Code.MANIFEST_LIST_MISSING: Diagnosis(
        Severity.ERROR,
        "the manifest list of a snapshot is gone, so the snapshot can't be read",
        _ROLL_BACK,
    ),
    Code.MANIFEST_LIST_UNREADABLE: Diagnosis(
        Severity.ERROR, "the manifest list of a snapshot is damaged, so the snapshot can't be read", _ROLL_BACK
    ),
    Code.MANIFEST_FILE_MISSING: Diagnosis(
        Severity.ERROR, "a manifest of a snapshot is gone: its files can't be found", _ROLL_BACK
    ),
    Code.MANIFEST_FILE_UNREADABLE: Diagnosis(
        Severity.ERROR, "a manifest is damaged: its files can't be found", _ROLL_BACK
    ),
    Code.MANIFEST_FILE_FOREIGN: Diagnosis(
        Severity.ERROR, "a manifest has another length than in its manifest list", _ROLL_BACK
    ),
    Code.DATA_FILE_MISSING: Diagnosis(Severity.ERROR, "a data or delete file of a snapshot is gone", _ROLL_BACK),
    Code.DATA_FILE_FOREIGN: Diagnosis(
        Severity.ERROR, "a data or delete file has another size than in its manifest", _ROLL_BACK
    ),
    Code.STATISTICS_MISSING: Diagnosis(
        Severity.WARNING, "a statistics file is gone: queries are planned without it", "compute the statistics again"
    ),
    Code.STATISTICS_FOREIGN: Diagnosis(
        Severity.WARNING,
        "a statistics file has another size than in the table metadata",
        "compute the statistics again",
    ),
    Code.LOGGED_FILE_MISSING: Diagnosis(
        Severity.WARNING,
        "an earlier metadata file in the table's log is gone: the table can't be rolled back to it",
        "restore the file, if its time may be needed",
    ),
    Code.LOGGED_FILE_UNREADABLE: Diagnosis(
        Severity.WARNING,
        "an earlier metadata file in the table's log is damaged: the table can't be rolled back to it",
        "restore the file, if its time may be needed",
    ),
    Code.LOGGED_FILE_FOREIGN: Diagnosis(
        Severity.WARNING,
        "an earlier metadata file differs from the table's log in its time, or is of another table",
        "restore the file, if its time may be needed",
    ),
    Code.FILES_ELSEWHERE: Diagnosis(
        Severity.NOTE,
        "a table refers to files outside of its locations and of its borrowed folders: their owner may delete them",
        f"{_NONE}, unless a table at that location is to be purged: the purge would delete them",
    ),
    Code.FILES_OUT_OF_REACH: Diagnosis(
        Severity.NOTE,
        "a table refers to files in no store of this catalog, or by names with an empty level ('//'), '.' or '..', for "
        "which it has no keys: they can't be checked",
        "set --allowed-location as for the servers; leave files with such names in place, and do not expire snapshots "
        "for them",
    ),
    Code.FILES_UNCHECKED: Diagnosis(
        Severity.ERROR,
        "not all files of a table were checked: the task on Spark failed, or was killed",
        "run `arco fsck --data --table TABLE`, which reports the error",
    ),
    Code.RECEIPT_MISSING: Diagnosis(
        Severity.WARNING,
        "a commit has no committed receipt: its writer died before writing it, or the receipt is gone",
        "run `arco reconcile`; for a receipt that is gone, `arco fsck --repair --apply`",
        "writes it, as the reconciler does",
    ),
    Code.RECEIPT_UNREADABLE: Diagnosis(
        Severity.WARNING,
        "a receipt is damaged",
        _RECEIPTS,
    ),
    Code.RECEIPT_FOREIGN: Diagnosis(
        Severity.WARNING,
        "a receipt is of another commit than its key",
        _RECEIPTS,
    ),
    Code.MARKER_UNREADABLE: Diagnosis(
        Severity.WARNING,
        "a slot of an idempotency key's marker is damaged: retries with the key fail until it expires",
        _RESTORE,
    ),
    Code.MARKER_FOREIGN: Diagnosis(
        Severity.WARNING,
        "a slot is of another marker: it has the answer of an attempt that this key never made",
        _RESTORE,
    ),
    Code.MARKER_GAP: Diagnosis(
        Severity.WARNING,
        "a slot of a marker is gone, and later ones exist: a retry could be executed twice",
        _RESTORE,
    ),
    Code.TRANSACTION_UNREADABLE: Diagnosis(
        Severity.ERROR, "a transaction's decision is damaged: tables that wait for it can't be written", _RESTORE
    ),
    Code.TRANSACTION_FOREIGN: Diagnosis(Severity.ERROR, "a transaction's decision is of another transaction", _RESTORE),
    Code.TRANSACTION_UNDECIDED: Diagnosis(
        Severity.NOTE,
        "a transaction's coordinator died before its decision; the next write of one of its tables aborts it",
        f"{_NONE}, unless the object was restored to an older version: then restore the newest",
    ),
    Code.TRANSACTION_MISSING: Diagnosis(
        Severity.ERROR,
        "a table or a name waits for a transaction whose decision is gone: it counts as aborted, even if it committed",
        "restore the object from an older version of it before a client writes the table or uses the name",
    ),
    Code.INTENT_LEFT: Diagnosis(
        Severity.NOTE,
        "a name waits for a transaction that is decided: its coordinator died before it could settle the name",
        "none is needed: the next request for the name settles it, or `arco reconcile`",
        "settles the name by the decision",
    ),
    Code.CLAIM_MISSING: Diagnosis(
        Severity.WARNING,
        "the file that a table or view was registered from has no claim: the table that created it may remove it",
        _RESTORE,
        "claims the file again, unless it was claimed for removal",
    ),
    Code.CLAIM_UNREADABLE: Diagnosis(
        Severity.WARNING,
        "the claim on a metadata file is damaged: the file can be neither registered nor removed",
        _RESTORE,
    ),
    Code.CLAIM_FOREIGN: Diagnosis(Severity.WARNING, "the claim on a metadata file is of another file", _RESTORE),
    Code.ROLE_MISFIT: Diagnosis(
        Severity.ERROR,
        "the two entries of a grant, of a role's assignment or of an id differ: listed rights may not apply",
        "make the grant or the assignment again, or revoke it; and report it: this is a defect",
    ),
    Code.PAGE_KEY_UNREADABLE: Diagnosis(
        Severity.ERROR,
        "the key that seals a realm's page tokens is damaged: listings end after their first page",
        "delete the object: the next listing creates another, and listings under way start again",
    ),
    Code.CATALOG_MISSING: Diagnosis(
        Severity.ERROR,
        "a catalog of the realm has no state: all of it is gone",
        "restore its folder from a backup, or drop the catalog",
    ),
    Code.CATALOG_OUT_OF_REACH: Diagnosis(
        Severity.WARNING,
        "a catalog of the realm was not checked: its locations are not allowed here",
        "set --allowed-location as for the servers",
    ),
    Code.CATALOG_STRAY: Diagnosis(
        Severity.NOTE,
        "a folder has the state of a catalog without a name: it was dropped, or its creation did not finish",
        "none is needed; to bring the catalog back, run `arco catalogs undrop NAME --folder FOLDER`",
    ),
    Code.CATALOG_CLOSED: Diagnosis(
        Severity.WARNING,
        "a catalog with a name is closed: its drop or its undrop did not finish, and nothing can be created in it",
        "run `arco catalogs drop NAME` to finish the drop, or `arco catalogs undrop NAME` to take it back",
    ),
    Code.CATALOG_COPY: Diagnosis(
        Severity.NOTE,
        "the catalog is a copy of another one, made by `arco restore --from`: it deletes no files",
        "none is needed; when the original no longer exists, run `arco adopt`",
    ),
    Code.CHECKPOINT_UNREADABLE: Diagnosis(
        Severity.NOTE,
        "records of reconcilers or purges about tables are damaged: they read these again",
        _NONE,
    ),
    Code.FLOOR_UNREADABLE: Diagnosis(
        Severity.WARNING,
        "the floor below which receipts or registry commits were collected is damaged: no more are collected",
        "delete it: collected receipts count as missing until `arco reconcile` has written them again, from metadata; "
        "`arco gc --delete` writes the floor of the registry again",
    ),
    Code.TASK_MISFIT: Diagnosis(
        Severity.ERROR,
        "a tombstone and the task of its purge do not refer to each other: the table is never purged",
        _REPORT,
    ),
    Code.TASK_MISSING: Diagnosis(
        Severity.ERROR,
        "all versions of a task are gone, and its purge has begun: its checkpoint is lost",
        "stop all workers; restore the objects",
    ),
    Code.TASK_UNREADABLE: Diagnosis(
        Severity.ERROR,
        "a version of a task is damaged: if it is the last, no worker can continue the task",
        _RESTORE,
    ),
    Code.TASK_FOREIGN: Diagnosis(
        Severity.ERROR,
        "a version of a task has another number or task than its key, or cannot follow the one before it",
        _RESTORE,
    ),
    Code.TASK_GAP: Diagnosis(
        Severity.WARNING,
        "a version of a task is gone, and later ones exist: a part of the task's history is lost",
        "none is needed; the object may be restored from an older version of it",
    ),
    Code.TASK_OLDER: Diagnosis(
        Severity.ERROR,
        "the newest versions of a task are gone: its tombstone names a later one",
        "stop all workers; restore the objects",
    ),
    Code.TASK_STRAY: Diagnosis(
        Severity.NOTE,
        "a purge is due that the registry does not name: the drop was undone, or did not commit",
        "run `arco tasks run`, which ends it and deletes no file",
    ),
    Code.HINT_MISSING: Diagnosis(
        Severity.WARNING,
        "a task that has not ended has no hint: no worker finds it",
        "run `arco fsck --repair --apply`, or `arco tasks run TASK`",
        "puts the hint again",
    ),
    Code.HINT_LEFT: Diagnosis(
        Severity.NOTE,
        "a task that has ended has a hint",
        "none is needed: the next worker that meets it removes it",
        "removes the hint",
    ),
    Code.HINT_STRAY: Diagnosis(
        Severity.NOTE,
        "a hint has no task, and the registry names none: the drop did not commit",
        "none is needed: the next worker that meets it removes it",
    ),
    Code.TOMBSTONE_OLDER: Diagnosis(
        Severity.ERROR,
        "the registry has a purge that is not done, and its task has succeeded: HEAD is an older version",
        "stop all writers; restore the newest version of manifest.json",
    ),
    Code.PURGE_FAILED: Diagnosis(
        Severity.WARNING,
        "a purge failed after it may have deleted files: no table can be created at the location",
        "run `arco tasks show TASK` for the reason, then `arco tasks retry TASK`",
    ),
    Code.OBJECT_UNKNOWN: Diagnosis(
        Severity.WARNING,
        "an object with a key that no version of the catalog writes",
        "find its writer: the catalog alone should have the right to write there",
    ),
}
"""The diagnosis of each code."""
