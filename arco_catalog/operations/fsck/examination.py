"""What the parts of a check share: the session, what earlier parts learned, and reading that is bounded."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from arco_catalog.operations.fsck.findings import Finding
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.paths import Paths
from storage_backends import Cursor, Found, Listed

T = TypeVar("T")

AT_ONCE = 32
"""Objects read beside each other."""
SETTLING_MS = 10 * 60_000
"""What is younger may be of a request that is under way, or of a machine whose clock is ahead."""

Findings = AsyncGenerator[Finding, None]


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view that the registry names, or a dropped one."""

    entity: str
    kind: str
    name: str
    live: bool


@dataclass
class Examination:
    """One check of one catalog. `relations` are those that the registry names, by their entities, and `current` the
    metadata file that the pointer of each names. `unconfirmed` are operations of registry commits of which nothing
    tells yet whether they became HEAD, with their commits. `looked_at` counts objects that were read."""

    session: Session
    relations: dict[str, Relation] = field(default_factory=dict)
    current: dict[str, str] = field(default_factory=dict)
    unconfirmed: dict[str, str] = field(default_factory=dict)
    registry_read: bool = False
    looked_at: int = 0
    progress: Callable[[int], None] = lambda looked_at: None

    @property
    def paths(self) -> Paths:
        return self.session.state.paths

    async def read(self, key: str) -> Found | None:
        """An object as it is now, None if there is none."""
        self.looked_at += 1
        found = await self.session.state.store.get(key)
        return found if isinstance(found, Found) else None

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
            self.progress(self.looked_at)
            for findings in found:
                for finding in findings:
                    yield finding
