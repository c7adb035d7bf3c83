"""Registry commits of the catalog itself, not of a request: for example, they place and settle intents on names,
reserve locations, cancel attempts, and record settings.

A table that a transaction creates is an intent on its name: the registry's entry carries the transaction, and counts
once that committed (docs/design/transaction.md). Such commits have fresh operation ids, which are evidence of nothing.
In a registry with proposals they are proposed as those of requests are (docs/design/registry.md#proposals), unless they
change what is outside of the index.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.name_intents import settling
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.protocol.mutation import AttemptAborted
from arco_catalog.protocol.prepared_commit import PreparedCommit
from arco_catalog.state.index import Edits
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.proposal import Proposal
from arco_catalog.state.reads import Reads, recorded
from arco_catalog.state.registry import Operation, RegistryState
from storage_backends import Applied, StoreError, StoreUnavailable
from storage_backends.lazy_dataclass import dataclass


async def settle_decided(session: Session, decided: Mapping[str, bool]) -> None:
    """Settles the intents on names of these transactions in the registry: intents of committed ones become entries, and
    the others are removed. `decided` maps each transaction, which must be decided, to whether it committed. Writes
    nothing if there are no such intents. Raises as `change_head` does."""
    one = [*decided] if len(decided) == 1 else None
    detail: JsonObject = {"transactions": [*decided]} if one is None else {"transaction": one[0]}
    await change_registry(session, "settle-names", detail, lambda head: settling(head.index, decided))


async def try_to_settle(session: Session, decided: Mapping[str, bool]) -> bool:
    """Settles intents on names as `settle_decided` does, not intents on pointers, and returns whether it succeeded.
    False after a failure of the store, an unknown outcome or a corrupt record, which is only logged and counted: a
    later request that reads an intent settles it, and so does the reconciler."""
    try:
        await settle_decided(session, decided)
    except (StoreError, CommitStateUnknown, InternalError) as error:
        session.note_failed_write("the registry commit that settles intents on names", error)
        return False
    return True


async def internal_commit(
    session: Session, kind: str, detail: JsonObject, head: RegistryState, edits: Edits
) -> PreparedCommit:
    """Returns a registry commit of the catalog itself on this HEAD, not yet written: one operation of this kind, with a
    fresh id, and with the request's principal in the detail. Raises `SegmentGone`."""
    return await PreparedCommit.of(session.state, head, edits, [_operation(session, kind, detail)])


def _operation(session: Session, kind: str, detail: JsonObject, cancels: Sequence[str] = ()) -> Operation:
    """Returns the operation, with a fresh id, for the history of a registry commit that the catalog makes itself. The
    detail also names the request's principal."""
    by: JsonObject = {"principal": session.request.principal, **detail}
    return Operation(session.runtime.ulid(), kind, by, None, cancels)


async def change_registry(
    session: Session,
    kind: str,
    detail: JsonObject,
    edit: Callable[[RegistryState], Steps[Edits | None]],
    *,
    has_lost: bool = False,
) -> None:
    """Makes a registry commit of the changes that `edit` computes for HEAD, on fresh reads until it applies; none if
    there is nothing to change (any more). Raises as `change_head` does, and what `edit` raises. `has_lost` is that of
    `change_head`."""

    async def change(head: RegistryState) -> HeadChange | None:
        lookups: list[Needs] = []
        edits = await carry_out(session.state, head.index, recorded(edit(head), lookups))
        return HeadChange(head, detail, edits, lookups=lookups) if edits else None

    await change_head(session, kind, change, has_lost=has_lost)


@dataclass(frozen=True, slots=True)
class HeadChange:
    """A change of the registry by the catalog itself: HEAD with new values outside of the index, the detail for the
    history, changes of the index, and attempts to cancel, which have not committed up to HEAD. `lookups` are those on
    which the changes of the index depend; None if the change can't be proposed, because it has new values outside of
    the index, which a proposal does not contain."""

    head: RegistryState
    detail: JsonObject
    edits: Edits = field(default_factory=dict)
    cancels: Sequence[str] = ()
    lookups: Sequence[Needs] | None = None


Change = Callable[[RegistryState], Awaitable[HeadChange | None]]
"""Computes the change to make on a HEAD; None if there is nothing to change (any more)."""


async def change_head(
    session: Session, kind: str, change: Change, *, when_late: str | None = None, has_lost: bool = False
) -> RegistryState:
    """Makes a registry commit of the change that `change` returns for HEAD, on fresh reads until it applies. Returns
    the `head` of the change that applied, or, if `change` returns None, HEAD as it was read; the last call of `change`
    decides what was done. In a registry with proposals it proposes the change, if that may be proposed, once it has
    lost HEAD, or `has_lost` it before, or if HEAD must rest or proposals of others wait. Raises `StoreError`, what
    `change` raises, and `CommitStateUnknown`; with `when_late`, a text about what to do then, also past the
    deadline."""
    known, lost = session.state.cached_head(), _RefusedCommit()
    if not has_lost or known is None or not known.allows_cancellations:
        async with session.lock_registry():
            outcome = await _commit_alone(session, kind, change, when_late)
        if isinstance(outcome, RegistryState):
            return outcome
        lost = outcome
    return await _propose(session, kind, change, lost)


@dataclass(frozen=True, slots=True)
class _RefusedCommit:
    """A change that has not been seen to apply, and must be tried again or proposed. `commit` is the last commit of it,
    sent or not, and `changed` the `head` of the change; both are None if no commit was prepared. A commit that
    lost the compare-and-swap of HEAD may have applied before, if the store's answer was lost."""

    commit: PreparedCommit | None = None
    changed: RegistryState | None = None

    def applied_in(self, head: RegistryState) -> RegistryState | None:
        """Returns `changed`, the `head` of the change, if the commit of it is seen in `head` after all; None if it is
        not, or if there is no commit."""
        return self.changed if self.commit is not None and self.commit.is_in(head) else None


async def _commit_alone(
    session: Session, kind: str, change: Change, when_late: str | None
) -> RegistryState | _RefusedCommit:
    """Makes the change as `change_head` does, by compare-and-swaps of HEAD, on fresh reads until one applies, and
    returns the `head` of the change, or HEAD as it is if there is nothing to change. If the change may be proposed, it
    tries only once, and not at all if HEAD must rest or proposals wait, and then returns the commit that lost or was
    not sent, if there is one. Raises `CommitStateUnknown` after the deadline if `when_late` is given."""
    lost = _RefusedCommit()
    while True:
        head = await session.state.head()
        if (applied := lost.applied_in(head)) is not None:
            return applied
        changed = await change(head)
        if changed is None:
            return head
        may_propose, rest_ms = head.allows_cancellations and changed.lookups is not None, session.state.rest_ms(head)
        if may_propose and rest_ms:
            return lost
        operation = _operation(session, kind, changed.detail, changed.cancels)
        commit = await PreparedCommit.of(session.state, changed.head, changed.edits, [operation])
        if when_late is not None and session.late():
            raise CommitStateUnknown(
                f"The deadline of the command has passed, so whether the change was committed is unknown: {when_late}"
            )
        lost = _RefusedCommit(commit, changed.head)
        if may_propose:
            await commit.put_and_read_bell()
            return changed.head if await commit.try_swap() else lost
        await commit.put()
        if rest_ms:
            await session.state.rest(rest_ms)
        with suppress(StoreUnavailable):  # it was not applied: the store may throttle it, and is read next
            if isinstance(await commit.swap(), Applied):
                return changed.head
        await session.state.pause()


async def _propose(session: Session, kind: str, change: Change, lost: _RefusedCommit) -> RegistryState:
    """Makes the change as `change_head` does, but through proposals, which other processes may commit, too. Each has a
    fresh id, so that no process can have committed or cancelled it up to its base."""
    from arco_catalog.protocol.proposed_commit import ProposedCommit  # a cold start does not pay for it

    while True:
        head = await session.state.head()
        if (applied := lost.applied_in(head)) is not None:
            return applied
        changed = await change(head)
        if changed is None:
            return head
        proposal = Proposal.of(
            head,
            _operation(session, kind, changed.detail, changed.cancels),
            changed.edits,
            Reads.of(head, changed.lookups or ()),
            base=head.sequence,
            written_ms=session.now_ms(),  # it relies on no files of its own
        )
        session.check_deadline()
        try:
            await ProposedCommit(session, proposal, head).run()
        except AttemptAborted:
            continue
        return changed.head
