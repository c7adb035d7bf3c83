"""What each code of a check means, and what mends it: the table in docs/fsck.md."""

from collections.abc import Mapping

from arco_catalog.upkeep.fsck.codes import Code, Diagnosis, Severity

_RESTORE = "restore the object from an older version of it, or from a backup"
_NONE = "none is needed"
_ROLL_BACK = "restore the file; or expire the snapshot, or roll the table back to another"
_REPORT = "report it: this is a fault"
_RECEIPTS = (
    "delete it and the reconciler's checkpoints (operational/reconciler/), then run `arco reconcile`: it writes "
    "committed ones again"
)

DIAGNOSES: Mapping[Code, Diagnosis] = {
    Code.MANIFEST_MISSING: Diagnosis(
        Severity.ERROR,
        "HEAD of the registry is gone, so no name can be resolved; the commits that led to it are there",
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
        "stop all writers, then run `arco restore --head COMMIT --replace` with the commit that the finding names",
    ),
    Code.COMMIT_UNCONFIRMED: Diagnosis(
        Severity.WARNING,
        "a commit was built on HEAD, and nothing tells whether it became HEAD: its writer died before the swap, or "
        "HEAD is an older one",
        f"{_NONE} unless manifest.json was restored; then compare the commit with what clients know",
    ),
    Code.COMMIT_MISSING: Diagnosis(
        Severity.WARNING,
        "a commit of the registry's history is gone: late retries that ask whether they committed get no answer, pages "
        "that were begun on it end",
        "of HEAD itself: copy manifest.json to this key; of an older one: restore it",
        "of HEAD itself: writes it again from manifest.json",
    ),
    Code.COMMIT_UNREADABLE: Diagnosis(Severity.WARNING, "a commit of the registry's history is damaged", _RESTORE),
    Code.COMMIT_FOREIGN: Diagnosis(
        Severity.WARNING, "a commit is not the one that its key names, or HEAD's differs from HEAD", _RESTORE
    ),
    Code.SEGMENT_MISSING: Diagnosis(
        Severity.ERROR, "a part of the registry's index is gone: the names in it can't be resolved", _RESTORE
    ),
    Code.SEGMENT_UNREADABLE: Diagnosis(
        Severity.ERROR, "a part of the registry's index is damaged: the names in it can't be resolved", _RESTORE
    ),
    Code.SEGMENT_FOREIGN: Diagnosis(
        Severity.ERROR, "a part of the registry's index is not what HEAD says of it in size, order or range", _RESTORE
    ),
    Code.ENTRY_UNREADABLE: Diagnosis(
        Severity.ERROR, "an entry of the registry's index lacks what such an entry has", _REPORT
    ),
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
        Severity.ERROR, "the properties of a namespace are not those that were written there, by their digest", _RESTORE
    ),
    Code.HOLD_MISSING: Diagnosis(
        Severity.ERROR,
        "a table's location is not kept for it: another table could be made in it",
        _REPORT,
    ),
    Code.HOLD_STRAY: Diagnosis(
        Severity.WARNING,
        "a location is kept for something that has no name: nothing can be made in it",
        _REPORT,
    ),
    Code.LOAN_MISFIT: Diagnosis(
        Severity.ERROR,
        "the entry of a table and the list of borrowed folders do not tell alike what it takes from elsewhere: a purge "
        "there may take its files",
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
        "a pointer is that of another table or view",
        "stop all writers of the table, then run `arco restore`",
    ),
    Code.POINTER_OLDER: Diagnosis(
        Severity.ERROR,
        "a pointer is an older one: a commit is known to have replaced the file that it names",
        "stop all writers of the table; restore the newest version of the object, or run "
        "`arco restore --pointer ENTITY=FILE --replace` with the newest file that `arco receipts` lists",
    ),
    Code.POINTER_STRAY: Diagnosis(
        Severity.NOTE, "a pointer to which no name leads: a create or a register that died", _NONE
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
        "the current metadata file of a table or view is not what was committed: its pointer tells other facts of it",
        "restore the file that belongs there",
    ),
    Code.METADATA_OUT_OF_REACH: Diagnosis(
        Severity.WARNING,
        "the current metadata file lies in no store of this catalog, is larger than it reads, or has a name with an "
        "empty level ('//'), for which it has no key",
        "give --allowed-location and ARCO_MAX_METADATA as the servers have them; give a table with an empty level in "
        "its location another one",
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
        Severity.ERROR, "a manifest is gone that a snapshot needs: what it names can't be read", _ROLL_BACK
    ),
    Code.MANIFEST_FILE_UNREADABLE: Diagnosis(
        Severity.ERROR, "a manifest is damaged: what it names can't be read", _ROLL_BACK
    ),
    Code.MANIFEST_FILE_FOREIGN: Diagnosis(
        Severity.ERROR, "a manifest has another length than its manifest list says", _ROLL_BACK
    ),
    Code.DATA_FILE_MISSING: Diagnosis(
        Severity.ERROR, "a data or delete file is gone that a snapshot needs", _ROLL_BACK
    ),
    Code.DATA_FILE_FOREIGN: Diagnosis(
        Severity.ERROR, "a data or delete file has another size than its manifest says", _ROLL_BACK
    ),
    Code.STATISTICS_MISSING: Diagnosis(
        Severity.WARNING, "a statistics file is gone: queries are planned without it", "compute the statistics again"
    ),
    Code.STATISTICS_FOREIGN: Diagnosis(
        Severity.WARNING,
        "a statistics file has another size than the table's metadata says",
        "compute the statistics again",
    ),
    Code.LOGGED_FILE_MISSING: Diagnosis(
        Severity.WARNING,
        "an earlier metadata file is gone that the table's log names: nobody can go back to it",
        "restore the file, if its time may be needed",
    ),
    Code.LOGGED_FILE_UNREADABLE: Diagnosis(
        Severity.WARNING,
        "an earlier metadata file that the table's log names is damaged: nobody can go back to it",
        "restore the file, if its time may be needed",
    ),
    Code.LOGGED_FILE_FOREIGN: Diagnosis(
        Severity.WARNING,
        "an earlier metadata file is not the one that the table's log tells of, by its time or its table",
        "restore the file, if its time may be needed",
    ),
    Code.FILES_ELSEWHERE: Diagnosis(
        Severity.NOTE,
        "a table names files outside of its locations, and of what the registry says that it borrows: whose they "
        "are may delete them",
        f"{_NONE}, unless a purge of what lies there is wanted: that would take them from this table",
    ),
    Code.FILES_OUT_OF_REACH: Diagnosis(
        Severity.NOTE,
        "a table names files in no store of this catalog, or by names with an empty level ('//'), '.' or '..', for "
        "which it has no keys: they can't be checked",
        "give --allowed-location as the servers have it; leave files with such names in place, and do not expire "
        "snapshots for them",
    ),
    Code.FILES_UNCHECKED: Diagnosis(
        Severity.ERROR,
        "not all files of a table were looked at: the task on Spark that did so failed, or was killed",
        "run `arco fsck --data --table TABLE`, which says what it fails at",
    ),
    Code.RECEIPT_MISSING: Diagnosis(
        Severity.WARNING,
        "a commit has no committed receipt: its writer died before it, or the receipt is gone",
        "run `arco reconcile`; of a receipt that is gone, `arco fsck --repair --apply`",
        "writes it, as the reconciler does",
    ),
    Code.RECEIPT_UNREADABLE: Diagnosis(
        Severity.WARNING,
        "a receipt is damaged",
        _RECEIPTS,
    ),
    Code.RECEIPT_FOREIGN: Diagnosis(
        Severity.WARNING,
        "a receipt is not the one that its key names",
        _RECEIPTS,
    ),
    Code.MARKER_UNREADABLE: Diagnosis(
        Severity.WARNING,
        "a slot of an idempotency key's marker is damaged: retries with the key fail until it expires",
        _RESTORE,
    ),
    Code.MARKER_FOREIGN: Diagnosis(
        Severity.WARNING,
        "a slot of a marker is that of another: its answer is of an attempt which this key never made",
        _RESTORE,
    ),
    Code.MARKER_GAP: Diagnosis(
        Severity.WARNING,
        "a slot of a marker is gone, with later ones there: a retry could be carried out twice",
        _RESTORE,
    ),
    Code.TRANSACTION_UNREADABLE: Diagnosis(
        Severity.ERROR, "a transaction's decision is damaged: tables that wait for it can't be written", _RESTORE
    ),
    Code.TRANSACTION_FOREIGN: Diagnosis(
        Severity.ERROR, "a transaction's decision is that of another transaction", _RESTORE
    ),
    Code.TRANSACTION_UNDECIDED: Diagnosis(
        Severity.NOTE,
        "a transaction's coordinator died before its decision; the next write of one of its tables aborts it",
        f"{_NONE}, unless the object was restored to an older version: then restore the newest",
    ),
    Code.TRANSACTION_MISSING: Diagnosis(
        Severity.ERROR,
        "a table or a name waits for a transaction whose decision is gone: it counts as aborted, whatever it was",
        "restore the object from an older version of it before anybody writes the table or uses the name",
    ),
    Code.INTENT_LEFT: Diagnosis(
        Severity.NOTE,
        "a name waits for a transaction that is decided: its coordinator died before it could settle the name",
        "none is needed: the next request for the name settles it, or `arco reconcile`",
        "settles the name as the decision says",
    ),
    Code.CLAIM_MISSING: Diagnosis(
        Severity.WARNING,
        "nothing keeps the file that a table or view was registered from: the table that made it may remove it",
        _RESTORE,
        "claims the file again, unless it was claimed for its removal",
    ),
    Code.CLAIM_UNREADABLE: Diagnosis(
        Severity.WARNING,
        "the claim on a metadata file is damaged: the file can be neither registered nor removed",
        _RESTORE,
    ),
    Code.CLAIM_FOREIGN: Diagnosis(Severity.WARNING, "the claim on a metadata file is that of another file", _RESTORE),
    Code.ROLE_MISFIT: Diagnosis(
        Severity.ERROR,
        "a grant, or who has a role or an id, is not told alike from both sides: what is listed may not hold",
        "make the grant or the assignment again, or end it; and report it: this is a fault",
    ),
    Code.PAGE_KEY_UNREADABLE: Diagnosis(
        Severity.ERROR,
        "what a realm seals page tokens with is damaged: no listing gets beyond its first page",
        "delete the object: the next listing makes another, and those under way begin anew",
    ),
    Code.CATALOG_MISSING: Diagnosis(
        Severity.ERROR,
        "a catalog of the realm has no state: all of it is gone",
        "restore its folder from a backup, or drop the catalog",
    ),
    Code.CATALOG_OUT_OF_REACH: Diagnosis(
        Severity.WARNING,
        "a catalog of the realm was not checked: its locations are not allowed here",
        "give --allowed-location as the servers have it",
    ),
    Code.CATALOG_STRAY: Diagnosis(
        Severity.NOTE,
        "a folder holds the state of a catalog that has no name: it was dropped, or its making died",
        "none is needed; to bring the catalog back, run `arco catalogs undrop NAME --folder FOLDER`",
    ),
    Code.CATALOG_COPY: Diagnosis(
        Severity.NOTE,
        "the catalog is a copy of another one, made by `arco restore --from`: it deletes no files",
        "none is needed; when the original no longer exists, run `arco adopt`",
    ),
    Code.CHECKPOINT_UNREADABLE: Diagnosis(
        Severity.NOTE, "what reconcilers or purges remember of tables is damaged: they read once more", _NONE
    ),
    Code.FLOOR_UNREADABLE: Diagnosis(
        Severity.WARNING,
        "what says up to where receipts, or commits of the registry, were collected is damaged: no more are collected",
        "delete it: what was collected is missed until `arco reconcile` has written receipts again, from metadata, or "
        "`arco gc --delete` the floor of the registry",
    ),
    Code.TASK_MISFIT: Diagnosis(
        Severity.ERROR,
        "a tombstone and the task that is to purge it do not lead to each other: the table is never purged",
        _REPORT,
    ),
    Code.TASK_MISSING: Diagnosis(
        Severity.ERROR,
        "all versions of a task are gone, and its purge has begun: how far it came is not known any more",
        "stop all workers; restore the objects",
    ),
    Code.TASK_UNREADABLE: Diagnosis(
        Severity.ERROR,
        "a version of a task is damaged: if it is the last, nobody can go on with the task",
        _RESTORE,
    ),
    Code.TASK_FOREIGN: Diagnosis(
        Severity.ERROR,
        "a version of a task is not the one that its key names, or cannot follow the one before it",
        _RESTORE,
    ),
    Code.TASK_GAP: Diagnosis(
        Severity.WARNING,
        "a version of a task is gone, with later ones there: what happened in between can't be told any more",
        "none is needed; the object may be restored from an older version of it",
    ),
    Code.TASK_OLDER: Diagnosis(
        Severity.ERROR,
        "the newest versions of a task are gone: its tombstone names a later one",
        "stop all workers; restore the objects",
    ),
    Code.TASK_STRAY: Diagnosis(
        Severity.NOTE,
        "a purge is due that the registry does not name (any more): the drop was undone, or never made",
        "run `arco tasks run`, which ends it without deleting anything",
    ),
    Code.HINT_MISSING: Diagnosis(
        Severity.WARNING,
        "no hint leads to a task that has not ended: nobody will find it",
        "run `arco fsck --repair --apply`, or `arco tasks run TASK`",
        "puts the hint again",
    ),
    Code.HINT_LEFT: Diagnosis(
        Severity.NOTE,
        "a hint leads to a task that has ended",
        "none is needed: the next worker that meets it removes it",
        "removes the hint",
    ),
    Code.HINT_STRAY: Diagnosis(
        Severity.NOTE,
        "a hint leads to no task, and the registry names none: a drop that did not commit",
        "none is needed: the next worker that meets it removes it",
    ),
    Code.TOMBSTONE_OLDER: Diagnosis(
        Severity.ERROR,
        "the registry tells of a purge that is yet to be done, and its task has succeeded: HEAD is an older one",
        "stop all writers; restore the newest version of manifest.json",
    ),
    Code.PURGE_FAILED: Diagnosis(
        Severity.WARNING,
        "a purge failed after it may have deleted files: nothing else can be made at the table's location",
        "look why with `arco tasks show TASK`; then run `arco tasks retry TASK`",
    ),
    Code.OBJECT_UNKNOWN: Diagnosis(
        Severity.WARNING,
        "an object that no version of the catalog writes there",
        "find out who wrote it: nobody but the catalog should have that right",
    ),
}
"""What each code means."""
