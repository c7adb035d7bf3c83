"""What `arco fsck --repair --apply` does. Each repair looks again, goes through the protocol that writers go through,
and comes to nothing if it is not needed (any more)."""

from dataclasses import dataclass

from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.operations.tasks import missing_hint
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import read_decision, resolve_for_read
from arco_catalog.protocol.internal_commits import settle_decided
from arco_catalog.state.fields import parse_record, text
from arco_catalog.state.locations import Location
from arco_catalog.state.metadata_claim import Claim, claim
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.task import ENDED
from arco_catalog.state.task_log import put_hint, read_task, remove_hint
from arco_catalog.state.transaction import committed
from arco_catalog.upkeep.ensure_receipt import ensure_receipt
from storage_backends import Found


@dataclass(frozen=True, slots=True)
class PutHint:
    """Puts a hint that leads to a task: one too many does no harm, and the next worker removes it."""

    task: str

    async def __call__(self, session: Session) -> bool:
        due_ms = await missing_hint(session, self.task)
        if due_ms is None:
            return False
        await put_hint(session.state, self.task, due_ms)
        return True


@dataclass(frozen=True, slots=True)
class RemoveHint:
    """Removes a hint of a task that has ended. It is so old that nobody is about to submit the task again behind it."""

    task: str
    key: str

    async def __call__(self, session: Session) -> bool:
        stored = await read_task(session.state, self.task)
        if stored is None or stored.task.status not in ENDED:
            return False
        await remove_hint(session.state, self.key)
        return True


@dataclass(frozen=True, slots=True)
class WriteReceipt:
    """Writes the committed receipt of a file that is known to have been current, as the reconciler does."""

    entity: str
    file: MetadataFile

    async def __call__(self, session: Session) -> bool:
        pointer = await session.state.pointer(self.entity)
        if pointer is None:
            return False
        stats = ReconcileStats()
        await ensure_receipt(session, await resolve_for_read(session.state, pointer), self.file, stats, dry=False)
        return stats.written > 0


@dataclass(frozen=True, slots=True)
class CopyHead:
    """Writes the commit object of HEAD again, which is a copy of it. Of a commit that HEAD has left there is none."""

    commit: str

    async def __call__(self, session: Session) -> bool:
        state = session.state
        head = await state.store.get(state.paths.manifest)
        if not isinstance(head, Found) or text(parse_record(head.body, state.paths.manifest), "id") != self.commit:
            return False
        await state.create(state.paths.registry_commit(self.commit), head.body)
        return True


@dataclass(frozen=True, slots=True)
class ClaimFile:
    """Claims the file that a table was registered from: whichever claim is first stands."""

    entity: str
    file: str

    async def __call__(self, session: Session) -> bool:
        claim_id = session.runtime.ulid()
        stands = await claim(
            session.state, Location.parse(self.file), Claim.REGISTERED, entity=self.entity, claim_id=claim_id
        )
        return stands is Claim.REGISTERED


@dataclass(frozen=True, slots=True)
class SettleNames:
    """Takes the intents of a transaction out of the registry, as its decision says. What is not decided by an object
    that can be read is left to those who may decide it."""

    transaction: str

    async def __call__(self, session: Session) -> bool:
        decided = committed(decision) if (decision := await read_decision(session.state, self.transaction)) else None
        if decided is None:
            return False
        await settle_decided(session, {self.transaction: decided})
        return True
