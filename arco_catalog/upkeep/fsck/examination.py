"""What the parts of a check share: the session, what earlier parts learned, and reading that is bounded."""

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
from storage_backends import Cursor, Found, Listed

T = TypeVar("T")

AT_ONCE = 32
"""Objects read beside each other."""
SETTLING_MS = 10 * 60_000

LIVE = "live"

Findings = AsyncGenerator[Finding, None]


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view that the registry names, or a dropped one: `state` is `live`, or that of its tombstone."""

    entity: str
    kind: str
    name: str
    state: str
    key: str
    """That of its entry in the index."""
    locations: tuple[str, ...] = ()
    borrowed: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        """What findings call it."""
        return f"{'' if self.state == LIVE else f'{self.state} '}{self.kind} {self.name}"


@dataclass
class Examination:
    """One check of one catalog, and what its parts learn for those after them."""

    session: Session
    settling_ms: int = SETTLING_MS
    """What is younger may be of a request that is under way, or of a machine whose clock is ahead."""
    relations: dict[str, Relation] = field(default_factory=dict)
    """What the registry names, by entities."""
    intended: set[str] = field(default_factory=set)
    """Entities whose names wait for transactions."""
    current: dict[str, Pointer] = field(default_factory=dict)
    """Pointers of relations, without intents."""
    purges: dict[str, Tombstone] = field(default_factory=dict)
    """Tombstones that wait for their tasks, by these."""
    unconfirmed: dict[str, str] = field(default_factory=dict)
    """Operations of registry commits of which nothing tells yet whether they became HEAD, with their commits."""
    catalogs: set[str] = field(default_factory=set)
    """Folders that hold the state of the realm's catalogs, of those that have names."""
    folders: dict[str, int] = field(default_factory=dict)
    """Folders of catalogs that there are, with the time of their newest object."""
    receipts: set[str] = field(default_factory=set)
    """Keys of all receipts."""
    head_sequence: int = 0
    """The sequence number of HEAD."""
    index_read: bool = False
    """Whether all of the registry's index could be read."""
    looked_at: int = 0
    """Objects that were looked at so far."""
    at: str = ""
    """The table whose files are looked at."""
    progress: Callable[["Examination"], None] = lambda examination: None
    """Called now and then."""

    @property
    def paths(self) -> Paths:
        return self.session.state.paths

    @property
    def is_realm(self) -> bool:
        """Whether it is the registry of a realm that is checked, and not that of a catalog."""
        return self.paths.folder == REALM_FOLDER

    @property
    def is_service(self) -> bool:
        """Whether it is the delegation service that is checked."""
        return self.paths == SERVICE

    def look_at_one(self) -> None:
        """Counts an object that is looked at."""
        self.looked_at += 1
        if self.looked_at % AT_ONCE == 0:
            self.progress(self)

    async def is_still(self, relation: Relation) -> bool:
        """Whether the registry says of a relation now what it said when its index was read."""
        state = self.session.state
        index = (await state.head()).index
        await load(state, index, Needs(keys=[relation.key]))
        entry = index.get(relation.key)
        if entry is None or entry.get("entity") != relation.entity:
            return False
        return relation.state == LIVE or Tombstone(entry).state == relation.state

    async def head_stands(self) -> bool:
        """Whether HEAD is what it was when it was looked at: else what was built on it may have become HEAD since."""
        return (await self.session.state.head()).sequence == self.head_sequence

    async def read(self, key: str) -> Found | None:
        """An object as it is now, None if there is none."""
        self.looked_at += 1
        found = await self.session.state.store.get(key)
        return found if isinstance(found, Found) else None

    async def may_be_collected(self, entity: str, file: MetadataFile) -> bool:
        """Whether the receipt of an entity's file may have been collected, or nothing tells: a floor that can't be read
        is told by itself."""
        try:
            return is_behind(file.ms, await read_floor(self.session.state, entity))
        except InternalError:
            return True

    async def listed(self, prefix: str) -> AsyncGenerator[Listed, None]:
        """All objects under a prefix, in no order."""
        after: Cursor | None = None
        while True:
            page = await self.session.state.store.list(prefix, after)
            for each in page.entries:
                yield each
            after = page.after
            if after is None:
                return

    async def each(self, items: Iterable[T], look: Callable[[T], Coroutine[None, None, Sequence[Finding]]]) -> Findings:
        """What looking at each of these finds, a bounded number at a time."""
        for batch in batches(items, AT_ONCE):
            found = await gather(*(look(item) for item in batch))
            self.progress(self)
            for findings in found:
                for finding in findings:
                    yield finding
