"""The pointer: the one mutable object of a table or view, which alone decides its state
(docs/design/state.md#pointers).

Every applied compare-and-swap of a pointer is a *move*. It adds one to the sequence number and puts an id in front of
`recent`: the attempt's id for a commit, a fresh id for any other move. From that list an attempt learns whether it
committed (docs/design/commit.md#evidence). The ids also make every body of a pointer different, which is necessary
because an S3 ETag is a digest of the body.
"""

from functools import cached_property
from typing import Self

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.state.fields import integer, mapping, objects, optional_text, parse_record, sequence, text, texts
from storage_backends import Version
from storage_backends.lazy_dataclass import dataclass

RECENT_MOVES = 1000
"""The number of moves that `recent` lists."""
MAX_PREVIOUS_DROPS = 10
"""The number of drop marks that a pointer keeps in addition to the last one."""


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """The location of a metadata file and its time in milliseconds, which determines the path of its receipt: of a
    table's file `last-updated-ms`, of a view's the time of the commit."""

    location: str
    ms: int


def list_logged_files(document: JsonObject) -> list[MetadataFile]:
    """Returns the earlier metadata files in the field `metadata-log` of a table's metadata, in its order, which is
    oldest first; none if the metadata has no log. Raises `InternalError` for an entry without a file or time."""
    return [
        MetadataFile(text(each, "metadata-file"), integer(each, "timestamp-ms"))
        for each in objects(document, "metadata-log")
    ]


@dataclass(frozen=True, slots=True)
class Turn:
    """A move by which a writer reserves the next one for its commit: the move's id, and how long the writer had waited
    by then, in milliseconds."""

    move: str
    waited_ms: int


@dataclass(frozen=True)  # no slots, which cached properties can't have
class Pointer:
    """One state of a pointer: the document with all stored fields, and the version at which it was read, None if it was
    not read."""

    document: JsonObject
    version: Version | None

    @classmethod
    def parse(cls, body: bytes, version: Version, where: str) -> Self:
        """Reads the stored pointer of a table or view, without a look at the fields. Raises `InternalError`, which
        names `where` it is saved, if it is not a JSON object of version 1."""
        return cls(parse_record(body, where), version)

    @classmethod
    def first(cls, *, entity: str, kind: str, move: str, metadata: MetadataFile, summary: JsonObject) -> Self:
        """Returns the first pointer of a new table or view, with the current metadata file `metadata`. `move` is the id
        of this first move, and `summary` has the other fields, such as those of the metadata that the pointer repeats;
        they override the usual ones."""
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
        """The bytes by which the pointer is stored."""
        return dumps(self.document, sort_keys=True)

    @cached_property
    def entity(self) -> str:
        """The id of the table or view that has this pointer."""
        return text(self.document, "entity")

    @cached_property
    def sequence(self) -> int:
        """The number of times that the pointer was written, the first write included. A pointer that a recovery made
        begins at the time in milliseconds instead of 1."""
        return integer(self.document, "sequence")

    @cached_property
    def metadata(self) -> MetadataFile:
        """The current metadata file of the table or view."""
        return MetadataFile(text(self.document, "metadata_location"), integer(self.document, "metadata_ms"))

    @property
    def base(self) -> MetadataFile | None:
        """The metadata file before the current one; None for the first, and after a recovery that did not
        find it."""
        base = mapping(self.document, "base")
        return MetadataFile(text(base, "metadata_location"), integer(base, "metadata_ms")) if base else None

    @property
    def registered_from(self) -> str | None:
        """The metadata file with which the entity was registered; None for an entity that was created here. That file
        and those in its history count as written by another catalog."""
        return optional_text(mapping(self.document, "origin"), "registered")

    @property
    def is_file_written_here(self) -> bool:
        """Whether this catalog has written the current metadata file, so that no other catalog removes it; False for
        the file with which the entity was registered."""
        return self.metadata.location != self.registered_from

    @property
    def named_locations(self) -> tuple[str, ...]:
        """The normalised locations that were reserved for a commit and that a commit has since put into the metadata,
        so that files may be there; after a recovery all that were reserved, since a commit may have named any of
        them."""
        return texts(self.document, "named_locations")

    @property
    def recent(self) -> tuple[str, ...]:
        """The ids of the last moves, which are the applied writes of the pointer, newest first."""
        return texts(self.document, "recent")

    @property
    def dropped_by(self) -> str | None:
        """The id of the last drop that marked this pointer since its last commit; None if there is none."""
        return next(iter(self.drops), None)

    @property
    def drops(self) -> tuple[str, ...]:
        """The ids of the drops that marked this pointer since its last commit, the last first, with at most
        `MAX_PREVIOUS_DROPS` before it. While the entity has a live name they have no effect
        (docs/design/registry.md#rule-4)."""
        marks = mapping(self.document, "dropped")
        last = optional_text(marks, "operation")
        return () if last is None else (last, *texts(marks, "previous"))

    @property
    def intent(self) -> str | None:
        """The transaction whose intent this pointer has; None if it has none. The intent counts only if the transaction
        committed."""
        intent = self.document.get("intent")
        return optional_text(intent, "transaction") if isinstance(intent, dict) else None

    @property
    def turn(self) -> Turn | None:
        """The turn of the writer that made the last move by reserving the next one; None if that was another move."""
        turn = self.document.get("turn")
        if not isinstance(turn, dict) or turn.get("move") != self.document.get("id"):
            return None
        return Turn(text(turn, "move"), integer(turn, "waited_ms"))

    def has_committed(self, attempt: str, since: int) -> bool | None:
        """Whether an attempt had committed to this pointer when it was read. The attempt began when the sequence number
        was `since`. None, if `recent` no longer lists all moves since then (docs/design/commit.md#evidence)."""
        recent = sequence(self.document, "recent")  # not `self.recent`, which copies up to a thousand ids
        if attempt in recent:
            return True
        return False if self.sequence - since <= len(recent) else None

    def _moved(self, move: str, changes: JsonObject) -> "Pointer":
        """Returns the pointer after a move with this id, which is added to `recent`. A turn in it ends."""
        recent: list[JsonValue] = [move, *sequence(self.document, "recent")[: RECENT_MOVES - 1]]
        kept = {field: value for field, value in self.document.items() if field != "turn"}
        return Pointer({**kept, "sequence": self.sequence + 1, "id": move, "recent": recent, **changes}, None)

    def successor(self, *, attempt: str, metadata: MetadataFile, summary: JsonObject) -> "Pointer":
        """Returns the pointer after a commit of an attempt, with the id of the attempt as that of the move: `metadata`
        is the current file, the present one the base, and `summary` has the other fields that change, such as those of
        the metadata that the pointer repeats. Marks of earlier drops are removed, and a turn ends."""
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
        """Returns the pointer after a move that changes only the id, sequence number and list of moves, and ends a
        turn, so that no write that was sent for the old version can apply any more."""
        return self._moved(move, {})

    def reserved(self, turn: Turn) -> "Pointer":
        """Returns the pointer after the move of a turn, which is a fence that other writers can see."""
        return self._moved(turn.move, {"turn": {"move": turn.move, "waited_ms": turn.waited_ms}})

    def marked_dropped(self, move: str, operation: str) -> "Pointer":
        """Returns the pointer with the mark of a drop, which stops commits until the entity has a live name again. The
        marks of up to `MAX_PREVIOUS_DROPS` drops before stay, because each is the proof of its drop
        (docs/recovery.md#head-is-lost)."""
        previous = [each for each in self.drops if each != operation][:MAX_PREVIOUS_DROPS]
        dropped: JsonObject = {"operation": operation, **({"previous": [*previous]} if previous else {})}
        return self._moved(move, {"dropped": dropped})

    def with_intent(self, move: str, transaction: str, planned: "Pointer") -> "Pointer":
        """Returns the pointer with an intent of a transaction, whose state is that of `planned`, a successor of this
        pointer."""
        state: JsonObject = {
            key: value for key, value in planned.document.items() if key not in ("sequence", "id", "recent", "intent")
        }
        return self._moved(move, {"intent": {"transaction": transaction, "state": state}})

    def resolved(self, committed: bool) -> "Pointer":
        """Returns this pointer, at its version, without the intent: if the transaction `committed`, with the intent's
        state and without marks of drops, otherwise with the state before. It is not saved, but serves readers, and the
        next move as the base."""
        document = {key: value for key, value in self.document.items() if key != "intent"}
        if committed:
            document = {**document, **mapping(mapping(self.document, "intent"), "state")}
            document.pop("dropped", None)
        return Pointer(document, self.version)

    def settled(self, move: str, committed: bool) -> "Pointer":
        """Returns the pointer after a move that removes the intent, and, if the transaction `committed`, takes over the
        intent's state and removes the marks of drops."""
        return self.resolved(committed)._moved(move, {})


def missing_pointer(key: str) -> InternalError:
    """Returns the error for a table or view that the registry names although its pointer, under this key, is gone from
    the store."""
    return InternalError(
        f"The pointer {key} is missing, but the registry names its table or view: stop all writers of the table or "
        "view, then run `arco restore`"
    )
