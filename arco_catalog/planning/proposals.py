"""Decides which proposals of other processes a registry commit takes in, and which it cancels
(docs/design/registry.md#proposals)."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import field, replace
from enum import Enum, auto

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.index import Edits, Growing
from arco_catalog.state.needs import Steps
from arco_catalog.state.proposal import Proposal
from arco_catalog.state.registry import Operation, RegistryState
from storage_backends.lazy_dataclass import dataclass


class Verdict(Enum):
    """What a process that makes the next registry commit does with another process's proposal: take it into the commit,
    cancel its attempt, or leave it."""

    TAKE_IN = auto()
    CANCEL = auto()
    LEAVE = auto()
    """Its attempt is committed or cancelled already, or only its own process can find out whether it is; or it is older
    than a request may be, so that files of it may be gone."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much a registry commit may take in: a number of proposals, and roughly the bytes that they add to HEAD."""

    proposals: int
    size: int


@dataclass(frozen=True, slots=True)
class Leading:
    """What a registry commit does for other processes: the index changes and operations of the proposals that it takes
    in, in their order, and the attempts of the proposals that it cancels. `is_full` is whether a proposal that holds
    did not fit."""

    changes: Edits = field(default_factory=dict)
    operations: Sequence[Operation] = ()
    cancels: Sequence[str] = ()
    is_full: bool = False


def judge_proposal(proposal: Proposal, head: RegistryState, read_ms: int, lifetime_ms: int) -> Steps[Verdict]:
    """Returns what a leader does with a proposal in a commit that replaces `head`, whose index has the changes before
    it in that commit: it takes the proposal in if the plan would be the same there and no attempt that it cancels is
    committed, else it cancels the attempt. It leaves a proposal whose attempt is committed or cancelled, or whose
    `base` is before the commits that `head` lists.

    `read_ms` is the store's time at which the leader read `head`, and `lifetime_ms` the time of a request: a change
    whose files are older is left, because a collection may have deleted them.
    """
    attempt = proposal.attempt
    if not head.remembers(proposal.base) or head.commit_of(attempt) is not None or head.is_cancelled(attempt):
        return Verdict.LEAVE
    if proposal.written_ms + lifetime_ms < read_ms:
        return Verdict.LEAVE
    if cancels_committed(proposal, head):
        return Verdict.CANCEL
    return Verdict.TAKE_IN if (yield from proposal.still_holds(head)) else Verdict.CANCEL


def cancels_committed(proposal: Proposal, head: RegistryState) -> bool:
    """Whether a proposal cancels an attempt that `head` lists as committed."""
    return any(head.commit_of(attempt) is not None for attempt in proposal.operation.cancels)


def cancels_any(proposal: Proposal, attempts: Set[str]) -> bool:
    """Whether a proposal cancels one of these attempts, which the same commit takes in before it."""
    return not attempts.isdisjoint(proposal.operation.cancels)


def ended_by(proposal: Proposal) -> Set[str]:
    """Returns the attempts that a commit ends by a proposal: its own, and those that it cancels."""
    return {proposal.attempt, *proposal.operation.cancels}


def lead(
    head: RegistryState, proposals: Iterable[Proposal], capacity: Capacity, read_ms: int, lifetime_ms: int
) -> Steps[Leading]:
    """Judges proposals in the order of their attempts' ids, each on what those before it leave, and returns what the
    commit does for them. A cancellation in the commit also ends the attempts that it names; if the commit has one of
    them before it, the cancellation is cancelled. If an attempt has more than one proposal, the one with the latest
    base that is not left counts. A proposal that holds but exceeds `capacity` is neither taken in nor cancelled, unless
    it is the first: one of any size can be committed alone. The index and place of `head` may have changes that are
    planned for the same commit. Other arguments are those of `judge_proposal`."""
    index, changes = Growing(head.index), dict[str, JsonObject | None]()
    operations: list[Operation] = []
    cancels: list[str] = []
    decided, made_by = set[str](), set[str]()
    size, is_full = 0, False
    for proposal in sorted(proposals, key=lambda each: (each.attempt, -each.base)):
        if proposal.attempt in decided:
            continue
        now = replace(head, index=index, place=head.place + len(operations))
        verdict = yield from judge_proposal(proposal, now, read_ms, lifetime_ms)
        if verdict is Verdict.LEAVE:
            continue
        decided.add(proposal.attempt)
        if verdict is Verdict.CANCEL or cancels_any(proposal, made_by):
            cancels.append(proposal.attempt)
        elif len(operations) == capacity.proposals or (operations and size + proposal.size > capacity.size):
            is_full = True
        else:
            made = proposal.changes_on(now)
            index.add(made)
            changes |= made
            operations.append(proposal.operation)
            made_by.add(proposal.attempt)
            decided |= ended_by(proposal)
            size += proposal.size
    return Leading(changes, operations, cancels, is_full)
