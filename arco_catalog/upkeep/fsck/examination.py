"""The state that all parts of a check share: the session, the facts that one part collects for later ones, and
functions that read objects."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.planning.collection import is_behind
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.lookup import load
from arco_catalog.state.floors import read_floor
from arco_catalog.state.needs import Needs
from arco_catalog.state.paths import REALM_FOLDER, SERVICE, Paths
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.tombstone import Tombstone
from arco_catalog.upkeep.fsck.findings import Finding
from storage_backends import Found

T = TypeVar("T")

AT_ONCE = 32
"""Objects that are read concurrently."""
SETTLING_MS = 10 * 60_000

LIVE = "live"

Findings = AsyncGenerator[Finding, None]


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view in the registry that a check examines, live or dropped. `state` is `live`, or the state of its
    tombstone."""

    entity: str
    kind: str
    name: str
    state: str
    key: str
    """The key of the entry in the index."""
    locations: tuple[str, ...] = ()
    borrowed: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        """The kind and name of the table or view for messages, such as "purged table db.t"; the state is left out if it
        is live."""
        return f"{'' if self.state == LIVE else f'{self.state} '}{self.kind} {self.name}"


@dataclass
class Examination:
    """The state of one check of a catalog, of a realm's registry or of a delegation service, with the facts that its
    parts collect for later parts."""

    session: Session
    settling_ms: int = SETTLING_MS
    """The age below which an object may be of a request under way, or of a machine with a fast clock."""
    relations: dict[str, Relation] = field(default_factory=dict)
    """The relations in the registry, by entity."""
    intended: set[str] = field(default_factory=set)
    """Entities with names that wait for transactions."""
    current: dict[str, Pointer] = field(default_factory=dict)
    """Pointers of relations, without intents."""
    purges: dict[str, Tombstone] = field(default_factory=dict)
    """Tombstones that wait for their purge, by task."""
    unconfirmed: dict[str, str] = field(default_factory=dict)
    """Operations of registry commits that may have become HEAD, with their commits."""
    is_closed: bool = False
    """Whether nothing can be created in the catalog, because its drop began."""
    catalogs: set[str] = field(default_factory=set)
    """Folders with the state of the realm's named catalogs."""
    folders: dict[str, int] = field(default_factory=dict)
    """Folders of catalogs that exist, with the time of the newest object."""
    receipts: set[str] = field(default_factory=set)
    """Keys of all receipts."""
    head_sequence: int = 0
    """The sequence number of HEAD."""
    index_read: bool = False
    """Whether all segments of the registry's index could be read; an entry that can't be read does not count."""
    entries_read: bool = False
    """Whether all entries of the registry's index could be read. Only then is something not in it if no entry has
    it."""
    examined: int = 0
    """The number of objects that were examined."""
    at: str = ""
    """The table that is examined at the moment."""
    progress: Callable[["Examination"], None] = lambda examination: None
    """Called after each batch."""

    @property
    def paths(self) -> Paths:
        """The paths of the checked objects in the store: of a catalog, a realm or a delegation service."""
        return self.session.state.paths

    @property
    def is_realm(self) -> bool:
        """Whether the check is of a realm's registry, and not of a catalog."""
        return self.paths.folder == REALM_FOLDER

    @property
    def is_service(self) -> bool:
        """Whether the check is of a delegation service."""
        return self.paths == SERVICE

    def look_at_one(self) -> None:
        """Counts one examined object, and calls `progress` if the number is a multiple of `AT_ONCE` then."""
        self.examined += 1
        if self.examined % AT_ONCE == 0:
            self.progress(self)

    async def is_still(self, relation: Relation) -> bool:
        """Whether HEAD as it is now still has the relation under its key, with the same entity and state."""
        state = self.session.state
        index = (await state.head()).index
        await load(state, index, Needs(keys=[relation.key]))
        entry = index.get(relation.key)
        if entry is None or entry.get("entity") != relation.entity:
            return False
        return relation.state == LIVE or Tombstone(entry).state == relation.state

    async def head_stands(self) -> bool:
        """Whether HEAD is still the one that the check read. If another commit is HEAD by now, it may be one that the
        check found as a child of HEAD."""
        return (await self.session.state.head()).sequence == self.head_sequence

    async def read(self, key: str) -> Found | None:
        """Reads the object at a key of the store, and counts it; None if it does not exist."""
        self.examined += 1
        return await self.session.state.read(key)

    async def may_be_collected(self, entity: str, file: MetadataFile) -> bool:
        """Whether the receipt of this metadata file of an entity may have been collected, so that it may be missing.
        True if the entity's floor can't be read, which is a finding of its own."""
        try:
            return is_behind(file.ms, await read_floor(self.session.state, entity))
        except InternalError:
            return True

    async def each(self, items: Iterable[T], look: Callable[[T], Coroutine[None, None, Sequence[Finding]]]) -> Findings:
        """Calls `look` for the items, in batches of up to `AT_ONCE` concurrent calls, and yields the findings that the
        calls return. Calls `progress` after every batch."""
        for batch in batches(items, AT_ONCE):
            found = await gather(*(look(item) for item in batch))
            self.progress(self)
            for findings in found:
                for finding in findings:
                    yield finding
