"""Searches for namespaces, tables, views and other relations by words of their names, in the index of the registry
(docs/design/registry.md#search)."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import field
from typing import Literal

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations import page_tokens
from arco_catalog.planning.access import Requirement, Securable
from arco_catalog.planning.privileges import Privilege
from arco_catalog.planning.search import SearchQuery
from arco_catalog.planning.securables import LISTS
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches
from arco_catalog.protocol.instant import one_instant
from arco_catalog.protocol.lookup import load
from arco_catalog.state.entries import DESCRIBED_KINDS, Kind
from arco_catalog.state.index import Index, Namespace, name_in
from arco_catalog.state.needs import Needs, Steps, immediately
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.segments import KeyRange
from arco_catalog.state.worker_threads import off_loop
from storage_backends.lazy_dataclass import dataclass

ObjectKind = Literal["namespace"] | Kind
KINDS: tuple[ObjectKind, ...] = ("namespace", "table", "view", *DESCRIBED_KINDS)
"""The types of objects that can be searched for."""
MAX_RESULTS = 50
"""The maximum number of results of a page, and its default."""
MAX_SEGMENTS = 16
"""A page reads no further segment of the index once it has used so many."""
MAX_JUDGED = 500
"""The maximum number of objects for which a page checks the caller's rights."""
_NAMESPACES, _RELATIONS = "namespace\n", "relation\n"


@dataclass(frozen=True, slots=True)
class SearchPage:
    """One page of the results of a search, the number of names that were read for it, and the token of the next page;
    None if there is none."""

    results: Sequence[JsonObject]
    scanned: int
    next_page_token: str | None


async def search(
    session: Session, query: SearchQuery, *, kind: str | None = None, limit: int | None = None, token: str | None = None
) -> SearchPage:
    """Returns a page of the objects that match a query, of one type if `kind` is given, and that the caller may
    list: at most `limit`, by default and at most `MAX_RESULTS`, in the order of the index. Each page is read from the
    HEAD of its request. A page may be empty although a later one is not. Raises `BadRequest` for a token that is
    invalid or of another listing, and the errors of `one_instant`."""
    prefixes = _prefixes(kind)
    start = _start(await page_tokens.redeem(session, token), prefixes) if token else prefixes[0]
    head, _, committed = await one_instant(session, lambda key, _: key.startswith(prefixes) and _matches(query, key))

    def shows(entry: JsonObject) -> bool:
        transaction = entry.get("transaction")
        is_there = not isinstance(transaction, str) or transaction in committed
        return is_there and kind in (None, "namespace", entry.get("type"))

    page = _PageBuilder(_Judge(session, head), query, shows, min(limit or MAX_RESULTS, MAX_RESULTS))
    next_key = await page.fill(_key_ranges(head.index, prefixes, start))
    next_token = None if next_key is None else await page_tokens.issue(session, [next_key])
    return SearchPage(page.results, page.scanned, next_token)


def _prefixes(kind: str | None) -> tuple[str, ...]:
    """Returns the prefixes of the keys of the objects of a type, None for all types, in the order of the index."""
    if kind is None:
        return _NAMESPACES, _RELATIONS
    return (_NAMESPACES if kind == "namespace" else _RELATIONS,)


def _start(position: JsonValue, prefixes: tuple[str, ...]) -> str:
    """Returns the key of the index at which the page of a token starts. Raises `BadRequest` if the token is of another
    listing, or the key is under none of the prefixes."""
    match position:
        case [str(key)] if key.startswith(prefixes):
            return key
    raise page_tokens.of_another_listing()


def _key_ranges(index: Index, prefixes: Sequence[str], start: str) -> Iterator[KeyRange]:
    """Yields the ranges of the index below the prefixes, from the key `start` on."""
    for prefix in prefixes:
        if prefix >= start or start.startswith(prefix):
            yield from index.key_ranges(prefix, start)


def _matches(query: SearchQuery, key: str) -> bool:
    """Whether the name in the key of an object matches the query."""
    return query.may_match(key.rpartition("\n")[2]) and query.matches(*name_in(key))


@dataclass(frozen=True, slots=True)
class _Object:
    """A namespace, whose `name` is None, or an object in one."""

    kind: ObjectKind
    namespace: Namespace
    name: str | None

    @property
    def securable(self) -> Securable:
        """The object as a securable."""
        return (
            Securable(self.namespace) if self.kind == "namespace" else Securable(self.namespace, self.name, self.kind)
        )


def _object(key: str, entry: JsonObject) -> _Object | None:
    """Returns the object with an entry; None if this version of the program does not know its type."""
    namespace, name = name_in(key)
    if key.startswith(_NAMESPACES):
        return _Object("namespace", (*namespace, name), None)
    kind = next((each for each in KINDS if each == entry.get("type")), None)
    return None if kind is None else _Object(kind, namespace, name)


@dataclass(frozen=True, slots=True)
class _Judge:
    """Checks which objects the caller may list, by one HEAD."""

    session: Session
    head: RegistryState
    known: dict[tuple[ObjectKind, Namespace], bool] = field(default_factory=dict)
    """By type and namespace, whether the caller may list all objects of the type there, or the namespace itself."""

    async def prepare(self, found: Sequence[_Object]) -> None:
        """Queries the policy, if the server has one, at once about the privileges to list all of these objects, so that
        `may_list` makes no calls for them."""

        def required(index: Index) -> Steps[Sequence[Requirement]]:
            return immediately([Requirement(LISTS[each.kind], each.securable) for each in found])

        await self.session.access.prepare(self.session.state, self.head, required)

    async def may_list(self, found: _Object) -> bool:
        """Whether the caller may list an object: it has the privilege on the object itself, or on its namespace if
        privileges are inherited."""
        kind, namespace = found.kind, found.namespace
        if not self.session.access.inherits:
            return await self._holds(LISTS[kind], found.securable)
        if (kind, namespace) not in self.known:
            self.known[kind, namespace] = await self._holds(LISTS[kind], Securable(namespace))
        if kind == "namespace" or self.known[kind, namespace]:
            return self.known[kind, namespace]
        return await self._holds(LISTS[kind], found.securable)

    async def _holds(self, privilege: Privilege, on: Securable) -> bool:
        """Whether the caller has a privilege on a securable."""
        return privilege in await self.session.held(self.head, [privilege], on)


@dataclass(slots=True)
class _PageBuilder:
    """Fills a page of a search from the entries that `shows` selects, with at most `limit` results, until it has read
    or judged as many as a page may."""

    judge: _Judge
    query: SearchQuery
    shows: Callable[[JsonObject], bool]
    limit: int
    results: list[JsonObject] = field(default_factory=list)
    scanned: int = 0
    judged: int = 0

    async def fill(self, key_ranges: Iterator[KeyRange]) -> str | None:
        """Adds to `results` the objects in these key ranges that match and that the caller may list. Stops at `limit`
        results, and at the maximum of segments read or of objects judged. Returns the key at which the next page
        starts, None if there is none. Each page gets further, however many segments the check of one object uses."""
        state, index = self.judge.session.state, self.judge.head.index
        before = state.used_segments
        for key_range in key_ranges:
            if state.used_segments - before >= MAX_SEGMENTS:
                return key_range.low
            await load(state, index, Needs(segments=[] if key_range.ref is None else [key_range.ref]))
            async with aclosing(self._prepared(await self._found_in(key_range))) as objects:
                async for key, each in objects:
                    spent = self.judged == MAX_JUDGED or state.used_segments - before >= 2 * MAX_SEGMENTS
                    if self.judged and spent:
                        return key
                    found = await self._shown(each)
                    # A hidden object does not end the page: the token would show that there is one.
                    if found is not None and len(self.results) == self.limit:
                        return key
                    if found is not None:
                        self.results.append(found)
        return None

    async def _found_in(self, key_range: KeyRange) -> Sequence[tuple[str, JsonObject]]:
        """Returns the entries in a key range that match the query and that `shows` selects, in order, and adds the
        number of names that were read to `scanned`. A worker thread searches a large segment."""
        index, query, shows = self.judge.head.index, self.query, self.shows
        segment, scanned = index.loaded(key_range.ref), 0

        def selects(key: str) -> bool:
            nonlocal scanned
            scanned += 1
            return _matches(query, key)

        def entries() -> Sequence[tuple[str, JsonObject]]:
            return [found for found in index.entries(key_range, segment, selects) if shows(found[1])]

        found = await off_loop(0 if key_range.ref is None else key_range.ref.size, entries)
        self.scanned += scanned
        return found

    async def _prepared(
        self, found: Sequence[tuple[str, JsonObject]]
    ) -> AsyncGenerator[tuple[str, _Object | None], None]:
        """Yields the keys and the objects of these entries, None for an object of an unknown type, after it has
        prepared the checks of as many at once as a page may judge."""
        for batch in batches(found, MAX_JUDGED):
            objects = [(key, _object(key, entry)) for key, entry in batch]
            await self.judge.prepare([each for _, each in objects if each is not None])
            for each in objects:
                yield each

    async def _shown(self, found: _Object | None) -> JsonObject | None:
        """Returns an object as a result of the search, None if the caller may not list it, or if the type is unknown;
        counts it as judged either way. Raises `StoreUnavailable` past the deadline."""
        self.judge.session.check_deadline()
        await asyncio.sleep(0)  # noqa: TID251 - no time passes: many objects of a segment may match
        self.judged += 1
        if found is None or not await self.judge.may_list(found):
            return None
        return {"type": found.kind, "namespace": [*found.namespace], "name": found.name}
