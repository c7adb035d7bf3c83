"""The event feed of a catalog: its changes, numbered without gaps, in segments that never change
(docs/design/events.md).

A segment is stored under the number of its first record, and the next one under the number after its last record. So
the writer that creates a segment gives these numbers out. A segment has the position in the registry's
history up to which operations have entered; the positions of tables and views follow from the records.
"""

from collections.abc import Sequence
from typing import Literal, Self, get_args

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.fields import integer, mapping, objects, optional_text, parse_record, text
from arco_catalog.state.pointer import MetadataFile
from storage_backends.lazy_dataclass import dataclass

FeedKind = Literal["commit", "operation", "begin", "restored", "gap"]
"""What a record is: a commit to a table or view, by its receipt; an operation of a registry commit; the beginning of
the feed for a table or view, of which it has no earlier commits; a restore that set a table or view, or without an
entity the registry, back to a state that the feed had passed; or that changes may be missing from here to the next
record of the same entity, or of the registry, because what recorded them is gone."""

FIRST_NUMBER = 1
"""The number of the first record of a feed."""
MAX_RECORDS = 500
"""The maximum number of records of a segment."""
MAX_BYTES = 1 << 20
"""The size of the records' JSON from which a segment takes no further record."""


@dataclass(frozen=True, slots=True)
class FeedRecord:
    """One record of the feed. `id` is the event id of a receipt, the id of an operation, or empty. `entity` is the
    table, view or other object that it is about, None if there is none. `at_ms` is the time in the metadata file, or
    that of the registry commit, in milliseconds since 1970: of the clock of the process that made it. It is 0 for a
    `gap` of which no time is known.

    `details` of a `commit` are the metadata file and, if there is a committed receipt, most fields of that
    (docs/receipts.md), of long lists the first items; of an `operation` those that the registry commit stores, without
    the answer and the cancelled attempts, and the id and sequence number of the commit, the number of the operation in
    it, and how many it has (`commit`, `sequence`, `place`, `places`). `begin` and `restored` of a table or view have
    the metadata file that is current after them (`metadata_location`, `metadata_ms`), and `gap` has nothing. `begin`,
    `restored` and `gap` of the registry have no entity, and the position in its history as operations do."""

    number: int
    kind: FeedKind
    id: str
    entity: str | None
    at_ms: int
    details: JsonObject

    @property
    def file(self) -> MetadataFile | None:
        """The metadata file that is current after this record of the feed; None for an operation, and for a record that
        names none."""
        location = optional_text(self.details, "metadata_location")
        if self.kind == "operation" or location is None:
            return None
        return MetadataFile(location, integer(self.details, "metadata_ms"))

    def to_json(self) -> JsonObject:
        """Returns the JSON of this record of the event feed, as a segment stores it."""
        return {
            "number": self.number,
            "kind": self.kind,
            "id": self.id,
            "entity": self.entity,
            "at_ms": self.at_ms,
            "details": self.details,
        }

    @classmethod
    def parse(cls, stored: JsonObject) -> Self:
        """Reads a record of the event feed from its JSON. Raises `InternalError` if the kind is unknown, or the number,
        kind, id or time is missing or of another type. Without `entity` it is None, without `details` they are
        empty."""
        kind = text(stored, "kind")
        for each in get_args(FeedKind):
            if kind == each:
                return cls(
                    integer(stored, "number"),
                    each,
                    text(stored, "id"),
                    optional_text(stored, "entity"),
                    integer(stored, "at_ms"),
                    mapping(stored, "details"),
                )
        raise InternalError(
            f"a record of the event feed has the unknown kind {kind!r}: use a newer version of the program"
        )


@dataclass(frozen=True, slots=True)
class RegistryPosition:
    """Up to where the operations of the registry are in the feed: all those of the commits before the commit with this
    id and sequence number, and the first `operations` ones of it. Before the first commit, the id is None.
    `is_restored` is whether a restore set the registry back there, so that later operations may have entered before,
    `is_whole` whether all operations of the commit have entered."""

    commit: str | None
    sequence: int
    operations: int
    is_restored: bool = False
    is_whole: bool = True

    def is_at(self, other: "RegistryPosition") -> bool:
        """Whether this is the same place in the registry's history as another one, by commit, sequence number and
        operations; `is_restored` and `is_whole` are not compared."""
        return (self.commit, self.sequence, self.operations) == (other.commit, other.sequence, other.operations)


@dataclass(frozen=True, slots=True)
class FeedSegment:
    """One segment of the feed. `id` is a fresh id of its writer, `previous` the id of the segment before it, which has
    `previous_first` as the number of its first record; both are None for the first segment. `registry` is the position
    after its records. `begun` is whether every table and view that existed when the feed was started, or started again
    after a gap of the registry, has its beginning in this segment or an earlier one. `entered_ms` is the time at which
    it was made, by its writer's clock."""

    id: str
    previous: str | None
    previous_first: int | None
    first: int
    registry: RegistryPosition
    begun: bool
    entered_ms: int
    records: Sequence[FeedRecord]

    @property
    def next(self) -> int:
        """The number of the first record of the next segment of the event feed."""
        return self.first + len(self.records)

    @property
    def body(self) -> bytes:
        """The bytes by which the segment of the event feed is stored."""
        document: JsonObject = {
            "version": 1,
            "id": self.id,
            "previous": self.previous,
            "previous_first": self.previous_first,
            "first": self.first,
            "registry": {
                "commit": self.registry.commit,
                "sequence": self.registry.sequence,
                "operations": self.registry.operations,
                "restored": self.registry.is_restored,
                "whole": self.registry.is_whole,
            },
            "begun": self.begun,
            "entered_ms": self.entered_ms,
            "records": [record.to_json() for record in self.records],
        }
        return dumps(document, sort_keys=True)

    @classmethod
    def parse(cls, body: bytes, where: str) -> Self:
        """Reads a segment of the event feed. Raises `InternalError` if it is corrupt, has no records, or has records
        whose numbers are not consecutive from that of the segment on."""
        document = parse_record(body, where)
        registry = mapping(document, "registry")
        first = integer(document, "first")
        records = [FeedRecord.parse(each) for each in objects(document, "records")]
        if not records or [each.number for each in records] != [*range(first, first + len(records))]:
            raise InternalError(
                f"The segment {where} of the event feed is corrupt: it has no records, or their numbers are not "
                "consecutive"
            )
        return cls(
            text(document, "id"),
            optional_text(document, "previous"),
            integer(document, "previous_first") if first > FIRST_NUMBER else None,
            first,
            RegistryPosition(
                optional_text(registry, "commit"),
                integer(registry, "sequence"),
                integer(registry, "operations"),
                registry.get("restored") is True,
                registry.get("whole") is not False,
            ),
            document.get("begun") is True,
            integer(document, "entered_ms"),
            records,
        )
