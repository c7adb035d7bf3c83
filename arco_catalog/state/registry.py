"""The registry: the names, entities and locations of one catalog, or the catalogs, principals and roles of a realm,
with one HEAD that compare-and-swap moves.

A commit is one immutable document. It has its parent, its operations (each with its author and answer), the ids of the
last 500 commits with their operations, and the index. `manifest.json` is a copy of the current commit, so one GET
resolves a name. A commit contains its own fresh id, so no two have equal bytes (docs/design/registry.md).

Of the index the document has the latest edits and a directory of segments, immutable objects with older entries, which
the edits override. A small registry has no segments (docs/decisions/0010-spilled-index.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.state.commit_edits import ancestor_in, changes_of, is_whole, item_id, only_edits
from arco_catalog.state.commit_record import NEWEST_VERSION, VERSION_WITH_CANCELLATIONS, CommitRecord
from arco_catalog.state.fields import mapping, optional_text, parse_record, sequence, text, texts
from arco_catalog.state.index import Edits, Index, SegmentLookup
from arco_catalog.state.key_settings import KeySettings
from arco_catalog.state.needs import Steps
from arco_catalog.state.restoration import Restoration
from arco_catalog.state.segments import Segment
from arco_catalog.state.spilling import Spilling, spill
from arco_catalog.state.writers import LastCommit, Writers
from storage_backends import Version
from storage_backends.lazy_dataclass import dataclass

FIRST_VERSION = 1
"""The version of a new registry, unless it belongs to a realm whose own has a higher one."""
RECENT_COMMITS = 500
"""The maximum number of commits whose operations a commit lists."""
RECENT_OPERATIONS = 1_000
"""The maximum number of operations that a commit lists, unless its own are more. It bounds the size of HEAD if many
requests share each commit."""


_OPERATION_FIELDS = frozenset({"id", "kind", "answer", "cancels"})
"""The fields of a stored operation that are not its detail."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a registry commit: the id and kind, the `detail` that `arco history` shows, and the `answer` to
    its request in the form that markers store (planning/answers.py). `cancels` are the ids of attempts that have not
    committed, and must not from this commit on."""

    id: str
    kind: str
    detail: JsonObject
    answer: JsonObject | None
    cancels: Sequence[str] = ()

    def to_json(self) -> JsonObject:
        """Returns the form in which a registry commit stores the operation."""
        stored: JsonObject = {"id": self.id, "kind": self.kind, **self.detail, "answer": self.answer}
        return {**stored, "cancels": [*self.cancels]} if self.cancels else stored

    @classmethod
    def parse(cls, stored: JsonObject) -> Self:
        """Reads an operation from the form in which a registry commit stores it. Raises `InternalError`."""
        detail = {name: value for name, value in stored.items() if name not in _OPERATION_FIELDS}
        answer = mapping(stored, "answer") or None
        return cls(text(stored, "id"), text(stored, "kind"), detail, answer, texts(stored, "cancels"))


@dataclass(frozen=True)
class RegistryState(CommitRecord):
    """The registry after one commit. `version` is that of the manifest if the commit was read as HEAD, otherwise None.

    `spilled` are the segments of a new commit, which must be written before it becomes HEAD, and `changes` what the
    commit changes in the stored index, None if its object must be whole. `place` is the number of changes that were
    planned before for the same commit; the index contains them already. With `next_is_whole` the object of the next
    commit must be whole.
    """

    index: Index
    version: Version | None
    spilled: Sequence[Segment] = ()
    place: int = 0
    changes: JsonObject | None = None
    next_is_whole: bool = False

    @classmethod
    def empty(cls, version: int = FIRST_VERSION) -> Self:
        """Returns the registry before its first commit, which has this version."""
        return cls({"version": version, "sequence": 0, "recent": [], "before": None}, Index({}), None)

    @classmethod
    def parse(cls, body: bytes, version: Version | None, where: str) -> Self:
        """Reads HEAD, or a commit object that has the whole index. Raises `InternalError` if it is not a JSON object of
        a known version, if it has only edits, and as `of` does."""
        document = parse_record(body, where, newest=NEWEST_VERSION)
        if not is_whole(document):
            raise InternalError(
                f"{where}, the HEAD of a registry, can't be used: it has only edits of the index, and not the whole "
                "index. Restore it by `arco restore`, that of a realm by `arco restore --realm-registry`"
            )
        return cls.of(document, version)

    @classmethod
    def of(cls, document: JsonObject, version: Version | None = None) -> Self:
        """Returns the registry of a document that has the whole index. Raises `InternalError` for a corrupt reference
        to a segment; other fields are not read yet."""
        return cls(document, Index.parse(mapping(document, "index")), version)

    def with_segments(self, segment_lookup: SegmentLookup) -> "RegistryState":
        """Returns this state of the registry with another function that looks up the loaded segments of the index."""
        return replace(self, index=self.index.with_segments(segment_lookup))

    def with_format_version(self, version: int) -> "RegistryState":
        """Returns this state of the registry with another version of its format, which the next commit stores."""
        return replace(self, document={**self.document, "version": version})

    @property
    def ancestor(self) -> str | None:
        """The id of the last commit with a whole object; None if that is this commit itself."""
        return optional_text(self.document, "ancestor")

    @property
    def allows_cancellations(self) -> bool:
        """Whether every program that can read this registry knows cancellations."""
        return self.format_version >= VERSION_WITH_CANCELLATIONS

    @property
    def writers(self) -> Writers:
        """The programs that have committed to the registry, up to this commit."""
        return Writers.of(self.document)

    @property
    def restoration(self) -> Restoration | None:
        """The restore from a backup that this catalog comes from, None if there was none. Each commit repeats it."""
        stored = mapping(self.document, "restored")
        return Restoration.parse(stored) if stored else None

    @property
    def copy_of(self) -> str | None:
        """The location of the catalog of which this one is a copy; None if it is no copy, or was adopted."""
        restoration = self.restoration
        return None if restoration is None else restoration.copy_of

    def with_restoration(self, restoration: Restoration) -> "RegistryState":
        """Returns this state of the registry with another restoration, which the next commit stores."""
        restored: JsonObject = {**mapping(self.document, "restored"), **restoration.to_json()}
        return replace(self, document={**self.document, "restored": restored})

    @cached_property
    def key_settings(self) -> KeySettings | None:
        """The settings by which the catalog reads idempotency keys (their dialect, whether the header is read, and what
        these replaced); None if no server has recorded them. Each commit repeats them."""
        stored = mapping(self.document, "idempotency")
        return KeySettings.parse(stored) if stored else None

    def with_key_settings(self, settings: KeySettings) -> "RegistryState":
        """Returns this state of the registry with other settings of idempotency keys, which the next commit stores."""
        return replace(self, document={**self.document, "idempotency": settings.to_json()})

    @property
    def allowed_locations(self) -> tuple[str, ...]:
        """The locations besides its folder where a catalog outside of realms allows tables. For a catalog of a realm
        they do not count: its entry in the realm has the locations. Each commit repeats them."""
        return texts(self.document, "allowed_locations")

    def with_allowed_locations(self, locations: Sequence[str]) -> "RegistryState":
        """Returns this state of the registry with other allowed locations, which the next commit stores."""
        return replace(self, document={**self.document, "allowed_locations": [*locations]})

    @property
    def bell(self) -> str | None:
        """The id of the bell that this commit, or one before it, took because at most one change was proposed then;
        None if no commit has taken one."""
        return optional_text(self.document, "bell")

    def with_bell(self, bell: str | None) -> "RegistryState":
        """Returns this state of the registry with the id of another bell, which the next commit stores."""
        return self if bell == self.bell else replace(self, document={**self.document, "bell": bell})

    def successor(
        self,
        *,
        commit: str,
        at_ms: int,
        edits: Edits,
        operations: Sequence[Operation],
        spilled: tuple[Index, Sequence[Segment]] | None = None,
    ) -> "RegistryState":
        """Returns the next commit of the registry, which is not written, with `edits` and `operations`, at the time
        `at_ms` (milliseconds since 1970). `spilled` is the result of `index_after`, or None if the commit does not
        spill."""
        made: list[JsonValue] = [commit, *(operation.id for operation in operations)]
        commits = [made, *sequence(self.document, "recent")]
        cancels = [attempt for operation in operations for attempt in operation.cancels]
        cancelled = {commit: cancels, **self.cancelled()} if cancels else self.cancelled()
        listed = _listed(commits, cancelled)
        before = item_id(commits[listed]) if listed < len(commits) else self.before
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
            "writers": self.writers.after(LastCommit(commit, at_ms), NEWEST_VERSION).to_json(),
            "index": {**stored, **index.to_json()},
        }
        changes = self._add_ancestor(document)
        document.pop("cancelled", None)
        if cancelled:
            recent = {item_id(item) for item in commits[:listed]}
            still: list[JsonValue] = [[each, *cancelled[each]] for each in cancelled if each in recent]
            document |= {"cancelled": still} if still else {}
        return RegistryState(document, index, None, segments, changes=changes)

    def _add_ancestor(self, document: JsonObject) -> JsonObject | None:
        """Records in the new commit with this document the last commit with a whole object, if its own object can have
        only edits. Returns then its changes of the index; None if its object must be whole, which then names no such
        commit."""
        document.pop("ancestor", None)
        if self.next_is_whole or not self.allows_cancellations:
            return None
        ancestor = ancestor_in(sequence(document, "recent"), self.ancestor or self.id)
        if ancestor is None:
            return None
        document["ancestor"] = ancestor
        return changes_of(mapping(self.document, "index"), mapping(document, "index"))

    def index_after(self, edits: Edits, spilling: Spilling) -> Steps[tuple[Index, Sequence[Segment]]]:
        """Returns the index after edits, and the segments that a commit with them must write; none if the edits are
        empty or fit into HEAD. If it spills, it needs the segments that it rewrites."""
        index = self.index.edited(edits)
        if not edits:
            return index, ()
        return (yield from spill(index, len(edits), spilling))

    @cached_property
    def body(self) -> bytes:
        """The bytes by which the registry's commit is stored as HEAD."""
        return dumps(self.document, sort_keys=True)

    @property
    def commit_body(self) -> bytes:
        """The bytes by which a new commit is stored under its own key: those of HEAD, or only its edits."""
        return self.body if self.changes is None else dumps(only_edits(self.document, self.changes), sort_keys=True)


def _listed(commits: Sequence[JsonValue], cancelled: Mapping[str, Sequence[str]]) -> int:
    """Returns how many of these commits, the newest first and each with its operations, the newest one lists: itself
    and others before it, up to the limits of commits and of their operations. An attempt that a commit `cancelled`
    counts as an operation."""
    operations = 0
    for place, item in enumerate(commits):
        operations += len(item) - 1 if isinstance(item, list) else 0
        operations += len(cancelled.get(item_id(item) or "", ())) if cancelled else 0
        if place and (place == RECENT_COMMITS or operations > RECENT_OPERATIONS):
            return place
    return len(commits)
