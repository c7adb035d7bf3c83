"""A transaction's one object: created pending, moved once, to committed or aborted. Its decision is the commit of every
table that it names (docs/design/transaction.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.state.age import has_passed
from arco_catalog.state.fields import parse_record, sequence, text
from storage_backends import Found, Version

Status = Literal["pending", "committed", "aborted"]

LEASE_MS = 30_000
"""After this long, by the store's clock, anyone may abort a transaction that is still pending."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a transaction's object said, at a version. `age_ms` is how long ago it was last written."""

    document: JsonObject
    version: Version | None
    age_ms: int

    @classmethod
    def pending(cls, *, transaction: str, rank: str, move: str, members: Sequence[JsonObject]) -> Self:
        """A new transaction. `rank` is the first id of its request: of two that meet, the smaller goes on.

        `members` say, for each table, its entity, the pointer version expected and the metadata location to come.
        """
        listed: list[JsonValue] = [*members]
        return cls(
            {"version": 1, "transaction": transaction, "rank": rank, "id": move, "status": "pending", "tables": listed},
            None,
            0,
        )

    @classmethod
    def closed(cls, *, transaction: str, move: str) -> Self:
        """A transaction that never began, and never will: a takeover creates it so. A collection may create it in place
        of a decision that another collection deleted meanwhile."""
        return cls(
            {"version": 1, "transaction": transaction, "rank": transaction, "id": move, "status": "aborted"}, None, 0
        )

    @classmethod
    def parse(cls, found: Found, where: str) -> Self:
        """Reads a stored transaction. Raises `InternalError`."""
        document = parse_record(found.body, where)
        return cls(document, found.version, found.now_ms - found.written_ms)

    @property
    def status(self) -> str:
        """`pending`, `committed` or `aborted`."""
        return text(self.document, "status")

    @property
    def rank(self) -> str:
        """Which of two that meet goes on: the smaller."""
        return text(self.document, "rank")

    @property
    def is_closed(self) -> bool:
        """Whether it was created as aborted (`closed`). No intent waits for it: it never began, or its decision was
        collected before."""
        return "tables" not in self.document

    @property
    def creates(self) -> bool:
        """Whether it creates tables, and so may have laid intents on names: their pointers have no version yet."""
        members = sequence(self.document, "tables")
        return any(isinstance(member, dict) and member.get("version") is None for member in members)

    @property
    def expired(self) -> bool:
        """Whether anyone may abort it."""
        return self.status == "pending" and has_passed(self.age_ms, LEASE_MS)

    def decided(self, status: Status, move: str) -> JsonObject:
        """The document of the decision, under a fresh id: no two bodies are equal."""
        return {**self.document, "status": status, "id": move}


def committed(decision: Decision | None) -> bool | None:
    """Whether a transaction committed, None while it is undecided. One that is gone was aborted: a commit's decision is
    kept until all that it decides is settled."""
    if decision is None:
        return False
    return None if decision.status == "pending" else decision.status == "committed"


def encode(document: JsonObject) -> bytes:
    """The bytes to store."""
    return dumps(document, sort_keys=True)
