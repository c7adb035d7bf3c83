"""The registry: names, entities and locations of one catalog, behind one HEAD moved by compare-and-swap.

A commit is one immutable document: its parent, its operations (what was done, by whom, and the answer it earned), the
ids of the last 500 commits with their operations, and the index. `manifest.json` is a copy of the current commit, so
one GET resolves a name. A commit's body holds its own fresh id, so no two bodies are equal (docs/design/registry.md).

The document holds recent edits of the index and a directory of segments, immutable runs of older entries which the
edits override; a small registry has no segments (docs/decisions/0010-spilled-index.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.state.fields import integer, mapping, optional_text, parse_record, sequence, texts
from arco_catalog.state.index import Edits, Index, SegmentLookup
from arco_catalog.state.key_settings import KeySettings
from arco_catalog.state.needs import Steps
from arco_catalog.state.restoration import Restoration
from arco_catalog.state.segments import Segment
from arco_catalog.state.spilling import Spilling, spill
from storage_backends import Version

RECENT_COMMITS = 500
"""How many commits' operations a commit lists, at most."""
RECENT_OPERATIONS = 1_000
"""How many operations it lists, if older commits than its own have more: commits that many requests share must not make
HEAD larger."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One entry of a commit's history: who did what, and the answer that they were to be given.

    `detail` is what `arco history` shows. `answer` is in the form of a marker's (operations/answers.py).
    """

    id: str
    kind: str
    detail: JsonObject
    answer: JsonObject | None

    def to_json(self) -> JsonObject:
        """The stored form."""
        return {"id": self.id, "kind": self.kind, **self.detail, "answer": self.answer}


@dataclass(frozen=True)
class RegistryState:
    """The registry as one commit left it: the newest, HEAD (with the manifest's version), or an earlier one (without).

    `spilled` are the segments that a new commit makes: they must be written before it becomes HEAD. `place` counts the
    changes before one that is planned for the same commit: the index has them already.
    """

    document: JsonObject
    index: Index
    version: Version | None
    spilled: Sequence[Segment] = ()
    place: int = 0

    @classmethod
    def empty(cls) -> Self:
        """The registry before its first commit."""
        return cls({"version": 1, "sequence": 0, "recent": [], "before": None}, Index({}), None)

    @classmethod
    def parse(cls, body: bytes, version: Version | None, where: str) -> Self:
        """Reads a stored commit. Raises `InternalError`."""
        document = parse_record(body, where)
        return cls(document, Index.parse(mapping(document, "index")), version)

    def with_segments(self, segment_lookup: SegmentLookup) -> "RegistryState":
        """The same state; its index reads segments by this lookup."""
        return RegistryState(
            self.document, self.index.with_segments(segment_lookup), self.version, self.spilled, self.place
        )

    @property
    def id(self) -> str | None:
        """The commit's id, None for the empty registry."""
        return optional_text(self.document, "id")

    @property
    def sequence(self) -> int:
        """How many commits there have been."""
        return integer(self.document, "sequence")

    @property
    def restoration(self) -> Restoration | None:
        """The restore from a backup that it began with, if there was one. Each commit repeats it."""
        stored = mapping(self.document, "restored")
        return Restoration.parse(stored) if stored else None

    @property
    def copy_of(self) -> str | None:
        """Where the catalog is of which this one is a copy; None for one that is no copy, or was adopted."""
        restoration = self.restoration
        return None if restoration is None else restoration.copy_of

    def with_restoration(self, restoration: Restoration) -> "RegistryState":
        """The state with another restoration, which the next commit stores."""
        restored: JsonObject = {**mapping(self.document, "restored"), **restoration.to_json()}
        return replace(self, document={**self.document, "restored": restored})

    @cached_property
    def key_settings(self) -> KeySettings | None:
        """How the catalog reads idempotency keys; None where no server has recorded it. Each commit repeats it."""
        stored = mapping(self.document, "idempotency")
        return KeySettings.parse(stored) if stored else None

    def with_key_settings(self, settings: KeySettings) -> "RegistryState":
        """The state with other settings of keys, which the next commit stores."""
        return replace(self, document={**self.document, "idempotency": settings.to_json()})

    @property
    def allowed_locations(self) -> tuple[str, ...]:
        """The locations besides its folder where the catalog allows tables, unless a realm has them. Each commit
        repeats them."""
        return texts(self.document, "allowed_locations")

    def with_allowed_locations(self, locations: Sequence[str]) -> "RegistryState":
        """The state with other allowed locations, which the next commit stores."""
        return replace(self, document={**self.document, "allowed_locations": [*locations]})

    @property
    def before(self) -> str | None:
        """The commit before the oldest that `recent` lists; from there a walk back goes on."""
        return optional_text(self.document, "before")

    def recent(self) -> Sequence[tuple[str, Sequence[str]]]:
        """The last commits, this one first, each with the ids of its operations."""
        listed: list[tuple[str, Sequence[str]]] = []
        for item in sequence(self.document, "recent"):
            if isinstance(item, list) and item and isinstance(item[0], str):
                listed.append((item[0], [operation for operation in item[1:] if isinstance(operation, str)]))
        return listed

    def commit_of(self, operation: str) -> str | None:
        """The recent commit that did an operation, None if none of them did."""
        return self._made_by.get(operation)

    @cached_property
    def _made_by(self) -> Mapping[str, str]:
        """The recent commits by their operations: a request may ask about each of its attempts."""
        return {operation: commit for commit, operations in reversed(self.recent()) for operation in operations}

    def remembers(self, since: int) -> bool:
        """Whether `recent` lists every commit made after sequence number `since`."""
        return self.sequence - since <= len(sequence(self.document, "recent"))

    def operation(self, operation: str) -> JsonObject | None:
        """An operation of this very commit."""
        for item in sequence(self.document, "operations"):
            if isinstance(item, dict) and item.get("id") == operation:
                return item
        return None

    def successor(
        self,
        *,
        commit: str,
        at_ms: int,
        edits: Edits,
        operations: Sequence[Operation],
        spilled: tuple[Index, Sequence[Segment]] | None = None,
    ) -> "RegistryState":
        """The commit that makes `edits`; without edits and with one operation it is a fence. Where it spills, `spilled`
        is what `index_after` made of them."""
        made: list[JsonValue] = [commit, *(operation.id for operation in operations)]
        commits = [made, *sequence(self.document, "recent")]
        listed = _listed(commits)
        before = _commit_id(commits[listed]) if listed < len(commits) else self.before
        index, segments = (self.index.edited(edits), ()) if spilled is None else spilled
        stored = {name: value for name, value in mapping(self.document, "index").items() if name != "segments"}
        document: JsonObject = {
            **self.document,
            "id": commit,
            "parent": self.id,
            "sequence": self.sequence + 1,
            "at_ms": at_ms,
            "operations": [operation.to_json() for operation in operations],
            "recent": commits[:listed],
            "before": before,
            "index": {**stored, **index.to_json()},
        }
        return RegistryState(document, index, None, segments)

    def index_after(self, edits: Edits, spilling: Spilling) -> Steps[tuple[Index, Sequence[Segment]]]:
        """The index after edits, and the segments that a commit of them makes."""
        index = self.index.edited(edits)
        if not edits:
            return index, ()
        return (yield from spill(index, len(edits), spilling))

    @cached_property
    def body(self) -> bytes:
        """The bytes to store, as commit and as manifest."""
        return dumps(self.document, sort_keys=True)

    @property
    def at_ms(self) -> int:
        """When the commit was made, by its maker's clock."""
        return integer(self.document, "at_ms")


def _listed(commits: Sequence[JsonValue]) -> int:
    """How many of these commits, each in its stored form, a new one lists; it always lists itself."""
    operations = 0
    for place, item in enumerate(commits):
        operations += len(item) - 1 if isinstance(item, list) else 0
        if place and (place == RECENT_COMMITS or operations > RECENT_OPERATIONS):
            return place
    return len(commits)


def _commit_id(item: JsonValue) -> str | None:
    """The id in the stored form of a commit and its operations."""
    return item[0] if isinstance(item, list) and item and isinstance(item[0], str) else None
