"""How far a purge is: what the checkpoint of its task says (docs/design/purge.md#what-is-deleted)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import mapping, optional_text, texts

MAX_GONE_EXAMPLES = 5
"""Files that were gone which the checkpoint names; all are counted."""
MAX_UNADDRESSABLE_EXAMPLES = 5
"""Files with no key which the checkpoint names; all are counted."""

MISSING_SINCE = "missing_since_ms"
UNREAD = "unread"
MAX_UNREAD = 100
"""Other tables that can't be read which the checkpoint names, each with the reason."""


class Phase(StrEnum):
    """What is deleted, in this order, each phase after all of the one before (docs/design/purge.md#rule-9)."""

    DATA = "data"
    STATISTICS = "statistics"
    MANIFESTS = "manifests"
    LISTS = "manifest lists"
    METADATA = "metadata"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a purge is. `inventory` is the last chunk of what there is to delete, `chunk` the one that the phase has
    come to, and `chunk_done` counts what is through of that. `deleting` says that deletes may have been made;
    `outside` counts the files that lie elsewhere, and stay. `gone` counts the metadata files,
    manifest lists and manifests that were to be read and were not there. Where the table was `handed_over` to a
    delegation service before, that tells nothing; the counts of `files`, `bytes` and `outside` include the service's.
    `unread` are other tables of which something can't be read; at `missing_since_ms` the first of them was found whose
    files are gone. `unaddressable` counts the files at the entity's locations that have no keys.

    With the `anti_join` (docs/design/purge.md#rule-19) `done` counts parts of the first phase, of so many `parts`;
    `shared` says that others lead to files at the entity's locations; `kept` counts those that stay for that, and
    `kept_for` for whom.
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
        """Reads a checkpoint."""

        def count(name: str) -> int:
            return count_in(checkpoint, name)

        return cls(
            checkpoint.get("deleting") is True,
            Phase(optional_text(checkpoint, "phase") or Phase.DATA),
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

    def without(self, files: Sequence[str]) -> "Progress":
        """The same, and these files were gone."""
        if self.handed_over:
            return self
        examples = (*self.gone_examples, *files)[:MAX_GONE_EXAMPLES]
        return replace(self, gone=self.gone + len(files), gone_examples=examples)

    def at(self, chunk: str, done: int) -> "Progress":
        """Returns the checkpoint with so much of a chunk through."""
        return replace(self, chunk=chunk, chunk_done=done)

    def in_phase(self, phase: Phase) -> "Progress":
        """Returns the checkpoint at the beginning of a phase."""
        return replace(self, phase=phase, chunk="", chunk_done=0)

    def without_inventory(self) -> "Progress":
        """Returns the checkpoint at the beginning of its phase, with an inventory that is still to be taken."""
        return replace(self, inventory="", chunk="", chunk_done=0)

    def with_result(self, result: JsonObject) -> "Progress":
        """Adds the counts of a delegation service's task to these."""
        files, size, outside = (count_in(result, name) for name in ("files_deleted", "bytes_deleted", "outside"))
        return replace(self, files=self.files + files, bytes=self.bytes + size, outside=self.outside + outside)

    def with_unaddressable(self, count: int, files: Sequence[str]) -> "Progress":
        """This progress, and so many more files that have no keys, of which these are examples."""
        if not count:
            return self
        examples = (*self.unaddressable_examples, *files)[:MAX_UNADDRESSABLE_EXAMPLES]
        return replace(self, unaddressable=self.unaddressable + count, unaddressable_examples=examples)

    def to_json(self) -> JsonObject:
        """The checkpoint."""
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


def count_in(document: JsonObject, name: str) -> int:
    """A count of a document; 0 where there is none."""
    value = document.get(name)
    return value if isinstance(value, int) else 0
