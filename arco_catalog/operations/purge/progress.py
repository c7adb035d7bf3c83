"""How far a purge is: what the checkpoint of its task says (docs/design/purge.md#what-is-deleted)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import mapping, optional_text


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
    """How far a purge is. `done` counts the manifests of the first phase that are through. `deleting` says that deletes
    may have been made; `outside` counts the files that lie elsewhere, and stay.

    With the `anti_join` (docs/design/purge.md#rule-19) `done` counts parts of the first phase instead, of so many
    `parts`; `shared` says that others lead to files at the entity's locations; `kept` counts those that stay for that,
    and `kept_for` for whom.
    """

    deleting: bool = False
    phase: Phase = Phase.DATA
    done: int = 0
    files: int = 0
    bytes: int = 0
    outside: int = 0
    anti_join: bool = False
    parts: int = 0
    shared: bool = False
    kept: int = 0
    kept_for: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, checkpoint: JsonObject) -> "Progress":
        """Reads a checkpoint."""

        def count(name: str) -> int:
            value = checkpoint.get(name)
            return value if isinstance(value, int) else 0

        return cls(
            checkpoint.get("deleting") is True,
            Phase(optional_text(checkpoint, "phase") or Phase.DATA),
            done=count("done"),
            files=count("files"),
            bytes=count("bytes"),
            outside=count("outside"),
            anti_join=checkpoint.get("anti_join") is True,
            parts=count("parts"),
            shared=checkpoint.get("shared") is True,
            kept=count("kept"),
            kept_for={name: n for name, n in mapping(checkpoint, "kept_for").items() if isinstance(n, int)},
        )

    def to_json(self) -> JsonObject:
        """The checkpoint."""
        joined: JsonObject = {
            "anti_join": True,
            "parts": self.parts,
            "shared": self.shared,
            "kept": self.kept,
            "kept_for": {**self.kept_for},
        }
        return {
            "deleting": self.deleting,
            "phase": self.phase.value,
            "done": self.done,
            "files": self.files,
            "bytes": self.bytes,
            "outside": self.outside,
            **(joined if self.anti_join else {}),
        }
