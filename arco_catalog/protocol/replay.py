"""The answer that a final slot holds, given again (docs/design/idempotency.md#rule-6)."""

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError, Refusal, Unsupported
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.answers import Answer, Reference, decode_answer
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.rebuilding import rebuilt
from arco_catalog.protocol.slot_claims import SlotClaims


async def replay(session: Session, kept: JsonObject) -> Answer:
    """The answer in a final slot. Raises the refusal that it is, and `CommitStateUnknown` if it can't be rebuilt."""
    session.stats.outcome = "replayed"
    match decode_answer(kept):
        case Refusal() as refusal:
            raise refusal
        case answer:
            if isinstance(answer, Reference):
                session.stats.about(answer.entity)
            try:
                return await rebuilt(session, answer)
            except (Refusal, InternalError) as lost:
                raise CommitStateUnknown(f"The answer cannot be rebuilt: {lost.message}") from lost


async def replay_only(session: Session, claims: SlotClaims | None, reason: str) -> Answer:
    """Nothing may be written, so nothing is begun; but what was done before under this key is not denied. Raises
    `Unsupported` for everything else."""
    slots = [] if claims is None else await claims.read()
    if not slots:
        raise Unsupported(f"This catalog is read-only: {reason}")
    if slots[-1].answer is None:
        raise CommitStateUnknown(f"This catalog has become read-only ({reason}), and the request had started before")
    return await replay(session, slots[-1].answer)
