"""Keeps OpenLineage events beside the receipts of commits (docs/design/lineage.md)."""

from arco_catalog.iceberg.errors import PayloadTooLarge, Unsupported
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.lineage import StoredEvent, encode_event, read_event
from arco_catalog.state.worker_threads import off_loop

MAX_EVENT_BYTES = 4 << 20
"""Of one event, as it is kept. Those of Spark have the schemas of all datasets, and tell of each of up to 1,000 columns
from which others it comes; plans, too, if that is asked for."""


async def receive_event(session: Session, event: JsonObject, principal: str) -> None:
    """Keeps an event under the day on which it came. The same event of the same principal is kept once a day, so it may
    be sent again whatever was answered. Raises `BadRequest` for what is none, `PayloadTooLarge`, `Unsupported` where
    the catalog is read-only, and `StoreError`."""
    if session.is_restricted:
        await session.head()
    if session.settings.read_only_because is not None:
        raise Unsupported(f"This catalog is read-only: {session.settings.read_only_because}")

    def checked() -> tuple[str, bytes]:
        read_event(event)
        return encode_event(StoredEvent(event, principal))

    name, body = await off_loop(session.request.body_bytes, checked)
    if len(body) > MAX_EVENT_BYTES:
        raise PayloadTooLarge(f"The event is {len(body):,} bytes long, and at most {MAX_EVENT_BYTES:,} are kept")
    await session.state.create(session.state.paths.lineage_event(name, session.now_ms()), body)
