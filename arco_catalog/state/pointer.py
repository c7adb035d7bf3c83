"""The pointer: the one mutable object of a table or view, and the single point of truth of its state
(docs/design/state.md#pointers).

Every applied compare-and-swap of a pointer is a *move*: it adds one to the sequence number and puts one id in front of
`recent`, a commit its attempt's id, every other move a fresh one. That list is the evidence by which an attempt learns
whether it committed (docs/design/commit.md#evidence), and it keeps two bodies of one pointer from ever being equal (an
S3 ETag is a digest of the body).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.state.fields import integer, mapping, optional_text, parse_record, sequence, text, texts
from storage_backends import Version

RECENT_MOVES = 1000
"""How many moves `recent` remembers."""
MAX_PREVIOUS_DROPS = 10
"""How many marks of drops stay beside the last one."""


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """A metadata file and its own time (`last-updated-ms`), from which the path of its receipt follows."""

    location: str
    ms: int


@dataclass(frozen=True)  # without slots: what is read again and again is cached
class Pointer:
    """One state of a pointer: its document, unknown fields included, and the version it was read at."""

    document: JsonObject
    version: Version | None

    @classmethod
    def parse(cls, body: bytes, version: Version, where: str) -> Self:
        """Reads a stored pointer. Raises `InternalError`."""
        return cls(parse_record(body, where), version)

    @classmethod
    def first(cls, *, entity: str, kind: str, move: str, metadata: MetadataFile, summary: JsonObject) -> Self:
        """A new entity's pointer. `summary` is what the pointer repeats of its metadata (see `successor`)."""
        return cls(
            {
                "version": 1,
                "entity": entity,
                "type": kind,
                "sequence": 1,
                "id": move,
                "recent": [move],
                "metadata_location": metadata.location,
                "metadata_ms": metadata.ms,
                **summary,
            },
            None,
        )

    @property
    def body(self) -> bytes:
        """The bytes to store."""
        return dumps(self.document, sort_keys=True)

    @cached_property
    def entity(self) -> str:
        """The entity's id."""
        return text(self.document, "entity")

    @cached_property
    def sequence(self) -> int:
        """How many moves there have been, the first write included."""
        return integer(self.document, "sequence")

    @cached_property
    def metadata(self) -> MetadataFile:
        """The current metadata file."""
        return MetadataFile(text(self.document, "metadata_location"), integer(self.document, "metadata_ms"))

    @property
    def base(self) -> MetadataFile | None:
        """The metadata file that the current one was made from, None for the first."""
        base = mapping(self.document, "base")
        return MetadataFile(text(base, "metadata_location"), integer(base, "metadata_ms")) if base else None

    @property
    def registered_from(self) -> str | None:
        """The metadata file that the entity was registered with; None for one that was created here. It, and what lies
        before it, was made by somebody else."""
        return optional_text(mapping(self.document, "origin"), "registered")

    @property
    def is_file_written_here(self) -> bool:
        """Whether this catalog wrote the current metadata file, and so is the only one that removes it."""
        return self.metadata.location != self.registered_from

    @property
    def named_locations(self) -> tuple[str, ...]:
        """The normalised locations, of those that were reserved for commits, that a commit has named since: the
        metadata has named them, so files may lie there."""
        return texts(self.document, "named_locations")

    @property
    def recent(self) -> tuple[str, ...]:
        """Ids of the last moves, newest first."""
        return texts(self.document, "recent")

    @property
    def dropped_by(self) -> str | None:
        """The last of `drops`."""
        return next(iter(self.drops), None)

    @property
    def drops(self) -> tuple[str, ...]:
        """The drops that marked this pointer since its last commit, the last first. They mean nothing under a live name
        (docs/design/registry.md#rule-4)."""
        marks = mapping(self.document, "dropped")
        last = optional_text(marks, "operation")
        return () if last is None else (last, *texts(marks, "previous"))

    @property
    def intent(self) -> str | None:
        """The transaction that has laid an intent here. What it holds is to be believed only by its decision."""
        intent = self.document.get("intent")
        return optional_text(intent, "transaction") if isinstance(intent, dict) else None

    def has_committed(self, attempt: str, since: int) -> bool | None:
        """Whether `attempt`, made when the pointer's sequence number was `since`, had committed to this pointer when
        it was read; None if more moves have been made since than are remembered (docs/design/commit.md#evidence)."""
        recent = sequence(self.document, "recent")  # a thousand ids: not worth a copy
        if attempt in recent:
            return True
        return False if self.sequence - since <= len(recent) else None

    def _moved(self, move: str, changes: JsonObject) -> "Pointer":
        recent: list[JsonValue] = [move, *sequence(self.document, "recent")[: RECENT_MOVES - 1]]
        document = {**self.document, "sequence": self.sequence + 1, "id": move, "recent": recent, **changes}
        return Pointer(document, None)

    def successor(self, *, attempt: str, metadata: MetadataFile, summary: JsonObject) -> "Pointer":
        """The pointer after a commit. A mark that a drop left before an undrop goes with it."""
        base = self.metadata
        moved = self._moved(
            attempt,
            {
                "metadata_location": metadata.location,
                "metadata_ms": metadata.ms,
                "base": {"metadata_location": base.location, "metadata_ms": base.ms},
                **summary,
            },
        )
        moved.document.pop("dropped", None)
        return moved

    def fenced(self, move: str) -> "Pointer":
        """The same state at another version: whatever was sent against the old one can no longer apply."""
        return self._moved(move, {})

    def marked_dropped(self, move: str, operation: str) -> "Pointer":
        """Returns the same state with the mark of a drop: dead to commits unless its name is live again. Marks of other
        drops stay, since each proves that its drop was made (docs/recovery.md#head-is-lost)."""
        previous = [each for each in self.drops if each != operation][:MAX_PREVIOUS_DROPS]
        dropped: JsonObject = {"operation": operation, **({"previous": [*previous]} if previous else {})}
        return self._moved(move, {"dropped": dropped})

    def with_intent(self, move: str, transaction: str, planned: "Pointer") -> "Pointer":
        """The same state, and what it is to become if the transaction commits: `planned`, a successor of this."""
        state: JsonObject = {
            key: value for key, value in planned.document.items() if key not in ("sequence", "id", "recent", "intent")
        }
        return self._moved(move, {"intent": {"transaction": transaction, "state": state}})

    def resolved(self, committed: bool) -> "Pointer":
        """This pointer, at its version, as the decision of its intent makes it: a base to move on from."""
        document = {key: value for key, value in self.document.items() if key != "intent"}
        if committed:
            document = {**document, **mapping(mapping(self.document, "intent"), "state")}
            document.pop("dropped", None)
        return Pointer(document, self.version)

    def settled(self, move: str, committed: bool) -> "Pointer":
        """The pointer without its intent: a move that changes nothing but how the state is written."""
        return self.resolved(committed)._moved(move, {})


def missing_pointer(key: str) -> InternalError:
    """The error for a table or view that the registry names although its pointer is gone from the store."""
    return InternalError(
        f"{key} is missing, but the registry names its table or view: stop all writers of it, then run `arco restore`"
    )
