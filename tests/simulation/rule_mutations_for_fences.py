"""Fences, aborts and deadlines that are left out, one at a time: programs that are about each must find it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from arco_catalog.planning import proposals
from arco_catalog.protocol import decisions, evidence
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.evidence import fence_registry
from arco_catalog.protocol.group_commit import GroupCommitter, PendingCommit
from arco_catalog.state.access import State
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.transaction import Decision, Status
from arco_catalog.upkeep.collection import markers
from arco_catalog.upkeep.collection.run import Run
from storage_backends import ObjectStore
from storage_backends.wrappers.request import RequestStore


def fence_some(patch: pytest.MonkeyPatch, first: bool) -> None:
    rightly = evidence.fence

    async def fence(session: Session, attempts: Mapping[str, WriteSet]) -> str | None:
        entities = sorted({entity for write_set in attempts.values() for entity in write_set.pointers})
        unfenced = set(entities[1:] if first else entities[:-1])
        fenced = {attempt: write_set for attempt, write_set in attempts.items() if not unfenced & {*write_set.pointers}}
        return await rightly(session, fenced)

    patch.setattr(evidence, "fence", fence)


def the_oldest_pointer_alone_is_fenced(patch: pytest.MonkeyPatch) -> None:
    fence_some(patch, first=True)


def the_newest_pointer_alone_is_fenced(patch: pytest.MonkeyPatch) -> None:
    fence_some(patch, first=False)


def a_refused_abort_taken_for_an_abort(patch: pytest.MonkeyPatch) -> None:
    rightly = decisions.decide

    async def decide(state: State, runtime: Runtime, decision: Decision, status: Status) -> bool:
        await rightly(state, runtime, decision, status)
        return True

    patch.setattr(decisions, "decide", decide)


def members_sent_past_their_deadline(patch: pytest.MonkeyPatch) -> None:
    def _may_be_sent(self: GroupCommitter, member: PendingCommit) -> bool:
        return member.is_pending and member in self._queue

    patch.setattr(GroupCommitter, "_may_be_sent", _may_be_sent)


def a_registry_not_fenced_for_unfinished_markers(patch: pytest.MonkeyPatch) -> None:
    rightly, depth = markers._fence, 0

    async def fence(run: Run, closed: Sequence[markers.Marker]) -> bool:
        nonlocal depth
        depth += 1  # collections run concurrently: a patch in each would be undone in the wrong order
        try:
            return await rightly(run, closed)
        finally:
            depth -= 1

    async def leave(session: Session) -> None:
        if not depth:
            await fence_registry(session)

    patch.setattr(markers, "fence_registry", leave)
    patch.setattr(markers, "_fence", fence)


def a_fence_that_shows_the_registry_before_it(patch: pytest.MonkeyPatch) -> None:
    """And not the HEAD by which another process was faster: the attempt may have been that one."""
    rightly = evidence.fence_registry

    async def fence(session: Session, head: RegistryState | None = None) -> RegistryState:
        before = head or await session.state.head()
        await rightly(session, before)
        return before

    patch.setattr(evidence, "fence_registry", fence)


def attempts_cancelled_without_a_search(patch: pytest.MonkeyPatch) -> None:
    """On the HEAD that the cancellation replaces, by the takeover or by a leader. An earlier search has found
    nothing."""

    async def search(state: State, head: RegistryState, attempts: Mapping[str, WriteSet]) -> Sequence[str]:
        return [*attempts]

    patch.setattr(evidence, "_absent_from", search)
    patch.setattr(proposals, "cancels_committed", lambda proposal, head: False)


def deadlines_that_no_step_checks(patch: pytest.MonkeyPatch) -> None:
    """All three: the check before a compare-and-swap is the first, the store's own and that of a batch the others."""
    members_sent_past_their_deadline(patch)
    rightly = RequestStore.__init__

    def init(self: RequestStore, inner: ObjectStore, left_ms: Callable[[], int], **more: Any) -> None:
        rightly(self, inner, lambda: left_ms() + 1_000_000, **more)

    patch.setattr(RequestStore, "__init__", init)
    patch.setattr(Session, "check_deadline", lambda self: None)
