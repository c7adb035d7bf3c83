"""The repairs of `arco fsck --repair --apply`. Each reads the object again, uses the protocol of writers, and does
nothing if it is not necessary any more."""

from dataclasses import dataclass, replace
from functools import partial

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.operations.tasks import missing_hint
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import read_decision, resolve_for_read
from arco_catalog.protocol.evidence import fence_registry
from arco_catalog.protocol.internal_commits import settle_decided
from arco_catalog.protocol.past_heads import past_head_body
from arco_catalog.state.access import State
from arco_catalog.state.commit_record import commit_id, is_object_of_same_commit
from arco_catalog.state.locations import Location
from arco_catalog.state.metadata_claim import Claim, claim
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.task import ENDED
from arco_catalog.state.task_log import put_hint, read_task, remove_hint
from arco_catalog.state.transaction import committed
from arco_catalog.upkeep.ensure_receipt import ensure_receipt
from storage_backends import Found


@dataclass(frozen=True, slots=True)
class PutHint:
    """Repair that puts the hint of a task. A superfluous hint does no harm: the next worker removes it."""

    task: str

    async def __call__(self, session: Session) -> bool:
        due_ms = await missing_hint(session, self.task)
        if due_ms is None:
            return False
        await put_hint(session.state, self.task, due_ms)
        return True


@dataclass(frozen=True, slots=True)
class RemoveHint:
    """Repair that removes the hint of an ended task. The hint is too old to be of a new submission of the task."""

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
    """Repair that writes the committed receipt of a metadata file that is known to have been current, as the reconciler
    does."""

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
    """Repair that writes the missing commit object of HEAD, which is a copy of HEAD. There is no copy of older commits.
    Writes nothing if another commit is HEAD by now, or the object came back, also with only the edits of the index."""

    commit: str

    async def __call__(self, session: Session) -> bool:
        state = session.state
        head = await state.store.get(state.paths.manifest)
        if not isinstance(head, Found) or commit_id(head.body, state.paths.manifest) != self.commit:
            return False
        key = state.paths.registry_commit(self.commit)
        came_back = partial(is_object_of_same_commit, key, head.body)
        return await state.create(key, head.body, made_from_ours=came_back) is not None


@dataclass(frozen=True, slots=True)
class WriteWholeCommit:
    """Repair that makes a registry commit with a whole object, where HEAD can't be computed from the objects of its
    commits, so that it is not lost with manifest.json."""

    async def __call__(self, session: Session) -> bool:
        has_committed = False
        while not await _can_be_restored(session.state, head := await session.state.head()):
            session.check_deadline()
            await fence_registry(session, replace(head, next_is_whole=True))
            has_committed = True
        return has_committed


async def _can_be_restored(state: State, head: RegistryState) -> bool:
    """Whether HEAD can be computed from the objects of commits; true also if there is no registry yet. Raises
    `StoreError`."""
    try:
        return head.version is None or await past_head_body(state, head.id or "") == head.body
    except (CommitStateUnknown, InternalError):
        return False


@dataclass(frozen=True, slots=True)
class ClaimFile:
    """Repair that writes the claim on the metadata file from which a table or view was registered. An existing claim
    stays."""

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
    """Repair that settles the intents of a transaction on names in the registry by its decision. Does nothing without a
    decision, or while it is pending; fails if it can't be read."""

    transaction: str

    async def __call__(self, session: Session) -> bool:
        decided = committed(decision) if (decision := await read_decision(session.state, self.transaction)) else None
        if decided is None:
            return False
        await settle_decided(session, {self.transaction: decided})
        return True
