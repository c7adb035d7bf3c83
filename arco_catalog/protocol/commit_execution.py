"""The steps of a commit, which the commit loop takes in order: first writes, make ready, swap, writes after it."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.mutation import ReadSet
from arco_catalog.protocol.planned_commit import PlannedCommit, PointerCommit, Write
from arco_catalog.protocol.writing import writes
from storage_backends import Applied, PreconditionFailed

Revalidate: TypeAlias = Callable[[ReadSet], Awaitable[bool]]
"""Returns whether an attempt may commit at a version that was read after the plan, because no attempt of the request
has committed (docs/design/commit.md#rule-1). Raises `Superseded` if the next slot is not empty, `CatalogChanged` if
the catalog now reads idempotency keys in another way, and `CommitStateUnknown` if evidence was removed."""


class CommitExecution(ABC):
    """The interface by which the commit loop carries out one planned commit. An object is used once."""

    def __init__(self, session: Session, plan: PlannedCommit) -> None:
        self.session = session
        self._first = plan.first
        self._after = plan.after

    def first_writes(self) -> list[Write]:
        """Returns the writes that the planned commit needs before the compare-and-swap. Makes none of them."""
        return writes(self.session, *self._first)

    async def make_ready(self) -> None:
        """Does what a commit needs between the first writes and the compare-and-swap, such as placing intents; nothing
        by default. Raises `AttemptAborted` if this attempt can no longer succeed, and `StoreError` or
        `CommitStateUnknown` if the store fails."""
        return None

    @abstractmethod
    async def swap(self, revalidate: Revalidate) -> Applied | PreconditionFailed:
        """Sends the compare-and-swap, which is the commit point. If it commits at another version than that of the
        plan, it first calls `revalidate` for that version, and sends nothing if that returns False. Returns
        `PreconditionFailed` if nothing was sent for that reason, or if another write applied first, which may be an
        earlier sending of this one. Raises `CommitStateUnknown`, `StoreError`, after which the attempt may have
        committed nevertheless, or may yet, through a proposal or a transaction, and `AttemptAborted` if the attempt can
        no longer commit."""

    def after_writes(self) -> list[Write]:
        """Returns the planned commit's writes that follow the compare-and-swap, at best effort. Makes none of them."""
        return writes(self.session, *self._after)


class PointerExecution(CommitExecution):
    """Carries out a planned commit to one table or view: the swap replaces the pointer at the version that was planned
    on."""

    def __init__(self, session: Session, plan: PointerCommit) -> None:
        super().__init__(session, plan)
        self._pointer = plan.pointer
        self._successor = plan.successor

    async def swap(self, revalidate: Revalidate) -> Applied | PreconditionFailed:
        """Replaces the pointer at the version of the plan, without a call of `revalidate`. If that applied, it removes
        the former metadata file from the cache. Returns `PreconditionFailed` if the pointer has another version,
        perhaps by an earlier sending of this very swap. Raises `CommitStateUnknown`, and `StoreError` if nothing was
        applied."""
        outcome = await self.session.state.move_pointer(self._successor, self._pointer.version)
        if isinstance(outcome, Applied):
            self.session.files.forget(self._pointer.metadata.location)
        return outcome
