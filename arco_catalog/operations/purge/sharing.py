"""Whether another table of the catalog leads to files at the places that are to be purged
(docs/design/purge.md#rule-15)."""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Self

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.purge.reach import files_behind, named_by
from arco_catalog.operations.reconcile import list_pointers
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import read_decision, resolve_for_read, transaction_committed
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.age import CLOCK_TOLERANCE_MS
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.fields import integer, mapping, optional_text, text, texts
from arco_catalog.state.locations import Location
from arco_catalog.state.tombstone import PURGED, Tombstone
from arco_catalog.state.transaction import committed
from arco_catalog.tasks.execution import Execution, Sessions, TaskFailed
from storage_backends import StoreUnavailable

ASKED = "asked"
"""What a checkpoint calls it."""
MAX_ROUNDS = 20
"""How often a table is read again that changed while it was read."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How far the others were asked, in a round that began at `began_ms`: all whose entities are not behind `after`. It
    is about those whose pointers have moved since `since_ms`, and the first round about all. Times are the store's."""

    began_ms: int
    since_ms: int | None = None
    after: str = ""

    @classmethod
    def parse(cls, checkpoint: JsonObject) -> Self | None:
        """What a checkpoint says of it; None if nobody was asked yet."""
        said = mapping(checkpoint, ASKED)
        if not said:
            return None
        since_ms = integer(said, "since_ms") if "since_ms" in said else None
        return cls(integer(said, "began_ms"), since_ms, text(said, "after"))

    def to_json(self) -> JsonObject:
        """The part of the checkpoint."""
        since: JsonObject = {} if self.since_ms is None else {"since_ms": self.since_ms}
        return {"began_ms": self.began_ms, "after": self.after, **since}


@dataclass(frozen=True, slots=True)
class _Other:
    """Another table, and whether a name led to it when it was listed, not a tombstone alone."""

    entity: str
    name: str
    live: bool

    def __str__(self) -> str:
        return f"{self.name} (entity {self.entity})"


async def find_sharer(execution: Execution, entity: str, locations: Collection[str]) -> str | None:
    """Another table, live or dropped, that names a file inside these locations, and that file; None if there is none.
    Goes on from the checkpoint, and then asks those again whose pointers have moved meanwhile, until one lease has made
    a whole round. Raises `TaskFailed` for a table of which something can't be read, `LeaseLost`, and `StoreError`."""
    folders = frozenset(location.rstrip("/") for location in locations)
    asked = Asked.parse(execution.checkpoint)
    whole = asked is None
    asked = asked or Asked(execution.taken_ms)
    while True:
        for other in await _to_ask(execution, entity, asked):
            file = await _file_inside(execution, other, folders)
            if file is not None:
                return f"{other} has the file {file}"
            asked = replace(asked, after=other.entity)
            await execution.progress({**execution.checkpoint, ASKED: asked.to_json()}, 1)
        if whole:
            return None
        asked, whole = Asked(execution.taken_ms, since_ms=asked.began_ms), True


async def known_tables(execution: Sessions, entity: str, locations: Collection[str]) -> Sequence[tuple[str, str]]:
    """The name and entity of every other table. Raises `TaskFailed` for one around or inside these locations that has
    no metadata here, such as one of another format: only those who use it know which files it has."""
    own = [Location.of_normal(normal) for normal in locations]
    tables: list[tuple[str, str]] = []
    async with aclosing(other_relations(execution, entity)) as relations:
        async for name, entry in relations:
            if not has_pointer(entry):
                places = [Location.of_normal(normal) for normal in texts(entry, "locations")]
                if any(place.inside(each) or each.inside(place) for place in places for each in own):
                    raise TaskFailed(f"{name} lies there, too: which files it has is not known here")
            elif entry.get("type") == "table":
                tables.append((name, text(entry, "entity")))
    return tables


async def other_relations(execution: Sessions, entity: str) -> AsyncGenerator[tuple[str, JsonObject], None]:
    """The name and entry of all else in the catalog that is live or dropped, and not purged yet."""
    session = execution.session()
    index = (await session.state.head()).index
    for kind in ("relation\n", "tombstone\n"):
        async with aclosing(entries_in(session.state, index, kind)) as entries:
            async for key, entry in entries:
                if text(entry, "entity") == entity:
                    continue
                if kind == "tombstone\n":
                    if Tombstone(entry).state != PURGED:
                        yield dotted(texts(entry, "namespace"), text(entry, "name")), entry
                else:
                    _, namespace, name = key.split("\n")
                    yield dotted(tuple(namespace.split("\t")), name), entry


async def _to_ask(execution: Sessions, entity: str, asked: Asked) -> Sequence[_Other]:
    """Whom this round is yet to ask, in the order of entities: that of names changes with renames."""
    moved = None if asked.since_ms is None else await _moved_since(execution.session(), asked.since_ms)
    others: dict[str, _Other] = {}
    async with aclosing(other_relations(execution, entity)) as relations:
        async for name, entry in relations:
            other = text(entry, "entity")
            if entry.get("type") == "table" and other > asked.after and (moved is None or other in moved):
                others.setdefault(other, _Other(other, name, live="state" not in entry))
    return [others[other] for other in sorted(others)]


async def _moved_since(session: Session, since_ms: int) -> set[str]:
    """The entities whose pointers were written since then, as far as clocks of the store's servers agree."""
    moved: set[str] = set()
    async with aclosing(list_pointers(session, frozenset())) as pages:
        async for page in pages:
            moved |= {each.entity for each in page if each.written_ms >= since_ms - CLOCK_TOLERANCE_MS}
    return moved


async def _file_inside(execution: Sessions, other: _Other, folders: Collection[str]) -> str | None:
    """A file inside these folders that the present state of a table leads to, or the one that an undecided transaction
    would give it. Where something is gone the table is read again, if it has another state by then: its manifests may
    have been rewritten. Raises `TaskFailed`, and `StoreUnavailable` if it changes all the time."""
    read: Sequence[str] | None = None
    gone: list[str] = []
    for _ in range(MAX_ROUNDS):
        metadata = await _metadata_files(execution.session(), other.entity)
        if metadata == read:
            break
        read, gone = metadata, [] if metadata else [execution.session().state.paths.pointer(other.entity)]
        try:
            async with aclosing(_files_of(execution, metadata, gone)) as reached_files:
                async for file in reached_files:
                    location = Location.of_file(file)
                    if location is not None and any(each in folders for each in location.around()):
                        return file
        except TaskFailed as failed:
            raise TaskFailed(f"{other}: {failed}") from failed
        if not gone:
            return None
    else:
        raise StoreUnavailable(f"{other} changes faster than it can be read")
    if other.live:
        await require_dropped(execution.session(), str(other), other.entity, gone[0])
    return None


async def _metadata_files(session: Session, entity: str) -> Sequence[str]:
    """The metadata file of each state that a table has, or may turn out to have; none without a pointer."""
    pointer = await session.state.pointer(entity)
    if pointer is None:
        return []
    if pointer.intent is not None and committed(await read_decision(session.state, pointer.intent)) is None:
        return [pointer.resolved(outcome).metadata.location for outcome in (False, True)]
    return [(await resolve_for_read(session.state, pointer)).metadata.location]


async def _files_of(execution: Sessions, metadata: Sequence[str], gone: list[str]) -> AsyncGenerator[str, None]:
    """All files that these metadata files lead to. What is not there any more is added to `gone`."""
    reached = await named_by(execution, metadata)
    gone += reached.gone
    for each in (*reached.files, *reached.lists, *reached.statistics):
        yield each
    async with aclosing(files_behind(execution, reached, gone)) as files:
        async for each in files:
            yield each


async def require_dropped(session: Session, name: str, entity: str, gone: str) -> None:
    """Raises `TaskFailed` for a live table that leads to a file which is gone: that, or what it named, may have led to
    any file. What is gone of a dropped one leads nowhere: engines delete the files of what they drop, and other purges
    do."""
    if await _is_live(session, entity):
        raise TaskFailed(
            f"{name} leads to {gone}, which is gone, so nobody knows which files it has: bring that file back, or "
            "drop that table, and retry this task"
        )


async def _is_live(session: Session, entity: str) -> bool:
    """Whether a name leads to a table now."""
    index = (await session.state.head()).index
    async with aclosing(entries_in(session.state, index, "relation\n")) as entries:
        async for _, entry in entries:
            if text(entry, "entity") == entity:
                transaction = optional_text(entry, "transaction")
                return transaction is None or await transaction_committed(session.state, transaction)
    return False
