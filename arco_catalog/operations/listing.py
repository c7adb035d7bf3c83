"""Listing, in pages that never shift: a page token names the registry commit that the first page was read from, and the
key at which the next begins (design.md 5). Commits and segments are immutable, so whatever is created or dropped
meanwhile, all pages show one state."""

import base64
import binascii
import re
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from arco_catalog.iceberg.errors import BadRequest, CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, dumps, loads
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.decisions import committed
from arco_catalog.operations.lookup import entries_in, look_up
from arco_catalog.operations.names import existing_namespace
from arco_catalog.state.access import SegmentGone
from arco_catalog.state.index import Index, Namespace, namespace_key, namespaces_in, relations_in
from arco_catalog.state.registry import Head

ITEMS_AT_ONCE = 4_096
"""How many items of a listing without pages memory is taken for at once."""
ITEM_BYTES = 640
"""Bytes that an item takes, as values and in the answer."""
DEFAULT_PAGE = 1000
_COMMIT = re.compile(r"[0-9A-Z]{26}")
EMPTY_SEGMENTS = 8
"""Segments that one page reads at most, all but the last of them in vain."""


@dataclass(frozen=True, slots=True)
class Paging:
    """What a client asked for. `token` None: everything at once; empty: the first page."""

    token: str | None
    size: int | None


@dataclass(frozen=True, slots=True)
class Listed:
    """One page, and the token of the next."""

    items: list[JsonValue]
    next_page_token: str | None


async def list_namespaces(session: Session, parent: Namespace, paging: Paging) -> Listed:
    """Direct children of a namespace (or of the catalog), as full paths. Raises `NoSuchNamespace` for the parent."""

    def item(key: str, _: JsonObject) -> JsonValue:
        return [*parent, key.rpartition("\n")[2]]

    return await _list(session, _Level(parent, namespaces_in(parent), item), paging)


async def list_relations(session: Session, namespace: Namespace, kind: str, paging: Paging) -> Listed:
    """The tables, or the views, of a namespace. Raises `NoSuchNamespace`."""

    def item(key: str, entry: JsonObject) -> JsonValue:
        name = key.rpartition("\n")[2]
        return {"namespace": [*namespace], "name": name} if entry.get("type") == kind else None

    return await _list(session, _Level(namespace, relations_in(namespace), item), paging)


@dataclass(frozen=True, slots=True)
class _Level:
    """What is listed: the entries below `prefix`, as `item` shows them (None: not at all)."""

    parent: Namespace
    prefix: str
    item: Callable[[str, JsonObject], JsonValue]

    def check(self, index: Index) -> None:
        """Raises `NoSuchNamespace`, and `Unread` for the first entries too."""
        if self.parent:
            index.need(namespace_key(self.parent), self.prefix)
            existing_namespace(index, self.parent)


async def _list(session: Session, level: _Level, paging: Paging) -> Listed:
    if paging.token:
        commit, start = _decode(paging.token, level.prefix)
        try:
            return await _page(session, level, await _head_as_of(session, commit), start, paging.size)
        except SegmentGone as gone:
            raise _expired() from gone
    head = await session.state.head()
    await look_up(session.state, lambda: level.check(head.index))
    if paging.token is None:
        return await _everything(session, level, head)
    return await _page(session, level, head, level.prefix, paging.size)


async def _everything(session: Session, level: _Level, head: Head) -> Listed:
    items: list[JsonValue] = []
    async with aclosing(entries_in(session.state, head.index, level.prefix)) as entries:
        async for key, entry in entries:
            shown = level.item(key, entry)
            if shown is not None and await _stands(session, entry):
                items.append(shown)
                if len(items) % ITEMS_AT_ONCE == 0:
                    await session.hold.take(ITEMS_AT_ONCE * ITEM_BYTES)
    return Listed(items, None)


async def _page(session: Session, level: _Level, head: Head, start: str, size: int | None) -> Listed:
    """From the key `start` on. A page ends where a segment does, rather than read a second one; where all of a segment
    is nothing to show, it goes on to the next, but not for long."""
    limit = min(size or DEFAULT_PAGE, DEFAULT_PAGE)
    items: list[JsonValue] = []
    for number, stretch in enumerate(head.index.stretches(level.prefix, start)):
        if items or number == EMPTY_SEGMENTS:
            return Listed(items, _encode(head, stretch.low))
        segment = None if stretch.ref is None else await session.state.segment(stretch.ref.id)
        for key, entry in head.index.entries(stretch, segment):
            shown = level.item(key, entry)
            if shown is None or not await _stands(session, entry):
                continue
            if len(items) == limit:
                return Listed(items, _encode(head, key))
            items.append(shown)
    return Listed(items, None)


async def _stands(session: Session, entry: JsonObject) -> bool:
    """Whether what is listed is there: an intent on a name counts once its transaction committed."""
    transaction = entry.get("transaction")
    return not isinstance(transaction, str) or await committed(session.state, transaction)


async def _head_as_of(session: Session, commit: str) -> Head:
    known = session.state.cached_head()
    if known is not None and known.id == commit:
        return known
    try:
        return await session.state.registry_commit(commit)
    except CommitStateUnknown as gone:
        raise _expired() from gone


def _expired() -> BadRequest:
    return BadRequest("The page token has expired: list again from the start")


def _encode(head: Head, start: str) -> str:
    return base64.urlsafe_b64encode(dumps([head.id, start])).decode().rstrip("=")


def _decode(token: str, prefix: str) -> tuple[str, str]:
    try:
        decoded = loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (MalformedJson, binascii.Error, ValueError) as error:
        raise BadRequest("The page token is not one of ours") from error
    match decoded:
        case [str(commit), str(start)] if _COMMIT.fullmatch(commit) and start.startswith(prefix):
            return commit, start
    raise BadRequest("The page token is not one of this listing's")
