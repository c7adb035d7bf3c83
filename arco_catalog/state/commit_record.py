"""One commit of a registry's history, as its object records it, without the index: its operations, and the ids of the
commits before it (docs/design/registry.md#history)."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.commit_edits import is_other_form
from arco_catalog.state.fields import integer, optional_text, parse_record, sequence, text
from storage_backends.lazy_dataclass import dataclass

VERSION_WITH_CANCELLATIONS = 2
"""The version of a registry in which a takeover cancels attempts by id, a process that loses HEAD proposes its change,
and most commit objects have only edits (docs/design/registry.md#versions)."""
NEWEST_VERSION = VERSION_WITH_CANCELLATIONS
"""The highest version of a registry that this program can read."""


@dataclass(frozen=True)
class CommitRecord:
    """One commit of a registry without its index. A commit object may list fewer commits than HEAD as of that commit
    (state/commit_edits.py)."""

    document: JsonObject

    @classmethod
    def read(cls, body: bytes, where: str) -> Self:
        """Returns the commit in the bytes of its object, which may be whole or have only edits. Raises `InternalError`
        for corrupt bytes, and for a version that this program can't read."""
        return cls(parse_record(body, where, newest=NEWEST_VERSION))

    @property
    def id(self) -> str | None:
        """The id of the registry's commit, None before the first one."""
        return optional_text(self.document, "id")

    @property
    def sequence(self) -> int:
        """The number of commits of the registry up to this one."""
        return integer(self.document, "sequence")

    @property
    def format_version(self) -> int:
        """The version of the format of the registry's records. A program that reads only lower ones refuses them."""
        return integer(self.document, "version")

    @property
    def before(self) -> str | None:
        """The id of the commit before the oldest in `recent`, where a walk through history continues; None if there is
        none."""
        return optional_text(self.document, "before")

    def recent(self) -> Sequence[tuple[str, Sequence[str]]]:
        """Returns the ids of the last commits of the registry, this one first, each with the ids of its operations.
        Corrupt items are left out."""
        listed: list[tuple[str, Sequence[str]]] = []
        for item in sequence(self.document, "recent"):
            if isinstance(item, list) and item and isinstance(item[0], str):
                listed.append((item[0], [operation for operation in item[1:] if isinstance(operation, str)]))
        return listed

    @property
    def before_sequence(self) -> int:
        """The sequence number of the commit `before`; 0 if there is none."""
        return self.sequence - len(self.recent())

    def listed_from(self, sequence: int) -> Sequence[str]:
        """Returns the ids of the last commits of the registry, from the one with this sequence number back, as far as
        they are listed. The number must not be higher than that of this commit."""
        return [commit for commit, _ in self.recent()[self.sequence - sequence :]]

    def commit_of(self, operation: str) -> str | None:
        """Of the last commits that `recent` lists, returns the id of the one with an operation; None if none of them
        has it."""
        return self._made_by.get(operation)

    @cached_property
    def _made_by(self) -> Mapping[str, str]:
        """The ids of the recent commits by the ids of their operations. It is computed once, because a request may
        search for several attempts."""
        return {operation: commit for commit, operations in reversed(self.recent()) for operation in operations}

    def cancelled(self) -> Mapping[str, Sequence[str]]:
        """Returns the ids of attempts that recent commits cancelled, by the ids of these commits. Corrupt items are
        left out."""
        listed: dict[str, Sequence[str]] = {}
        for item in sequence(self.document, "cancelled"):
            if isinstance(item, list) and item and isinstance(item[0], str):
                listed[item[0]] = [attempt for attempt in item[1:] if isinstance(attempt, str)]
        return listed

    def is_cancelled(self, attempt: str) -> bool:
        """Whether a recent commit cancelled an attempt: it has not committed, and never will."""
        return attempt in self._cancelled_attempts

    @cached_property
    def _cancelled_attempts(self) -> frozenset[str]:
        """The ids of the attempts that the last commits of the registry cancelled."""
        return frozenset(attempt for attempts in self.cancelled().values() for attempt in attempts)

    def remembers(self, since: int) -> bool:
        """Whether `recent` lists every commit made after sequence number `since`, and `cancelled` their
        cancellations."""
        return self.sequence - since <= len(sequence(self.document, "recent"))

    def operation(self, operation: str) -> JsonObject | None:
        """Returns the operation with this id in its stored form; None if it is not of this commit itself."""
        for item in sequence(self.document, "operations"):
            if isinstance(item, dict) and item.get("id") == operation:
                return item
        return None

    @property
    def at_ms(self) -> int:
        """The time of the registry's commit in milliseconds since 1970, by the clock of the process that made it."""
        return integer(self.document, "at_ms")


def is_object_of_same_commit(where: str, body: bytes, there: bytes) -> bool:
    """Whether two objects, given by their bytes, are the two forms of one commit: one is whole, the other has only
    edits, and both have the same last commits and other common fields, as `is_other_form` compares them. Raises
    `InternalError`, which names `where`, if one is corrupt."""
    return is_other_form(CommitRecord.read(body, where).document, CommitRecord.read(there, where).document)


def commit_id(body: bytes, where: str) -> str:
    """Returns the id in a commit object, without reading its index. Raises `InternalError`."""
    return text(parse_record(body, where, newest=NEWEST_VERSION), "id")
