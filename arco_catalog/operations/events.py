"""Reads the event feed of a catalog as events, as far as the caller may see them (docs/design/access.md#events)."""

import asyncio
from collections.abc import Sequence
from dataclasses import field

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.feed import read_feed
from arco_catalog.operations.history import OWN
from arco_catalog.planning.access import Requirement, Securable
from arco_catalog.planning.event_filter import EventFilter
from arco_catalog.planning.events import Levels, event_of_commit, event_of_operation, without_names
from arco_catalog.planning.history import READS, requirement_of
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.feed import FeedRecord
from arco_catalog.state.fields import mapping, texts
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Steps
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.runtime import Deadline
from storage_backends.lazy_dataclass import dataclass

MAX_EVENTS = 100
"""The maximum number of events of a page."""
MAX_BYTES = 1 << 20
"""A page with so many bytes of events is the last part of the feed that is read."""
MAX_PARTS = 16
"""The maximum number of parts of the feed that are read for one page, each of as many records as the page may have
events."""
PART_SEGMENTS = 8
"""The maximum number of segments of the feed that a part reads after its first one."""
MAX_MS = 5_000
"""After so many milliseconds the part that is being read is the last one of a page."""


@dataclass(frozen=True, slots=True)
class EventsPage:
    """One page of the catalog's events: the ones that the caller may see, in the order of the feed, perhaps none; the
    token by which the next page continues behind all that was read; and whether the feed had nothing more
    (`is_end`)."""

    events: Sequence[JsonObject]
    token: str
    is_end: bool


def event_of(record: FeedRecord) -> JsonObject | None:
    """Returns the event of a record of the feed: of a commit, an operation, a gap or a restoration. Returns None for
    other records, and for an operation of the protocols themselves (`OWN`), one that a receipt describes, one without a
    name, and one on a grant or an attachment of a policy. Raises `InternalError` for a record that is corrupt."""
    match record.kind:
        case "commit":
            return event_of_commit(record.id, record.entity, record.details)
        case "operation" if record.details.get("kind") not in OWN:
            return event_of_operation(record.details, record.at_ms)
        case "gap" | "restored" as kind:
            about: JsonObject = {} if record.entity is None else {"entity": record.entity}
            made: JsonObject = {"operation-type": f"x-{kind}"}
            named = f"{kind}-{record.number}"
            return {"event-id": named, "timestamp-ms": record.at_ms, "operation": made, "arco": about}
    return None


async def events_page(session: Session, event_filter: EventFilter, token: str | None, size: int) -> EventsPage:
    """Returns the events after a token, or from the beginning of the feed, that `event_filter` selects and that the
    caller may see by the present HEAD, at most `size`. A page ends after a part of the feed that is bounded in length
    and time, so it may be empty although a later one is not. Raises `BadRequest` for a token that is invalid or
    expired, `NoSuchFeed`, and the errors of `Session.head`."""
    end = Deadline.after(session.runtime, MAX_MS)
    reader = _Reader(session, await session.head(), event_filter)
    for _ in range(MAX_PARTS):
        page = await read_feed(session.state, token, size - len(reader.events), PART_SEGMENTS)
        await reader.add(page.records)
        token = page.token
        if page.is_end or len(reader.events) >= size or reader.bytes >= MAX_BYTES or end.left_ms() <= 0:
            return EventsPage(reader.events, page.token, page.is_end)
    return EventsPage(reader.events, page.token, is_end=False)


@dataclass(slots=True)
class _Reader:
    """Collects the events of one page, by the rights on one HEAD."""

    session: Session
    head: RegistryState
    event_filter: EventFilter
    events: list[JsonObject] = field(default_factory=list)
    bytes: int = 0
    sees_all: bool | None = None

    async def add(self, records: Sequence[FeedRecord]) -> None:
        """Adds to the page the events of these records that the caller may see, without names that are hidden from the
        caller, and that the filter selects, not by such a name; adds their sizes to `bytes`. Raises `StoreUnavailable`
        past the deadline."""
        found = [
            (record, event) for record in records if (event := event_of(record)) and self.event_filter.selects(event)
        ]
        if not found:
            return
        if self.sees_all is None:
            access = self.session.access
            self.sees_all = access.inherits and await self.session.held(self.head, READS, Securable()) >= READS
        if not self.sees_all:
            await self._prepare([record for record, _ in found])
        for record, event in found:
            self.session.check_deadline()
            await asyncio.sleep(0)  # noqa: TID251 - no time passes: a page may read a thousand records
            visible = event if self.sees_all else await self._visible(record, event)
            # A name that is hidden from the caller must not select the event.
            if visible is not None and (visible is event or self.event_filter.selects(visible)):
                self.events.append(visible)
                self.bytes += len(dumps(visible))

    async def _prepare(self, records: Sequence[FeedRecord]) -> None:
        """Queries the policy, if the server has one, at once about the privileges that the caller needs to see these
        records, so that `_visible` makes no calls for them."""

        def required(index: Index) -> Steps[Sequence[Requirement]]:
            found: list[Requirement] = []
            for record in records:
                found.append((yield from _requirement_of(index, record)))
            return found

        await self.session.access.prepare(self.session.state, self.head, required)

    async def _visible(self, record: FeedRecord, event: JsonObject) -> JsonObject | None:
        """Returns an event as the caller may see it; None if it may not. Of a rename, a name that the table or view
        does not have now is left out if the caller may not list the tables or views of its namespace."""
        required = await carry_out(self.session.state, self.head.index, _requirement_of(self.head.index, record))
        if required.privilege not in await self.session.held(self.head, [required.privilege], required.on):
            return None
        made = mapping(event, "operation")
        if "destination" not in made:
            return event
        listing = Privilege.VIEW_LIST if made["operation-type"] == "rename-view" else Privilege.TABLE_LIST
        hidden: list[Levels] = []
        for each in (mapping(made, "source"), mapping(made, "destination")):
            namespace, name = texts(each, "namespace"), str(each.get("name"))
            is_present = required.on.name is not None and (required.on.namespace, required.on.name) == (namespace, name)
            if not is_present and not await self.session.held(self.head, [listing], Securable(namespace)):
                hidden.append((*namespace, name))
        return without_names(event, hidden) if hidden else event


def _requirement_of(index: Index, record: FeedRecord) -> Steps[Requirement]:
    """Returns the privilege that a caller needs to see the event of a record: that to see in the history an
    operation on the same object (docs/design/access.md#history)."""
    operation = record.details
    if record.kind == "commit":
        kind = "create-view" if operation.get("entity_type") == "view" else "create-table"
        operation = {"kind": kind, "entity": record.entity, **_name_in(operation)}
    return (yield from requirement_of(index, operation))


def _name_in(details: JsonObject) -> JsonObject:
    """Returns the fields `namespace` and `name` of a record, if it has them."""
    return {field: details[field] for field in ("namespace", "name") if field in details}
