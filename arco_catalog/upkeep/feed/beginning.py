"""With which tables and views the event feed begins (docs/design/events.md#rule-9)."""

from collections.abc import Sequence
from contextlib import aclosing

from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import resolve_for_read
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.feed_cursors import FeedCursors
from arco_catalog.state.fields import optional_text, text
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.transaction import committed
from arco_catalog.upkeep.feed.commit_chain import decision_after_lease
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PresentFile:
    """The current metadata file of an entity, and the version of its pointer, empty if it has an intent."""

    file: MetadataFile
    version: str


async def existing_entities(session: Session, head: RegistryState, cursors: FeedCursors) -> tuple[Sequence[str], bool]:
    """Returns the tables and views, live or dropped, that HEAD has and the feed does not, and whether these are all: no
    transaction that creates some is undecided. Aborts those without a valid lease."""
    found: list[str] = []
    ended: dict[str, bool | None] = {}
    for kind in ("relation\n", "tombstone\n"):
        async with aclosing(entries_in(session.state, head.index, kind)) as entries:
            async for _, entry in entries:
                transaction, entity = optional_text(entry, "transaction"), text(entry, "entity")
                if not has_pointer(entry) or cursors.get(entity) is not None:
                    continue
                if transaction is not None and transaction not in ended:
                    ended[transaction] = await _outcome(session, transaction)
                if transaction is None or ended[transaction]:
                    found.append(entity)
    return found, None not in ended.values()


async def _outcome(session: Session, transaction: str) -> bool | None:
    """Whether a transaction has committed; None if it is undecided and its lease is not over."""
    return committed(await decision_after_lease(session, transaction))


async def present_file(session: Session, entity: str) -> PresentFile | None:
    """Returns the metadata file that is current; None for an entity without a pointer."""
    pointer = await session.state.pointer(entity)
    if pointer is None:
        return None
    version = (pointer.version or "") if pointer.intent is None else ""
    return PresentFile((await resolve_for_read(session.state, pointer)).metadata, version)
