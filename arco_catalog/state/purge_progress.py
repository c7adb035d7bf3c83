"""The checkpoint of the background task that purges a table (docs/design/purge.md#what-is-deleted)."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import mapping, optional_text, texts
from storage_backends.lazy_dataclass import dataclass

MAX_GONE_EXAMPLES = 5
"""The number of missing files that the checkpoint names as examples; all are counted."""
MAX_UNADDRESSABLE_EXAMPLES = 5
"""The number of files without a key that the checkpoint names as examples; all are counted."""

MISSING_SINCE = "missing_since_ms"
UNREAD = "unread"
MAX_UNREAD = 100
"""The number of other tables that can't be read which the checkpoint names, each with the reason."""


class Phase(StrEnum):
    """The phases of a purge, by the kind of files that each deletes, in their order: a phase begins when the one before
    has ended (docs/design/purge.md#rule-9)."""

    DATA = "data"
    STATISTICS = "statistics"
    MANIFESTS = "manifests"
    LISTS = "manifest lists"
    METADATA = "metadata"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Progress:
    """How much a purge has done, as its checkpoint records it.

    `inventory` is the last chunk of the names to delete, `chunk` the current one, and `chunk_done` the number of its
    names that are done. `deleting` means that files may have been deleted. `files` and `bytes` count deleted files,
    also if they were not there any more, `outside` those that stay, because they are outside the table's locations or
    no object of the store can have the name, and `unaddressable` files with an empty level, `.` or `..` in the name.
    `gone` counts the metadata files, manifest lists and manifests that should exist and do not; it is not counted for a
    table that was `handed_over` to a delegation service, whose deletions the other counts include. `unread` are other
    tables with files that can't be read, and `missing_since_ms` is when the first missing file of one was found.

    With the `anti_join` (docs/design/purge.md#rule-19) `done` counts the finished ones of the `parts` of the first
    phase, `shared` means that other tables refer to files at the locations, `kept` counts those files, and `kept_for`
    counts them by these tables: for the first 20, and for all others together.
    """

    deleting: bool = False
    phase: Phase = Phase.DATA
    done: int = 0
    inventory: str = ""
    chunk: str = ""
    chunk_done: int = 0
    files: int = 0
    bytes: int = 0
    outside: int = 0
    gone: int = 0
    gone_examples: tuple[str, ...] = ()
    handed_over: bool = False
    unread: Mapping[str, str] = field(default_factory=dict)
    missing_since_ms: int | None = None
    anti_join: bool = False
    parts: int = 0
    shared: bool = False
    kept: int = 0
    kept_for: Mapping[str, int] = field(default_factory=dict)
    unaddressable: int = 0
    unaddressable_examples: tuple[str, ...] = ()

    @classmethod
    def parse(cls, checkpoint: JsonObject) -> "Progress":
        """Reads the checkpoint of a purge. Fields that are missing or of another type have their defaults. Raises
        `InternalError` for a phase that this version does not know."""

        def count(name: str) -> int:
            return count_in(checkpoint, name)

        return cls(
            checkpoint.get("deleting") is True,
            _phase_of(checkpoint),
            done=count("done"),
            inventory=optional_text(checkpoint, "inventory") or "",
            chunk=optional_text(checkpoint, "chunk") or "",
            chunk_done=count("chunk_done"),
            files=count("files"),
            bytes=count("bytes"),
            outside=count("outside"),
            gone=count("gone"),
            gone_examples=texts(checkpoint, "gone_examples"),
            handed_over=checkpoint.get("handed_over") is True,
            unread={name: str(reason) for name, reason in mapping(checkpoint, UNREAD).items()},
            missing_since_ms=count(MISSING_SINCE) if MISSING_SINCE in checkpoint else None,
            anti_join=checkpoint.get("anti_join") is True,
            parts=count("parts"),
            shared=checkpoint.get("shared") is True,
            kept=count("kept"),
            kept_for={name: n for name, n in mapping(checkpoint, "kept_for").items() if isinstance(n, int)},
            unaddressable=count("unaddressable"),
            unaddressable_examples=texts(checkpoint, "unaddressable_examples"),
        )

    def with_missing(self, files: Sequence[str]) -> "Progress":
        """Returns the purge's progress with these files counted as missing, and named as examples until there are
        `MAX_GONE_EXAMPLES`; unchanged if the table was handed over to a delegation service."""
        if self.handed_over:
            return self
        examples = (*self.gone_examples, *files)[:MAX_GONE_EXAMPLES]
        return replace(self, gone=self.gone + len(files), gone_examples=examples)

    def at(self, chunk: str, done: int) -> "Progress":
        """Returns the purge's progress after the first `done` names in the chunk of the inventory with the id `chunk`
        are deleted or left out."""
        return replace(self, chunk=chunk, chunk_done=done)

    def in_phase(self, phase: Phase) -> "Progress":
        """Returns the purge's progress at the beginning of a phase: no name of the inventory is done in it yet."""
        return replace(self, phase=phase, chunk="", chunk_done=0)

    def without_inventory(self) -> "Progress":
        """Returns the purge's progress at the beginning of its phase, without the stored list of the
        table's files (its inventory)."""
        return replace(self, inventory="", chunk="", chunk_done=0)

    def with_result(self, result: JsonObject) -> "Progress":
        """Returns the purge's progress with three counts in the result of a delegation service's task added: of deleted
        files, of deleted bytes, and of files that are `outside`."""
        files, size, outside = (count_in(result, name) for name in ("files_deleted", "bytes_deleted", "outside"))
        return replace(self, files=self.files + files, bytes=self.bytes + size, outside=self.outside + outside)

    def with_unaddressable(self, count: int, files: Sequence[str]) -> "Progress":
        """Returns the purge's progress with `count` more files that no object key can name; `files` are examples of
        them, added until there are `MAX_UNADDRESSABLE_EXAMPLES`."""
        if not count:
            return self
        examples = (*self.unaddressable_examples, *files)[:MAX_UNADDRESSABLE_EXAMPLES]
        return replace(self, unaddressable=self.unaddressable + count, unaddressable_examples=examples)

    def to_json(self) -> JsonObject:
        """Returns the JSON of a purge's checkpoint. Fields that few purges need, such as those of an anti-join, are
        left out of other checkpoints."""
        joined: JsonObject = {
            "anti_join": True,
            "parts": self.parts,
            "shared": self.shared,
            "kept": self.kept,
            "kept_for": {**self.kept_for},
        }
        unaddressable: JsonObject = {
            "unaddressable": self.unaddressable,
            "unaddressable_examples": [*self.unaddressable_examples],
        }
        return {
            "deleting": self.deleting,
            "phase": self.phase.value,
            "done": self.done,
            "inventory": self.inventory,
            "chunk": self.chunk,
            "chunk_done": self.chunk_done,
            "files": self.files,
            "bytes": self.bytes,
            "outside": self.outside,
            "gone": self.gone,
            "gone_examples": [*self.gone_examples],
            **({"handed_over": True} if self.handed_over else {}),
            **({UNREAD: {**self.unread}} if self.unread else {}),
            **({} if self.missing_since_ms is None else {MISSING_SINCE: self.missing_since_ms}),
            **(joined if self.anti_join else {}),
            **(unaddressable if self.unaddressable else {}),
        }


def _phase_of(checkpoint: JsonObject) -> Phase:
    """Returns the phase in the checkpoint of a purge, the first without one. Raises `InternalError` for an unknown
    one."""
    name = optional_text(checkpoint, "phase") or Phase.DATA.value
    try:
        return Phase(name)
    except ValueError:
        raise InternalError(
            f"the checkpoint of a purge, or of an expiry of snapshots, has the unknown phase {name!r}: if another "
            "version of the program wrote it, run that one"
        ) from None


def count_in(document: JsonObject, name: str) -> int:
    """Returns the integer in the field `name` of a document; 0 if it is missing or has another type."""
    value = document.get(name)
    return value if isinstance(value, int) else 0
