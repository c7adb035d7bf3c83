"""Replays the answer that the final slot of an idempotency key's marker holds (docs/design/idempotency.md#rule-6)."""

from arco_catalog.iceberg.errors import CatalogChanged, CommitStateUnknown, InternalError, Refusal, Unsupported
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.answers import Answer, Reference, decode_answer
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.idempotency import EXPIRED, IdempotencyGuard
from arco_catalog.protocol.key_resolution import CHANGED
from arco_catalog.protocol.rebuilding import rebuilt
from arco_catalog.state.marker import CLOSED, COLLECTED


async def replay(session: Session, kept: JsonObject) -> Answer:
    """Returns the answer that is stored in the final slot (`kept`) of an idempotency key's marker, or raises it if it
    is an error; records in the request's statistics that it was replayed. Raises `CommitStateUnknown` if the answer
    can't be rebuilt, or the marker is being deleted. Only for a closed marker, it reads HEAD, and raises
    `CatalogChanged` if the catalog reads keys in another way now, else `CommitStateUnknown`."""
    session.stats.outcome = "replayed"
    if kept == COLLECTED:
        raise CommitStateUnknown(EXPIRED, "key-expired")
    if CLOSED in kept:
        raise await _closed(session)
    match decode_answer(kept):
        case Refusal() as refusal:
            raise refusal
        case answer:
            if isinstance(answer, Reference):
                session.stats.about(answer.entity)
            try:
                return await rebuilt(session, answer)
            except (Refusal, InternalError) as lost:
                raise CommitStateUnknown(
                    "This request was carried out before, so it must not be sent with a new key, but its "
                    f"answer cannot be given again: {lost.message}",
                    "result-lost",
                ) from lost


async def _closed(session: Session) -> CatalogChanged | CommitStateUnknown:
    """Reads HEAD, and returns the error for a key with a closed marker: `CatalogChanged` if the catalog reads keys in
    another way by now than when the request's key was resolved, else `CommitStateUnknown`, since it did meanwhile."""
    head = await session.state.head()
    if head.key_settings != session.request.key_settings:
        return CatalogChanged(CHANGED)
    return CommitStateUnknown(
        "Whether this request was applied is unknown: since it was first sent, this catalog has read "
        "idempotency keys in another way for a time. Look whether the change is there before you make it with "
        "a new key",
        "key-settings",
    )


async def answer_read_only(session: Session, guard: IdempotencyGuard, reason: str) -> Answer:
    """Answers a mutation on a catalog that is read-only, and writes nothing: returns the final answer if the request's
    key has one, or raises it if it is an error. `reason` is why the catalog is read-only. Raises `Unsupported` if there
    is no key or no attempt under it, `CommitStateUnknown` if there is an attempt without a final answer, and as
    the methods of `IdempotencyGuard` and a repeated answer do."""
    slots = await guard.read()
    if not slots:
        raise Unsupported(f"This catalog is read-only, since the store could lose commits: {reason}")
    if slots[-1].answer is None:
        message = (
            "Whether this request was applied is unknown: it was sent before, and the catalog has become read-only "
            f"since ({reason})"
        )
        raise CommitStateUnknown(message, "read-only")
    return await replay(session, slots[-1].answer)
