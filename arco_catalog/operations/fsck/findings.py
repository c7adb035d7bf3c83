"""What a check of a catalog may find: a code for each inconsistency, what it means and what mends it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from arco_catalog.iceberg.json import JsonObject


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """Something that a client may ask for can't be read, or is not what was committed."""
    WARNING = "warning"
    """Nothing is lost to clients; something else is, or may be."""
    NOTE = "note"
    """Left behind by something that died. It takes room."""


class Code(StrEnum):
    """One kind of inconsistency each. The names are public: scripts go by them."""

    MANIFEST_MISSING = "manifest-missing"
    MANIFEST_UNREADABLE = "manifest-unreadable"
    MANIFEST_OLDER = "manifest-older"
    COMMIT_UNCONFIRMED = "commit-unconfirmed"
    COMMIT_MISSING = "commit-missing"
    COMMIT_UNREADABLE = "commit-unreadable"
    COMMIT_FOREIGN = "commit-foreign"
    SEGMENT_MISSING = "segment-missing"
    SEGMENT_UNREADABLE = "segment-unreadable"
    SEGMENT_FOREIGN = "segment-foreign"
    ENTRY_UNREADABLE = "entry-unreadable"
    PARENT_MISSING = "parent-missing"
    VALUE_MISSING = "value-missing"
    VALUE_UNREADABLE = "value-unreadable"
    VALUE_FOREIGN = "value-foreign"
    HOLD_MISSING = "hold-missing"
    HOLD_STRAY = "hold-stray"
    POINTER_MISSING = "pointer-missing"
    POINTER_UNREADABLE = "pointer-unreadable"
    POINTER_FOREIGN = "pointer-foreign"
    POINTER_OLDER = "pointer-older"
    POINTER_STRAY = "pointer-stray"
    METADATA_MISSING = "metadata-missing"
    METADATA_UNREADABLE = "metadata-unreadable"
    METADATA_FOREIGN = "metadata-foreign"
    METADATA_OUT_OF_REACH = "metadata-out-of-reach"
    MANIFEST_LIST_MISSING = "manifest-list-missing"
    RECEIPT_MISSING = "receipt-missing"
    RECEIPT_UNREADABLE = "receipt-unreadable"
    RECEIPT_FOREIGN = "receipt-foreign"
    MARKER_UNREADABLE = "marker-unreadable"
    MARKER_FOREIGN = "marker-foreign"
    MARKER_GAP = "marker-gap"
    TRANSACTION_UNREADABLE = "transaction-unreadable"
    TRANSACTION_FOREIGN = "transaction-foreign"
    TRANSACTION_UNDECIDED = "transaction-undecided"
    CLAIM_MISSING = "claim-missing"
    CLAIM_UNREADABLE = "claim-unreadable"
    CLAIM_FOREIGN = "claim-foreign"
    CHECKPOINT_UNREADABLE = "checkpoint-unreadable"
    OBJECT_UNKNOWN = "object-unknown"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a code means, and what to do."""

    severity: Severity
    meaning: str
    remedy: str


_RESTORE = "restore the object from an older version of it, or from a backup"
_NONE = "none is needed"
_RECEIPTS = (
    "delete it and the reconciler's checkpoints (operational/reconciler/), then run `arco reconcile`: it writes "
    "committed ones again"
)

DIAGNOSES: Mapping[Code, Diagnosis] = {
    Code.MANIFEST_MISSING: Diagnosis(
        Severity.ERROR,
        "HEAD of the registry is gone, so no name can be resolved; the commits that led to it are there",
        "stop all writers; restore the newest version of the object, or copy the commit that the finding names over it",
    ),
    Code.MANIFEST_UNREADABLE: Diagnosis(
        Severity.ERROR,
        "HEAD of the registry is damaged, so no name can be resolved",
        "stop all writers; restore the newest readable version, or copy the commit that the finding names over it",
    ),
    Code.MANIFEST_OLDER: Diagnosis(
        Severity.ERROR,
        "HEAD is an older one: a later commit is known to have been HEAD",
        "stop all writers; copy the commit that the finding names over manifest.json",
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
        Severity.ERROR, "an entry of the registry's index lacks what such an entry has", "report it: this is a fault"
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
        "report it: this is a fault",
    ),
    Code.HOLD_STRAY: Diagnosis(
        Severity.WARNING,
        "a location is kept for something that has no name: nothing can be made in it",
        "report it: this is a fault",
    ),
    Code.POINTER_MISSING: Diagnosis(
        Severity.ERROR,
        "the pointer of a table or view is gone: it can be neither read nor written",
        "restore the object; or drop the table and register its newest metadata file (`arco receipts` lists them)",
    ),
    Code.POINTER_UNREADABLE: Diagnosis(
        Severity.ERROR,
        "the pointer of a table or view is damaged: it can be neither read nor written",
        "restore its newest readable version; or drop the table and register its newest metadata file",
    ),
    Code.POINTER_FOREIGN: Diagnosis(
        Severity.ERROR, "a pointer is that of another table or view", "restore the object that belongs there"
    ),
    Code.POINTER_OLDER: Diagnosis(
        Severity.ERROR,
        "a pointer is an older one: a commit is known to have replaced the file that it names",
        "stop all writers of the table; restore the newest version of the object",
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
        "the current metadata file lies in no store of this catalog, or is larger than it reads",
        "give --allowed-location and ARCO_MAX_METADATA as the servers have them",
    ),
    Code.MANIFEST_LIST_MISSING: Diagnosis(
        Severity.ERROR,
        "the manifest list of a snapshot is gone, so the snapshot can't be read",
        "restore the file; or expire the snapshot, or roll the table back to another",
    ),
    Code.RECEIPT_MISSING: Diagnosis(
        Severity.WARNING, "the commit that made the current file has no committed receipt yet", "run `arco reconcile`"
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
    Code.CLAIM_MISSING: Diagnosis(
        Severity.WARNING,
        "nothing keeps the file that a table or view was registered from: the table that made it may remove it",
        _RESTORE,
    ),
    Code.CLAIM_UNREADABLE: Diagnosis(
        Severity.WARNING,
        "the claim on a metadata file is damaged: the file can be neither registered nor removed",
        _RESTORE,
    ),
    Code.CLAIM_FOREIGN: Diagnosis(Severity.WARNING, "the claim on a metadata file is that of another file", _RESTORE),
    Code.CHECKPOINT_UNREADABLE: Diagnosis(
        Severity.NOTE, "what the reconciler remembers of its walks is damaged: it walks once more", _NONE
    ),
    Code.OBJECT_UNKNOWN: Diagnosis(
        Severity.WARNING,
        "an object that no version of the catalog writes there",
        "find out who wrote it: nobody but the catalog should have that right",
    ),
}
"""What each code means."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One inconsistency: its code, the key or location of the object, and what was found there."""

    code: Code
    where: str
    found: str

    @property
    def diagnosis(self) -> Diagnosis:
        """What it means, and what to do."""
        return DIAGNOSES[self.code]

    def to_json(self) -> JsonObject:
        """For `--json`."""
        diagnosis = self.diagnosis
        return {
            "code": self.code,
            "severity": diagnosis.severity,
            "where": self.where,
            "found": self.found,
            "meaning": diagnosis.meaning,
            "remedy": diagnosis.remedy,
        }
