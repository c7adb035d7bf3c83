"""Lists namespaces, their contents and policies, in pages that all show one state (docs/design/registry.md#pages).

A page token names HEAD as it was when the first page was read, and the key at which the next page starts. Commits and
segments are immutable, so creates and drops between two pages change no page. Names in that commit may wait
for transactions that were undecided: the first page determines which of these had committed (see instant.py), and the
token carries the result to the other pages.
"""

import re
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TypeVar, cast

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations import page_tokens
from arco_catalog.planning.access import Requirement, Securable, SecurableKind
from arco_catalog.planning.name_intents import pending_transactions
from arco_catalog.planning.names import existing_namespace
from arco_catalog.planning.privileges import Privilege
from arco_catalog.planning.securables import LISTS
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.instant import one_instant
from arco_catalog.protocol.lookup import carry_out, entries_in, load
from arco_catalog.protocol.past_heads import past_head
from arco_catalog.state.access import SegmentGone, State
from arco_catalog.state.entries import Kind, find_namespace
from arco_catalog.state.fields import text
from arco_catalog.state.index import Index, Namespace, level, namespace_key, namespaces_in, relations_in
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.policies import policies_in
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.tombstone import PURGED, Tombstone
from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T")

ITEMS_AT_ONCE = 4_096
"""Number of items for which a listing without pages reserves memory at a time."""
ITEM_BYTES = 640
"""Estimated memory of an item, as a value and in the answer."""
DEFAULT_PAGE = 1000
_BITS = re.compile(r"[1-9a-f][0-9a-f]*")
EMPTY_SEGMENTS = 8
"""Maximum number of segments that one page reads; all but the last had no item of the listing."""


@dataclass(frozen=True, slots=True)
class Paging:
    """The paging parameters of a request for a listing. `token` is None for a listing without pages, and empty for the
    first page. `size` is the maximum number of items of a page; None, and any greater number, mean the maximum of the
    listing, which is `DEFAULT_PAGE` for the listings of this module."""

    token: str | None
    size: int | None


@dataclass(frozen=True, slots=True)
class ListingPage:
    """One page of a listing, and the token of the next page, if there is one."""

    items: list[JsonValue]
    next_page_token: str | None


async def list_namespaces(session: Session, parent: Namespace, paging: Paging) -> ListingPage:
    """Lists the direct children of a namespace, or of the catalog for an empty `parent`, that the caller may see, as
    full paths. Raises `NoSuchNamespace` for the parent, and `BadRequest` for an invalid or expired page token."""

    def item(key: str, _: JsonObject) -> JsonValue:
        return [*parent, key.rpartition("\n")[2]]

    def on(item: JsonValue) -> Securable:
        return Securable(tuple(map(str, item)) if isinstance(item, list) else ())

    return await _list(session, _Level(parent, namespaces_in(parent), item, on), paging)


async def list_relations(session: Session, namespace: Namespace, kind: str, paging: Paging) -> ListingPage:
    """Lists the relations of one kind in a namespace that the caller may see, as objects with `namespace` and `name`,
    without those of transactions that had not committed at the first page. Raises `NoSuchNamespace`, and `BadRequest`
    for an invalid or expired page token."""

    def item(key: str, entry: JsonObject) -> JsonValue:
        name = key.rpartition("\n")[2]
        return {"namespace": [*namespace], "name": name} if entry.get("type") == kind else None

    on = partial(_named, namespace, cast(Kind, kind))
    return await _list(session, _Level(namespace, relations_in(namespace), item, on), paging)


async def list_dropped_tables(session: Session, namespace: Namespace, paging: Paging) -> ListingPage:
    """Lists the tombstones that the caller may see of tables that were dropped from a namespace, except
    where the purge has ended. They include those from former namespaces of the same name only for a caller who may list
    the tables of the whole catalog, as every caller may where access is not restricted. Raises `NoSuchNamespace`, and
    `BadRequest` for an invalid or expired page token."""

    def item(_: str, entry: JsonObject) -> JsonValue:
        return entry if entry.get("type") == "table" and Tombstone(entry).state != PURGED else None

    def on(item: JsonValue) -> Securable:
        return Securable(namespace, entity=text(item, "entity") if isinstance(item, dict) else None)

    return await _list(session, _DroppedLevel(namespace, level("tombstone", namespace), item, on), paging)


async def list_policies(session: Session, namespace: Namespace, policy_type: str | None, paging: Paging) -> ListingPage:
    """Lists the policies of a namespace that the caller may see, as objects with `namespace` and `name`, only those of
    `policy_type` if that is given. Raises `NoSuchNamespace`, and `BadRequest` for an invalid or expired page token."""

    def item(key: str, entry: JsonObject) -> JsonValue:
        matches = policy_type in (None, entry.get("type"))
        return {"namespace": [*namespace], "name": key.rpartition("\n")[2]} if matches else None

    on = partial(_named, namespace, "policy")
    return await _list(session, _Level(namespace, policies_in(namespace), item, on), paging)


def _named(namespace: Namespace, kind: SecurableKind, item: JsonValue) -> Securable:
    """Returns the securable of this kind in a namespace that an item of a listing names by its field `name`."""
    return Securable(namespace, str(item["name"]) if isinstance(item, dict) else None, kind)


async def computed_page(
    session: Session,
    steps: Callable[[Index], Steps[Sequence[T]]],
    paging: Paging,
    identity: Callable[[Index], Steps[object]],
) -> tuple[Sequence[T], str | None]:
    """Returns a page of the items that `steps` computes from the index, and the token of the next page, None for the
    last page; all pages show one state. A page has at most `paging.size` and `DEFAULT_PAGE` items, or all if
    `paging.token` is None. `identity` returns the ids of the entities that the listing is about, which must not change
    between pages where access is restricted, by grants or a policy. Raises the errors of `steps`, and `BadRequest` for
    a token that is invalid, expired, or of another listing; without restriction it accepts one of another computed
    listing."""
    if not paging.token:
        head, start = await session.head(), 0
    else:
        (head, start), now = await _allowed_now(session, _computed_as_of(session, paging.token))
        await _require_same(session, head, now, identity)
    try:
        items = await carry_out(session.state, head.index, steps(head.index))
    except SegmentGone as gone:
        raise page_tokens.expired() from gone
    end = len(items) if paging.token is None else start + min(paging.size or DEFAULT_PAGE, DEFAULT_PAGE)
    if end >= len(items):
        return items[start:], None
    return items[start:end], await page_tokens.issue(session, [head.id, end])


async def _computed_as_of(session: Session, token: str) -> tuple[RegistryState, int]:
    """Returns the registry at the commit of a page token, and the position in a computed listing at which the page
    starts. Raises `BadRequest` for a token that is invalid, expired, or of another listing; where access is not
    restricted, it accepts one of another computed listing."""
    match await page_tokens.redeem(session, token):
        case [str(commit), int(start)] if page_tokens.is_commit_id(commit) and start > 0:
            return await _head_as_of(session, commit), start
    raise page_tokens.of_another_listing()


@dataclass(frozen=True, slots=True)
class _Level:
    """A listing of the entries of the index with keys that start with `prefix`, in the namespace `parent`, empty for
    the catalog. `item` returns the item that the listing shows for an entry, or None to leave the entry out; `on` the
    object that an item is about."""

    parent: Namespace
    prefix: str
    item: Callable[[str, JsonObject], JsonValue]
    on: Callable[[JsonValue], Securable]

    async def check(self, state: State, index: Index) -> None:
        """Raises `NoSuchNamespace` if the namespace that is listed does not exist; does nothing for a listing of the
        catalog. Loads the namespace's entry and the first entries of the listing concurrently."""
        if self.parent:
            await load(state, index, Needs(keys=[namespace_key(self.parent), self.prefix]))
            existing_namespace(index, self.parent)

    def identity(self, index: Index) -> Steps[str | None]:
        """Computes the entity id of the listed namespace, or None if it does not exist, and for the catalog."""
        yield Needs(keys=[namespace_key(self.parent)] if self.parent else [])
        namespace = find_namespace(index, self.parent)
        return None if namespace is None else namespace.entity

    def lists(self, key: str, entry: JsonObject) -> bool:
        """Whether the listing shows an entry of the index, which has this key."""
        return key.startswith(self.prefix) and self.item(key, entry) is not None

    def requirement(self, item: JsonValue) -> Requirement:
        """Returns what a caller must hold to see an item of this listing: the privilege to list the object that it is
        about."""
        on = self.on(item)
        return Requirement(LISTS["namespace" if on.name is None and on.entity is None else on.kind], on)

    async def visible(self, session: Session, head: RegistryState) -> "_Level":
        """Returns this listing without the entries that the caller may not see, by the registry's current `head`. Here
        that is the listing itself: by grants, a caller that may list it sees all entries, and `_without_hidden` removes
        the ones that a policy hides."""
        return self


class _DroppedLevel(_Level):
    """The tombstones under a namespace's name. A caller sees those of the namespace that has the name now; only one who
    may list the tables of the catalog sees those of former namespaces, too."""

    __slots__ = ()

    async def visible(self, session: Session, head: RegistryState) -> _Level:
        """Returns this listing without the tombstones of former namespaces, unless the caller may list the catalog's
        tables."""
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
class _ListedState:
    """The state that all pages of a listing show: a registry commit, the transactions of which it has intents
    (`waiting`), and those of them that had committed."""

    head: RegistryState
    waiting: Sequence[str]
    committed: Collection[str]

    def is_committed(self, entry: JsonObject) -> bool:
        """Whether an entry of the index is in the state that all pages of a listing show: it is no intent, or its
        transaction had committed by then."""
        transaction = entry.get("transaction")
        return not isinstance(transaction, str) or transaction in self.committed


async def _list(session: Session, level: _Level, paging: Paging) -> ListingPage:
    """Returns a page of a listing, or all items if `paging.token` is None, without items that the caller may not see.
    Raises `NoSuchNamespace`, and the errors of `_as_of` for a token."""
    if paging.token:
        try:
            (state, start), now = await _allowed_now(session, _as_of(session, level, paging.token))
            await _require_same(session, state.head, now, level.identity)
            level = await level.visible(session, now or state.head)
            page = await _page(session, level, state, start, paging.size)
            return await _without_hidden(session, level, state, page)
        except SegmentGone as gone:
            raise page_tokens.expired() from gone
    state = _ListedState(*await one_instant(session, level.lists))
    await level.check(session.state, state.head.index)
    level = await level.visible(session, state.head)
    if paging.token is None:
        page = await _everything(session, level, state)
    else:
        page = await _page(session, level, state, level.prefix, paging.size)
    return await _without_hidden(session, level, state, page)


async def _without_hidden(session: Session, level: _Level, state: _ListedState, page: ListingPage) -> ListingPage:
    """Returns a page without the items that a policy hides from the caller, who may read the list; all items if there
    is no policy, or one that takes no batches. The page may be empty although a later one is not."""
    if not session.is_restricted:
        return page
    required = [level.requirement(item) for item in page.items]
    may_see = await session.access.lists(session.state, state.head, required)
    items = [item for item, visible in zip(page.items, may_see, strict=True) if visible]
    return ListingPage(items, page.next_page_token)


async def _allowed_now(session: Session, reading: Coroutine[object, object, T]) -> tuple[T, RegistryState | None]:
    """Returns the result of `reading`, and the current HEAD where access is restricted, by grants or a policy, None
    elsewhere. A page shows an earlier commit, but the request needs its rights now: raises if the current HEAD does not
    allow it."""
    if not session.is_restricted:
        return await reading, None
    return await gather(reading, session.head())


async def _require_same(
    session: Session, listed: RegistryState, now: RegistryState | None, identity: Callable[[Index], Steps[object]]
) -> None:
    """Raises `BadRequest` if the entity that is listed was dropped, or replaced by another of its name, since the first
    page: the request's rights were checked on the new one, and the page would show the old one. `now` is the current
    HEAD, or None where access is not restricted, and nothing is checked."""
    if now is None or now.id == listed.id:
        return
    before = await carry_out(session.state, listed.index, identity(listed.index))
    if before != await carry_out(session.state, now.index, identity(now.index)):
        raise page_tokens.expired()


async def _everything(session: Session, level: _Level, state: _ListedState) -> ListingPage:
    """Returns all items of a listing that are committed in `state` in one page, in order of their keys. Takes memory
    for every full `ITEMS_AT_ONCE` of them; raises `OutOfMemory`."""
    items: list[JsonValue] = []
    async with aclosing(entries_in(session.state, state.head.index, level.prefix)) as entries:
        async for key, entry in entries:
            item = level.item(key, entry)
            if item is not None and state.is_committed(entry):
                items.append(item)
                if len(items) % ITEMS_AT_ONCE == 0:
                    await session.hold.take(ITEMS_AT_ONCE * ITEM_BYTES)
    return ListingPage(items, None)


async def _page(session: Session, level: _Level, state: _ListedState, start: str, size: int | None) -> ListingPage:
    """Returns the page of a listing that starts at the key `start` and has at most `size` items that are committed in
    `state`, by default and at most `DEFAULT_PAGE`. It ends at the end of a segment, to read no second one. Only if a
    segment has no item, it reads the next, up to `EMPTY_SEGMENTS` segments: then the page may be empty."""
    limit = min(size or DEFAULT_PAGE, DEFAULT_PAGE)
    index = state.head.index
    items: list[JsonValue] = []
    for number, key_range in enumerate(index.key_ranges(level.prefix, start)):
        if items or number == EMPTY_SEGMENTS:
            return ListingPage(items, await _token(session, state, key_range.low))
        segment = None if key_range.ref is None else await session.state.segment(key_range.ref.id)
        for key, entry in index.entries(key_range, segment):
            item = level.item(key, entry)
            if item is None or not state.is_committed(entry):
                continue
            if len(items) == limit:
                return ListingPage(items, await _token(session, state, key))
            items.append(item)
    return ListingPage(items, None)


async def _head_as_of(session: Session, commit: str) -> RegistryState:
    """Returns HEAD as of the commit that a page token names, from memory if it is cached. Raises `BadRequest` if it is
    not, and the commit, or one of those that it needs, was deleted."""
    known = session.state.cached_head()
    if known is not None and known.id == commit:
        return known
    try:
        return await past_head(session.state, commit, session.hold)
    except CommitStateUnknown as gone:
        raise page_tokens.expired() from gone


async def _token(session: Session, state: _ListedState, start: str) -> str:
    """Returns the page token: the id of the commit, the key, and one bit for each transaction in `waiting`, 1 if it had
    committed. It has bits instead of ids because there may be many, and a token is part of a URL; HEAD has the ids."""
    bits = int("".join("1" if each in state.committed else "0" for each in reversed(state.waiting)) or "0", 2)
    return await page_tokens.issue(session, [state.head.id, start, *([f"{bits:x}"] if bits else [])])


async def _as_of(session: Session, level: _Level, token: str) -> tuple[_ListedState, str]:
    """Decodes a page token: returns the state that all pages of the listing show, and the key at which the page starts.
    Raises `BadRequest` for a token that is invalid, expired, or of a listing with another prefix. Where access is not
    restricted, a list of views takes a token of the namespace's tables, since both have one prefix."""
    commit, start, bits = _position(await page_tokens.redeem(session, token), level.prefix)
    head = await _head_as_of(session, commit)
    waiting = pending_transactions(head.index, level.lists)
    committed = {each for each, bit in zip(waiting, reversed(f"{bits:b}"), strict=False) if bit == "1"}
    return _ListedState(head, waiting, committed), start


def _position(redeemed: JsonValue, prefix: str) -> tuple[str, str, int]:
    """Returns the commit, the key and the bits of a page token. Raises the error of a token of another listing."""
    match redeemed:
        case [str(commit), str(start), *rest] if page_tokens.is_commit_id(commit) and start.startswith(prefix):
            match rest:
                case []:
                    return commit, start, 0
                case [str(bits)] if _BITS.fullmatch(bits):
                    return commit, start, int(bits, 16)
    raise page_tokens.of_another_listing()
