"""The HTTP handler that loads several tables and views in one request. It follows a proposal for Iceberg's REST
specification (docs/decisions/0107-resolve-follows-a-proposal.md)."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import cast

from arco_catalog.http.access_delegation import NOT_DELEGATED, DelegatedAccess
from arco_catalog.http.compression import answer_limit
from arco_catalog.http.config import RESOLVE_MAX_ITEMS
from arco_catalog.http.errors import error_of_item
from arco_catalog.http.etag import Snapshots, none_match
from arco_catalog.http.names import check_name, check_namespace
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, around_metadata
from arco_catalog.http.tables import tag_of
from arco_catalog.iceberg.errors import AnswerTooLarge, BadRequest, Refusal
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.iceberg.shapes import BOOLEAN, OBJECT, STRING, Fields, list_of, one_of
from arco_catalog.operations.load import CurrentState
from arco_catalog.operations.planning_mode import planning_mode
from arco_catalog.operations.resolve import hidden_names, load_names, resolve_one
from arco_catalog.operations.table_forms import visible_snapshots
from arco_catalog.planning.answer_limit import size_as_text
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.names import Identifier
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.memory import OutOfMemory
from storage_backends.lazy_dataclass import dataclass

AT_ONCE = 4
"""How many tables and views are loaded concurrently: each may have a metadata file of the largest size."""
LARGE_BYTES = 1 << 20
"""After a state of more bytes the others are loaded one at a time."""
MAX_RESPONSE_BYTES = 16 << 20
"""A response that has so many bytes gets no other outcome."""
MAX_ETAG = 1_024
"""The maximum length of an ETag in a request, in characters."""
TIME_SHARE = 4
"""No more items are loaded when the rest of the time is the whole time divided by this number."""


@dataclass(frozen=True, slots=True)
class Item:
    """One table or view of a request, and for a table the state that the client has and the snapshots that it wants."""

    identifier: Identifier
    etag: str | None
    snapshots: Snapshots | None

    @property
    def levels(self) -> list[JsonValue]:
        """The identifier as requests and responses have it. The name follows the levels of the namespace."""
        return [*self.identifier[0], self.identifier[1]]

    @property
    def json(self) -> JsonObject:
        """The item as the request has it."""
        hints: JsonObject = {"etag": self.etag, "snapshots": self.snapshots}
        return {"identifier": self.levels, **{name: value for name, value in hints.items() if value is not None}}


async def resolve(context: RequestContext) -> Response:
    """Loads the tables and views that the body names, each with its outcome. What exceeds the bytes of one response, or
    the time or memory of the request, is listed as unprocessed; the first one never is. With `consistent` all of them
    are loaded as they are at one instant, or none. Raises an error for an invalid body, the errors of `Session.head`,
    `ForbiddenObjects`, and `OutOfMemory` if there is no memory for one of the first `AT_ONCE`; with `consistent`
    `OutOfMemory` for any, `AnswerTooLarge`, `Unavailable`, and `NotFound` if a metadata file is missing."""
    items = read_items(context)
    consistent = context.fields.optional("consistent", BOOLEAN)
    session = context.sessions.open()
    if consistent:
        return await _at_one_instant(context, session, items)
    head, identifiers = await session.head(), [item.identifier for item in items]
    await load_names(session, head, identifiers)
    hidden = await hidden_names(session, head, identifiers)
    outcomes = _Outcomes(context, items)

    async def part(item: Item) -> bytes:
        found = hidden.get(item.identifier) or await resolve_one(session, head, item.identifier)
        return await item_of(session, item, found)

    rest = items
    while rest and outcomes.has_room and (not outcomes.parts or not _is_late(session)):
        try:
            rest = await outcomes.load(rest, part)
        except OutOfMemory:
            if not outcomes.parts:
                raise
            break
    return outcomes.response(rest)


def _is_late(session: Session) -> bool:
    """Whether less of the request's time is left than the whole time divided by `TIME_SHARE`, a quarter."""
    return session.deadline.left_ms() < session.settings.request_ms // TIME_SHARE


async def _at_one_instant(context: RequestContext, session: Session, items: Sequence[Item]) -> Response:
    """Returns the response with the states of all items at one instant. Raises as `resolve` does."""
    # Imported here: a request without a cut saves the time.
    from arco_catalog.operations.cut import CurrentRelation, Cut, with_cut

    async def fill(cut: Cut) -> Response:
        outcomes = _Outcomes(context, items)

        async def part(item: Item) -> bytes:
            found = cut[item.identifier]
            return await item_of(
                session, item, await found.load(session) if isinstance(found, CurrentRelation) else found
            )

        rest = items
        while rest:
            if not outcomes.has_room:
                raise AnswerTooLarge(
                    f"The states of these {len(items)} tables and views exceed one response. Load them first without "
                    "`consistent`, and send the ETags of the tables: an unchanged table then takes few bytes. Or send "
                    "fewer items"
                )
            rest = await outcomes.load(rest, part)
        return outcomes.response((), consistent=True)

    return await with_cut(session, [item.identifier for item in items], fill)


def read_items(context: RequestContext) -> Sequence[Item]:
    """Returns the items of a request. Raises `BadRequest` for an invalid body, and for too many items."""
    relations = context.fields.required("relations", list_of(OBJECT))
    if not relations:
        raise BadRequest("Invalid request.relations: it must have at least one item")
    if len(relations) > RESOLVE_MAX_ITEMS:
        raise BadRequest(
            f"The request has {len(relations)} items, and one request may have at most {RESOLVE_MAX_ITEMS} "
            "(resolve-max-items): send several requests"
        )
    separator = context.options.namespace_separator
    return [_item(Fields(each, f"request.relations[{place}]"), separator) for place, each in enumerate(relations)]


def _item(fields: Fields, separator: str) -> Item:
    """Returns one item of the request, and rejects an invalid one."""
    levels, at = fields.required("identifier", list_of(STRING)), f"{fields.at}.identifier"
    if len(levels) < 2:
        raise BadRequest(f"Invalid {at}: it must have the levels of a namespace, and then a name")
    identifier = check_namespace(levels[:-1], f"The namespace of {at}", separator), check_name(levels[-1], at)
    etag, snapshots = fields.optional("etag", STRING), fields.optional("snapshots", one_of("all", "refs"))
    if etag is not None and len(etag) > MAX_ETAG:
        raise BadRequest(f"Invalid {fields.at}.etag: it has more than {MAX_ETAG:,} characters")
    return Item(identifier, etag, cast(Snapshots | None, snapshots))


async def item_of(session: Session, item: Item, found: CurrentState | Refusal) -> bytes:
    """Returns the outcome of one item as the response has it: `not-found` with the error, `not-modified` for a table
    whose current ETag the item has, or `loaded` with the state, and for a table with the ETag."""
    identifier: JsonObject = {"identifier": item.levels}
    if isinstance(found, Refusal):
        return dumps({**identifier, "status": "not-found", "error": error_of_item(found)})
    state = found.answer
    if found.entry.kind == "view":
        return _loaded(identifier, "view", state, NOT_DELEGATED)
    snapshots = item.snapshots or "all"
    delegated = DelegatedAccess(planning=await planning_mode(session, state))
    tag = tag_of(state, snapshots, delegated)["ETag"]
    if not none_match(item.etag, tag):
        return dumps({**identifier, "status": "not-modified", "etag": tag})
    if snapshots == "refs":
        state = replace(state, metadata=await visible_snapshots(session, state))
    return _loaded({**identifier, "etag": tag}, "table", state, delegated)


def _loaded(fields: JsonObject, kind: str, state: TableState, delegated: DelegatedAccess) -> bytes:
    """Returns the outcome of a table or view that was loaded, with the state and these `fields` of the item."""
    start, end = around_metadata(state, config=True, delegated=delegated)
    outer = dumps({**fields, "status": "loaded"})
    inner = dumps({"object-type": kind})
    opening = b'%s,"result":%s,"%s":%s' % (outer[:-1], inner[:-1], kind.encode(), start)
    return b"".join((opening, state.metadata, end, b"}}"))


class _Outcomes:
    """The results of items, in their order, as far as a response may have them (`MAX_RESPONSE_BYTES`) and the host can
    carry it."""

    def __init__(self, context: RequestContext, items: Sequence[Item]) -> None:
        limit = answer_limit(context.options, context.headers)
        self._is_text = limit is not None
        # Each item is in the response, with its outcome or as unprocessed.
        echoed = sum(self._size(dumps(item.json)) for item in items)
        self._bytes_left = min(MAX_RESPONSE_BYTES, MAX_RESPONSE_BYTES if limit is None else limit.body_bytes) - echoed
        self.parts: list[bytes] = []
        self._has_large = False

    def _size(self, part: bytes) -> int:
        """Returns how many bytes a part takes in the response: escaped if the host has a limit, since it may be sent as
        text."""
        return size_as_text(part) if self._is_text else len(part)

    @property
    def has_room(self) -> bool:
        """Whether a further outcome may fit. The first always does: it may be as long as the response to a load."""
        return not self.parts or self._bytes_left > 0

    async def load(self, items: Sequence[Item], part: Callable[[Item], Coroutine[None, None, bytes]]) -> Sequence[Item]:
        """Loads the outcomes of the next items, `AT_ONCE` concurrently or after a large outcome one, each by `part`,
        and adds them as far as they fit; the first of all is always added. Returns the items that remain: after an
        outcome that did not fit, no other is added."""
        batch = items[: 1 if self._has_large else AT_ONCE]
        for number, outcome in enumerate(await gather(*(part(item) for item in batch))):
            self._bytes_left -= self._size(outcome)
            if self._bytes_left < 0 and self.parts:
                return items[number:]
            self._has_large = self._has_large or len(outcome) > LARGE_BYTES
            self.parts.append(outcome)
        return items[len(batch) :]

    def response(self, unprocessed: Sequence[Item], *, consistent: bool = False) -> Response:
        """Returns the response with all loaded parts, and with these items as unprocessed. With `consistent` the
        response claims that all are of one instant."""
        rest = b',"consistent":true' if consistent else b""
        if unprocessed:
            rest = b',"unprocessed":' + dumps({"relations": [item.json for item in unprocessed]})
        return Response(200, b"".join((b'{"relations":[', b",".join(self.parts), b"]", rest, b"}")))
