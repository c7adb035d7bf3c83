"""Reads the history of a catalog's registry in pages, without what the caller may not see
(docs/design/access.md#history)."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import field
from itertools import islice

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations import page_tokens
from arco_catalog.operations.history import AHEAD, OWN, HistoryCommit, walk_commits
from arco_catalog.operations.listing import Paging
from arco_catalog.planning.access import Requirement, Securable
from arco_catalog.planning.history import DROPS, READS, names_in, requirement_of, undo_of
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.fields import mapping, texts
from arco_catalog.state.index import Index, Namespace
from arco_catalog.state.needs import Steps
from arco_catalog.state.registry import RegistryState
from storage_backends.lazy_dataclass import dataclass

MAX_READS = 16
"""A page reads no further commits once it has read so many commits and segments of the index."""
DEFAULT_ROWS = 50
MAX_ROWS = 100
"""The maximum number of operations of a page."""
MAX_LISTS = 3
"""The maximum number of commits that are read to find the one that lists where a page starts."""
_FIELDS = frozenset(
    {"commit", "sequence", "at_ms", "id", "kind", "principal", "session", "source", "namespace", "name", "entity", "to"}
)
"""The fields of a stored operation that have fields of their own in an answer."""


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """Selects the operations on a namespace and on the names directly in it, or with a `name` on that name alone; all
    operations for None as the namespace."""

    namespace: Namespace | None = None
    name: str | None = None

    def selects(self, operation: JsonObject) -> bool:
        """Whether an operation of the registry's history is about this filter's name, or, if it has none, about the
        namespace or a name directly in it; a rename is about both names. True for every operation if the filter has no
        namespace."""
        if self.namespace is None:
            return True
        return any(namespace == self.namespace and self.name in (None, name) for namespace, name in names_in(operation))


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """One page of operations, newest first, and the token of the next page, None if there is none."""

    operations: Sequence[JsonObject]
    next_page_token: str | None


async def history_page(session: Session, selection: HistoryFilter, paging: Paging) -> HistoryPage:
    """Returns a page of the operations that `selection` selects and the caller may see, newest first. Each has `undo`,
    which for the drop of a table, view or other relation is whether it can be undone, if the caller may know that, else
    null. Operations that the protocols make for themselves (`OWN`) are left out. Rights, and what can be undone, are
    those of the present HEAD. A page may be empty although a later one is not. Raises `BadRequest` for a token that is
    invalid or expired, and the errors of `Session.head`."""
    head = await session.head()
    if head.id is None:
        return HistoryPage([], None)
    start: tuple[CommitRecord, int, int] = (head, head.sequence, 0)
    if paging.token:
        start = await _start(session, head, await page_tokens.redeem(session, paging.token))
    size = min(paging.size or DEFAULT_ROWS, MAX_ROWS)
    max_commits = MAX_READS if selection.namespace is not None else min(size, MAX_READS)
    reader = _Reader(session, head, selection, size, max_commits)
    listing, sequence, place = start
    async with aclosing(walk_commits(session, listing, sequence, ahead=min(AHEAD, max_commits))) as commits:
        async for commit in commits:
            stop = await reader.read(commit, place)
            if stop is not None:
                token = await page_tokens.issue(session, [commit.listing.id, *stop])
                return HistoryPage(reader.operations, token)
            place = 0
    return HistoryPage(reader.operations, None)


async def _start(session: Session, head: RegistryState, position: JsonValue) -> tuple[CommitRecord, int, int]:
    """Returns where the page of a token starts: a commit that lists the one with the returned sequence number, or names
    it as the one before the list; and the number of operations of that one that the pages before have passed, with the
    ones that they left out. Raises `BadRequest`."""
    match position:
        case [str(name), int(sequence), int(place)] if (
            page_tokens.is_commit_id(name) and 0 < sequence <= head.sequence and place >= 0
        ):
            listing: CommitRecord = head
            try:
                for _ in range(MAX_LISTS):
                    if listing.before_sequence <= sequence <= listing.sequence:
                        return listing, sequence, place
                    listing = await session.state.registry_commit(name)
                    name = listing.before or name
            except (CommitStateUnknown, InternalError) as error:
                raise page_tokens.expired() from error
            raise page_tokens.expired()
    raise page_tokens.of_another_listing()


@dataclass(slots=True)
class _Reader:
    """Reads one page of the history: at most `size` operations, and no further commits after `max_commits` of them, or
    once `_reads` has reached `MAX_READS`."""

    session: Session
    head: RegistryState
    selection: HistoryFilter
    size: int
    max_commits: int
    operations: list[JsonObject] = field(default_factory=list)
    commits: int = 0
    judged: int = 0
    sees_all: bool | None = None

    async def read(self, commit: HistoryCommit, place: int) -> tuple[int, int] | None:
        """Adds to the page the operations of a commit, from the one at `place` on, that the filter selects and the
        caller may see, except the ones in `OWN`. Returns where the next page starts, as the sequence number of a commit
        and the place in it, if this page is full or may read no more, even if it is empty; None if it goes on, or ends
        with the history. Every page makes progress."""
        self.commits += 1
        operations = commit.operations()[place:]
        await self._prepare(operations)
        for number, operation in enumerate(operations, place):
            spent = self.judged > 0 and self._reads > MAX_READS
            if len(self.operations) == self.size or spent:
                return commit.sequence, number
            self.session.check_deadline()
            await asyncio.sleep(0)  # noqa: TID251 - no time passes: a commit may have a thousand operations
            if operation.get("kind") not in OWN and self.selection.selects(operation):
                self.judged += 1
                if await self._may_see(operation):
                    self.operations.append(await self._described(operation))
        may_read = self.commits < self.max_commits and self._reads < MAX_READS
        goes_on = may_read or commit.sequence <= max(1, commit.listing.before_sequence)
        return None if goes_on else (commit.sequence - 1, 0)

    @property
    def _reads(self) -> int:
        """The number of commits that were read for this page of the history, and of segments of the index that this
        request has used, also from the process's cache."""
        return self.commits + self.session.state.used_segments

    async def _prepare(self, operations: Sequence[JsonObject]) -> None:
        """Queries the policy, if the server has one, at once about the first `MAX_ROWS` of these operations that the
        filter selects, so that `_may_see` makes no calls for them."""

        def required(index: Index) -> Steps[Sequence[Requirement]]:
            selected = (each for each in operations if each.get("kind") not in OWN and self.selection.selects(each))
            found: list[Requirement] = []
            for operation in islice(selected, MAX_ROWS):
                found.append((yield from requirement_of(index, operation)))
                if operation.get("kind") in DROPS:
                    found.append(Requirement(Privilege.TABLE_CREATE, Securable(texts(operation, "namespace"))))
            return found

        await self.session.access.prepare(self.session.state, self.head, required)

    async def _may_see(self, operation: JsonObject) -> bool:
        """Whether the caller may see an operation of the history, by the present HEAD."""
        session, head = self.session, self.head
        if self.sees_all is None:
            self.sees_all = session.access.inherits and await session.held(head, READS, Securable()) >= READS
        if self.sees_all:
            return True
        required = await carry_out(session.state, head.index, requirement_of(head.index, operation))
        return required.privilege in await session.held(head, [required.privilege], required.on)

    async def _may_create(self, namespace: Namespace) -> bool:
        """Whether the caller may create tables in a namespace, by a right on it or on the whole catalog, and so may
        learn anyway which names exist there."""
        created = {Privilege.TABLE_CREATE}
        held = [await self.session.held(self.head, created, on) for on in (Securable(namespace), Securable())]
        return any(held)

    async def _described(self, operation: JsonObject) -> JsonObject:
        """Returns the JSON of an operation of the history. `undo` is null, except for the drop of a table, view or
        other relation if the caller may see all operations or create tables in the namespace: then it is whether and
        how the drop can be undone."""
        index, retention = self.head.index, self.session.settings.retention
        undo: JsonObject | None = None
        if operation.get("kind") in DROPS and (self.sees_all or await self._may_create(texts(operation, "namespace"))):
            undo = await carry_out(self.session.state, index, undo_of(index, operation, retention.undrop_ms))
        return {
            "id": operation.get("id"),
            "commit": operation.get("commit"),
            "sequence": operation.get("sequence"),
            "at-ms": operation.get("at_ms"),
            "kind": operation.get("kind"),
            "principal": operation.get("principal"),
            "session": operation.get("session"),
            "source": operation.get("source"),
            "namespace": operation.get("namespace"),
            "name": operation.get("name"),
            "entity": operation.get("entity"),
            "to": mapping(operation, "to") or None,
            "detail": {name: value for name, value in operation.items() if name not in _FIELDS},
            "undo": undo,
        }
