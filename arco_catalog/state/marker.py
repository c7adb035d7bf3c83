"""Idempotency markers: one slot log for each Idempotency-Key (docs/design/idempotency.md).

A slot holds an *attempt* or the *final answer*. Each slot is created once, so only one process gets slot n+1: an
attempt that was taken over cannot finalize, and a finalized marker cannot be taken over. Slot 0 records the request
that the key stands for.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import field
from typing import Self

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.state.fields import integer, mapping, optional_text, parse_record, text, texts
from storage_backends import Found
from storage_backends.lazy_dataclass import dataclass

MAX_SAFE_INTEGER = 2**53 - 1

COLLECTED: JsonObject = {"collected": True}
"""What stands in place of an answer in the last slot of an unfinished marker that is being collected: its outcome stays
unknown (docs/design/collection.md#rule-6)."""

CLOSED = "closed"
"""The field in place of an answer by which servers that know of a change of the key settings close a marker before its
first attempt, for all that do not. Its value is the number of the settings (docs/design/idempotency.md#settings)."""

KEYLESS = "keyless"
"""The field beside `closed` in a slot of settings that read no keys: the request was then carried out without one
(docs/design/idempotency.md#rule-13)."""


def key_hash(scope: str, key: str) -> str:
    """Returns the hash that names the marker of a key. `scope` is empty unless the dialect makes method and path part
    of the key."""
    return hashlib.sha256(f"{scope}\n{key}".encode()).hexdigest()


def payload_hash(body: JsonValue) -> str:
    """Returns SHA-256, in hex, of a body in canonical JSON (RFC 8785). Integers of 2^53 and more, or -2^53 and less
    (snapshot ids), are replaced by objects with their digits, because RFC 8785 rejects or rounds them."""
    import rfc8785  # deferred: a cold start for a read does not pay for it

    return hashlib.sha256(rfc8785.dumps(_safe(body))).hexdigest()


def _safe(value: JsonValue) -> JsonValue:
    """Returns a value of JSON in which integers of 2^53 and more, or -2^53 and less, are objects with a text, as other
    readers would round them."""
    if isinstance(value, dict):
        return {key: _safe(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_safe(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_SAFE_INTEGER:
        return {"integer": str(value)}
    return value


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """The request to which an idempotency key belongs, as slot 0 of the marker records it. `payload` is the hash of the
    body."""

    method: str
    path: str
    query: str
    payload: str
    principal: str

    def to_json(self) -> JsonObject:
        """Returns the form in which slot 0 of a marker stores the request's identity."""
        return {
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "payload": self.payload,
            "principal": self.principal,
        }


@dataclass(frozen=True, slots=True)
class WriteSet:
    """The objects that an attempt at a request may change (docs/design/idempotency.md#rule-3). Stored slots call it
    `binding`.

    `pointers` are the entities that it changes, with the sequence numbers of their pointers that it relies on, and
    `registry` is that of HEAD. `marks` are the entities whose pointers it marks as dropped after it committed.
    `creates` are the entity id and metadata location of a table or view that it creates or registers. `transaction` is
    the transaction whose decision is the commit.
    """

    pointers: Mapping[str, int] = field(default_factory=dict)
    registry: int | None = None
    marks: tuple[str, ...] = ()
    creates: tuple[str, str] | None = None
    transaction: str | None = None

    def covers(self, other: "WriteSet") -> bool:
        """Whether an attempt that declared this write set may make a commit with the write set `other`.

        Sequence numbers are not compared: evidence is searched from the declared ones on, and a later plan can only
        have higher ones. Marks must be equal, because a process with evidence of the attempt marks every declared
        entity.
        """
        return (
            set(other.pointers) <= set(self.pointers)
            and (other.registry is None or self.registry is not None)
            and set(other.marks) == set(self.marks)
            and other.creates in (None, self.creates)
            and other.transaction == self.transaction
        )

    def to_json(self) -> JsonObject:
        """Returns the form in which a slot stores the write set of its attempt."""
        entity, location = self.creates or (None, None)
        return {
            "pointers": dict(self.pointers),
            "registry": self.registry,
            "marks": [*self.marks],
            "creates": None if entity is None else {"entity": entity, "metadata_location": location},
            "transaction": self.transaction,
        }

    @classmethod
    def parse(cls, document: JsonObject) -> Self:
        """Reads the write set of an attempt, as a slot stores it. Raises `InternalError` for `pointers` with a wrong
        sequence number, or `creates` with a wrong entity or location. Other fields of another type count as missing
        ones, which are empty."""
        pointers = mapping(document, "pointers")
        creates = mapping(document, "creates")
        registry = document.get("registry")
        return cls(
            pointers={entity: integer(pointers, entity) for entity in pointers},
            registry=registry if isinstance(registry, int) else None,
            marks=texts(document, "marks"),
            creates=(text(creates, "entity"), text(creates, "metadata_location")) if creates else None,
            transaction=optional_text(document, "transaction"),
        )


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot of an idempotency key's marker: the attempt that has written it, the attempt's write set, the request
    (only slot 0 must have it, another may have an empty one), and in a final slot the answer, or an object in place of
    it (`COLLECTED`, `CLOSED`).

    `written_ms` is the store's time of the write, 0 in a slot that is not written yet.
    """

    attempt: str
    write_set: WriteSet
    identity: JsonObject
    answer: JsonObject | None
    written_ms: int = 0

    @property
    def final(self) -> bool:
        """Whether this slot of an idempotency key's marker holds the final answer to the request, or an object in place
        of it (`COLLECTED`, `CLOSED`)."""
        return self.answer is not None

    @property
    def closed_by(self) -> int | None:
        """The number of the key settings by which this slot closed the marker of an idempotency key; None in a slot
        that does not close it."""
        return None if self.answer is None or CLOSED not in self.answer else integer(self.answer, CLOSED)

    @property
    def is_keyless(self) -> bool:
        """Whether this slot closes the marker of a request whose idempotency key was not read: the request may then
        have been carried out without it."""
        return self.answer is not None and self.answer.get(KEYLESS) is True

    @property
    def body(self) -> bytes:
        """The bytes by which a slot of an idempotency key's marker is stored."""
        return dumps(
            {
                "version": 1,
                "attempt": self.attempt,
                "binding": self.write_set.to_json(),
                "request": self.identity or None,
                "answer": self.answer,
            },
            sort_keys=True,
        )

    @classmethod
    def parse(cls, found: Found, where: str) -> Self:
        """Reads a stored slot of an idempotency key's marker. Raises `InternalError` if it is no record of this version
        or has no attempt, and as `WriteSet.parse` does. Other fields of another type count as missing ones, which are
        empty."""
        document = parse_record(found.body, where)
        return cls(
            attempt=text(document, "attempt"),
            write_set=WriteSet.parse(mapping(document, "binding")),
            identity=mapping(document, "request"),
            answer=mapping(document, "answer") or None,
            written_ms=found.written_ms,
        )


def bound_to(slot: Slot, identity: RequestIdentity) -> bool:
    """Whether `slot`, the first slot of a marker, records the request with this identity."""
    return slot.identity == identity.to_json()
