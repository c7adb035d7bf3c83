"""The transaction object: it is pending until one change decides it, as committed or aborted; one that must never begin
is created as aborted. The decision commits the changes of all the tables, or none (docs/design/transaction.md)."""

from collections.abc import Sequence
from typing import Literal, Self

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.state.age import has_passed
from arco_catalog.state.fields import parse_record, sequence, text
from storage_backends import Found, Version
from storage_backends.lazy_dataclass import dataclass

Status = Literal["pending", "committed", "aborted"]

LEASE_MS = 30_000
"""After this time, by the store's clock, any process may abort a transaction that is still pending."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The object of a transaction as it was read: the document at a version, None if it is new. `age_ms` is the time
    since it was last written, by the store's clock."""

    document: JsonObject
    version: Version | None
    age_ms: int

    @classmethod
    def pending(cls, *, transaction: str, rank: str, move: str, members: Sequence[JsonObject]) -> Self:
        """Returns a new transaction, which is pending and not written yet. `rank` is the first id of the request: of
        two transactions on one table, the one with the smaller rank continues. `move` is a fresh id.

        `members` has for each table its entity, the expected version of the pointer, and the new metadata location.
        """
        listed: list[JsonValue] = [*members]
        return cls(
            {"version": 1, "transaction": transaction, "rank": rank, "id": move, "status": "pending", "tables": listed},
            None,
            0,
        )

    @classmethod
    def closed(cls, *, transaction: str, move: str) -> Self:
        """Returns a transaction that is to be created as aborted, so that it can never begin; not written yet. A
        takeover creates it; a collection may, in place of a decision that another collection deleted concurrently."""
        return cls(
            {"version": 1, "transaction": transaction, "rank": transaction, "id": move, "status": "aborted"}, None, 0
        )

    @classmethod
    def parse(cls, found: Found, where: str) -> Self:
        """Reads a stored transaction, with its age by the store's clock at the read. Raises `InternalError` if it is
        not a JSON object of a known version; an error in a field comes when that field is read."""
        document = parse_record(found.body, where)
        return cls(document, found.version, found.now_ms - found.written_ms)

    @property
    def status(self) -> str:
        """The status of the transaction: `pending`, `committed` or `aborted`."""
        return text(self.document, "status")

    @property
    def rank(self) -> str:
        """The priority of the transaction: of two on one table, the one with the smaller rank continues."""
        return text(self.document, "rank")

    @property
    def is_closed(self) -> bool:
        """Whether the transaction was created as aborted (`closed`). It has no intents: it never began, or its decision
        was collected before."""
        return "tables" not in self.document

    @property
    def creates(self) -> bool:
        """Whether the transaction creates tables, whose pointers have no version yet, so that it may have intents on
        names."""
        members = sequence(self.document, "tables")
        return any(isinstance(member, dict) and member.get("version") is None for member in members)

    @property
    def expired(self) -> bool:
        """Whether the transaction is pending and its lease is over, so that any process may abort it. The lease counts
        as over, too, if the store's clock was set back by more than `CLOCK_TOLERANCE_MS` since the write."""
        return self.status == "pending" and has_passed(self.age_ms, LEASE_MS)

    def decided(self, status: Status, move: str) -> JsonObject:
        """Returns the transaction's document with its decision, which commits or aborts it by `status`. `move` is a
        fresh id, so that no two documents have equal bytes."""
        return {**self.document, "status": status, "id": move}


def committed(decision: Decision | None) -> bool | None:
    """Whether a transaction committed; None while it is undecided. A missing object (None) means aborted, because the
    object of a committed transaction is kept until all its intents are settled."""
    if decision is None:
        return False
    return None if decision.status == "pending" else decision.status == "committed"


def encode(document: JsonObject) -> bytes:
    """Returns the bytes by which the document of a transaction is stored."""
    return dumps(document, sort_keys=True)
