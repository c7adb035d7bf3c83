"""Checks and stores OpenLineage events (docs/design/lineage.md)."""

from arco_catalog.iceberg.errors import PayloadTooLarge
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.lineage_names import event_name
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.lineage import StoredEvent, encode_event, read_event
from arco_catalog.state.worker_threads import off_loop

MAX_EVENT_BYTES = 4 << 20
"""Maximum size of one event. Those of Spark have the schemas of all datasets and the sources of up to 1,000
columns, and query plans if the listener is set to send them."""


async def receive_event(session: Session, event: JsonObject, principal: str) -> None:
    """Stores an OpenLineage event under the current day. An identical event of the same principal is stored once a day,
    so clients may send it again. Raises `BadRequest` for an invalid event, `PayloadTooLarge` for one that
    takes more than `MAX_EVENT_BYTES` as stored, with the principal, `Unsupported` if the catalog is read-only,
    `StoreError`, and where access is restricted, by grants or a policy, the errors of `Session.head`."""
    if session.is_restricted:
        await session.head()
    session.check_writable()

    def checked() -> tuple[str, bytes]:
        body = encode_event(StoredEvent(event, principal))
        return event_name(body, read_event(event), principal), body

    name, body = await off_loop(session.request.body_bytes, checked)
    if len(body) > MAX_EVENT_BYTES:
        raise PayloadTooLarge(
            f"The OpenLineage event takes {len(body):,} bytes in the form that is stored, with the sender, and at most "
            f"{MAX_EVENT_BYTES:,} are allowed"
        )
    await session.state.create(session.state.paths.lineage_event(name, session.now_ms()), body)
