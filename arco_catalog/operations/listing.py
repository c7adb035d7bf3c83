"""Lists namespaces, what lies in them, and policies, in pages that all show one state (docs/design/registry.md#pages).

A page token names the registry commit that the first page was read from, and the key at which the next page begins.
Commits and segments are immutable, so creates and drops between two pages change no page. Names in that commit may wait
for transactions that were undecided: the first page determines which of these had committed (see instant.py), and the
token tells the other pages. Where there are grants, a token is sealed: it is good for the principal, catalog and route
that it was given for, and nobody can make one (docs/design/access.md#pages).
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TypeVar

from arco_catalog.iceberg.errors import BadRequest, CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, dumps, loads
from arco_catalog.planning.access import Securable
from arco_catalog.planning.name_intents import pending_transactions
from arco_catalog.planning.names import existing_namespace
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.instant import one_instant
from arco_catalog.protocol.lookup import carry_out, entries_in, load
from arco_catalog.state.access import SegmentGone, State
from arco_catalog.state.entries import find_namespace
from arco_catalog.state.index import Index, Namespace, level, namespace_key, namespaces_in, relations_in
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.policies import policies_in
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.tombstone import PURGED, Tombstone

T = TypeVar("T")

ITEMS_AT_ONCE = 4_096
"""A listing without pages takes memory for so many items at a time."""
ITEM_BYTES = 640
"""How much memory an item takes, in bytes: as a value and in the answer."""
DEFAULT_PAGE = 1000
_COMMIT = re.compile(r"[0-9A-Z]{26}")
_BITS = re.compile(r"[1-9a-f][0-9a-f]*")
EMPTY_SEGMENTS = 8
"""Segments that one page reads at most; all but the last had nothing to show."""


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
    """The tables, the views, or the generic tables of a namespace. Raises `NoSuchNamespace`."""

    def item(key: str, entry: JsonObject) -> JsonValue:
        name = key.rpartition("\n")[2]
        return {"namespace": [*namespace], "name": name} if entry.get("type") == kind else None

    return await _list(session, _Level(namespace, relations_in(namespace), item), paging)


async def list_dropped_tables(session: Session, namespace: Namespace, paging: Paging) -> Listed:
    """The tombstones of tables that were dropped from a namespace and whose files are not all deleted; for callers who
    may list the tables of the catalog also from former namespaces of the name. Raises `NoSuchNamespace`."""

    def item(_: str, entry: JsonObject) -> JsonValue:
        return entry if entry.get("type") == "table" and Tombstone(entry).state != PURGED else None

    return await _list(session, _DroppedLevel(namespace, level("tombstone", namespace), item), paging)


async def list_policies(session: Session, namespace: Namespace, policy_type: str | None, paging: Paging) -> Listed:
    """The policies of a namespace, of one type if it is given. Raises `NoSuchNamespace`."""

    def item(key: str, entry: JsonObject) -> JsonValue:
        shown = policy_type in (None, entry.get("type"))
        return {"namespace": [*namespace], "name": key.rpartition("\n")[2]} if shown else None

    return await _list(session, _Level(namespace, policies_in(namespace), item), paging)


async def computed_page(
    session: Session,
    steps: Callable[[Index], Steps[Sequence[T]]],
    paging: Paging,
    identity: Callable[[Index], Steps[object]],
) -> tuple[Sequence[T], str | None]:
    """A page of what is computed from the index, and the token of the next; the same state shows on all of them.
    `identity` computes the ids of what the page is about. Raises
    what the computation raises, and `BadRequest` for a token that is not for it."""
    if not paging.token:
        head, start = await session.head(), 0
    else:
        (head, start), now = await _allowed_now(session, _computed_as_of(session, paging.token))
        await _require_same(session, head, now, identity)
    try:
        items = await carry_out(session.state, head.index, steps(head.index))
    except SegmentGone as gone:
        raise _expired() from gone
    end = len(items) if paging.token is None else start + min(paging.size or DEFAULT_PAGE, DEFAULT_PAGE)
    if end >= len(items):
        return items[start:], None
    return items[start:end], await _sealed(session, _encoded([head.id, end]))


async def _computed_as_of(session: Session, token: str) -> tuple[RegistryState, int]:
    match _decoded(await _unsealed(session, token)):
        case [str(commit), int(start)] if _COMMIT.fullmatch(commit) and start > 0:
            return await _head_as_of(session, commit), start
    raise BadRequest("The page token belongs to another listing")


@dataclass(frozen=True, slots=True)
class _Level:
    """What is listed: the entries below `prefix`, as `item` shows them (None: not at all)."""

    parent: Namespace
    prefix: str
    item: Callable[[str, JsonObject], JsonValue]

    async def check(self, state: State, index: Index) -> None:
        """Raises `NoSuchNamespace`. The first entries are read beside the namespace's."""
        if self.parent:
            await load(state, index, Needs(keys=[namespace_key(self.parent), self.prefix]))
            existing_namespace(index, self.parent)

    def identity(self, index: Index) -> Steps[str | None]:
        """The id of the namespace that is listed."""
        yield Needs(keys=[namespace_key(self.parent)] if self.parent else [])
        namespace = find_namespace(index, self.parent)
        return None if namespace is None else namespace.entity

    def lists(self, key: str, entry: JsonObject) -> bool:
        """Whether an entry is of the kind that is listed."""
        return key.startswith(self.prefix) and self.item(key, entry) is not None

    async def visible(self, session: Session, head: RegistryState) -> "_Level":
        """The level as the caller may see it, by the registry as it is now."""
        return self


class _DroppedLevel(_Level):
    """The tombstones of a namespace's name, of which callers see those of the namespace that has the name now, unless
    they may list the catalog's tables."""

    __slots__ = ()

    async def visible(self, session: Session, head: RegistryState) -> _Level:
        if not session.is_restricted:
            return self
        lists = Privilege.TABLE_LIST
        if lists in await session.access.held(session.state, head, [lists], Securable()):
            return self
        namespace = await carry_out(session.state, head.index, self.identity(head.index))

        def item(key: str, entry: JsonObject) -> JsonValue:
            same = namespace is not None and Tombstone(entry).namespace_entity == namespace
            return self.item(key, entry) if same else None

        return replace(self, item=item)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What all pages of a listing show: a registry commit, the transactions it waits for, and those that committed."""

    head: RegistryState
    waiting: Sequence[str]
    committed: Collection[str]

    def stands(self, entry: JsonObject) -> bool:
        """Whether an entry is shown: one that is an intent is shown if its transaction committed."""
        transaction = entry.get("transaction")
        return not isinstance(transaction, str) or transaction in self.committed


async def _list(session: Session, level: _Level, paging: Paging) -> Listed:
    if paging.token:
        try:
            (shown, start), now = await _allowed_now(session, _as_of(session, level, paging.token))
            await _require_same(session, shown.head, now, level.identity)
            return await _page(session, await level.visible(session, now or shown.head), shown, start, paging.size)
        except SegmentGone as gone:
            raise _expired() from gone
    shown = _Shown(*await one_instant(session, level.lists))
    await level.check(session.state, shown.head.index)
    level = await level.visible(session, shown.head)
    if paging.token is None:
        return await _everything(session, level, shown)
    return await _page(session, level, shown, level.prefix, paging.size)


async def _allowed_now(session: Session, reading: Coroutine[object, object, T]) -> tuple[T, RegistryState | None]:
    """What is read, if the registry as it is now allows the request, and that registry, if rights are judged: a page
    shows an earlier commit."""
    if not session.is_restricted:
        return await reading, None
    return await gather(reading, session.head())


async def _require_same(
    session: Session, shown: RegistryState, now: RegistryState | None, identity: Callable[[Index], Steps[object]]
) -> None:
    """Raises `BadRequest` if what a page is about has been replaced by something else of its name since the first page:
    rights on that were judged."""
    if now is None or now.id == shown.id:
        return
    before = await carry_out(session.state, shown.index, identity(shown.index))
    if before != await carry_out(session.state, now.index, identity(now.index)):
        raise _expired()


async def _everything(session: Session, level: _Level, shown: _Shown) -> Listed:
    items: list[JsonValue] = []
    async with aclosing(entries_in(session.state, shown.head.index, level.prefix)) as entries:
        async for key, entry in entries:
            item = level.item(key, entry)
            if item is not None and shown.stands(entry):
                items.append(item)
                if len(items) % ITEMS_AT_ONCE == 0:
                    await session.hold.take(ITEMS_AT_ONCE * ITEM_BYTES)
    return Listed(items, None)


async def _page(session: Session, level: _Level, shown: _Shown, start: str, size: int | None) -> Listed:
    """The page that begins at the key `start`. It ends where a segment ends, rather than read a second one. If a
    segment has nothing to show, the page goes on to the next, through at most `EMPTY_SEGMENTS` segments."""
    limit = min(size or DEFAULT_PAGE, DEFAULT_PAGE)
    index = shown.head.index
    items: list[JsonValue] = []
    for number, key_range in enumerate(index.key_ranges(level.prefix, start)):
        if items or number == EMPTY_SEGMENTS:
            return Listed(items, await _sealed(session, _encode(shown, key_range.low)))
        segment = None if key_range.ref is None else await session.state.segment(key_range.ref.id)
        for key, entry in index.entries(key_range, segment):
            item = level.item(key, entry)
            if item is None or not shown.stands(entry):
                continue
            if len(items) == limit:
                return Listed(items, await _sealed(session, _encode(shown, key)))
            items.append(item)
    return Listed(items, None)


async def _head_as_of(session: Session, commit: str) -> RegistryState:
    known = session.state.cached_head()
    if known is not None and known.id == commit:
        return known
    try:
        return await session.state.registry_commit(commit)
    except CommitStateUnknown as gone:
        raise _expired() from gone


def _expired() -> BadRequest:
    return BadRequest("The page token has expired: list again from the start")


def _encode(shown: _Shown, start: str) -> str:
    """The page token: the commit's id, the key, and one bit for each transaction that the commit waits for, 1 if it had
    committed. Bits, not ids, because there may be many and a token is part of a URL; the commit has the ids."""
    bits = int("".join("1" if each in shown.committed else "0" for each in reversed(shown.waiting)) or "0", 2)
    return _encoded([shown.head.id, start, *([f"{bits:x}"] if bits else [])])


def _encoded(token: list[JsonValue]) -> str:
    return base64.urlsafe_b64encode(dumps(token)).decode().rstrip("=")


def _decoded(token: str) -> JsonValue:
    try:
        return loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (MalformedJson, binascii.Error, ValueError) as error:
        raise BadRequest("The page token is invalid") from error


async def _sealed(session: Session, token: str) -> str:
    """A token with its seal, where there are grants."""
    seal = await _seal_of(session, token)
    return token if seal is None else f"{token}.{seal}"


async def _unsealed(session: Session, sealed: str) -> str:
    """The token inside. Raises `BadRequest` for a seal that is not ours, or not for this request."""
    token, _, given = sealed.rpartition(".")
    seal = await _seal_of(session, token)
    if seal is None:
        return sealed
    if not hmac.compare_digest(seal.encode(), given.encode("utf-8", "surrogatepass")):
        raise BadRequest("The page token was not given for this listing: list again from the start")
    return token


async def _seal_of(session: Session, token: str) -> str | None:
    key = await session.access.page_key()
    if key is None:
        return None
    entity, _ = session.catalog.entry or ("", 0)
    what = dumps([entity, session.request.principal, session.request.method, session.request.path, token])
    return hmac.new(key, what, hashlib.sha256).hexdigest()[:32]


async def _as_of(session: Session, level: _Level, token: str) -> tuple[_Shown, str]:
    """What a token's listing shows, and where its page begins. Raises `BadRequest`."""
    commit, start, bits = _decode(await _unsealed(session, token), level.prefix)
    head = await _head_as_of(session, commit)
    waiting = pending_transactions(head.index, level.lists)
    return _Shown(
        head, waiting, {each for each, bit in zip(waiting, reversed(f"{bits:b}"), strict=False) if bit == "1"}
    ), start


def _decode(token: str, prefix: str) -> tuple[str, str, int]:
    match _decoded(token):
        case [str(commit), str(start), *rest] if _COMMIT.fullmatch(commit) and start.startswith(prefix):
            match rest:
                case []:
                    return commit, start, 0
                case [str(bits)] if _BITS.fullmatch(bits):
                    return commit, start, int(bits, 16)
    raise BadRequest("The page token belongs to another listing")
