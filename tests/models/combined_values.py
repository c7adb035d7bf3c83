"""The values of the model of combined registry commits: what the store has, what each request knows, the rules."""

from dataclasses import dataclass
from typing import NamedTuple

COMMITTED, CANCELLED, TAKEN_IN, DROPPED, OTHER = "committed", "cancelled", "taken in", "dropped", "other"


class Event(NamedTuple):
    """One operation of a registry commit. `attempt` is whose change was committed or cancelled, which proposal of a
    cancellation was taken in, or the dropped name."""

    kind: str
    attempt: int = -1


class Head(NamedTuple):
    """The registry: who owns each name, and all that ever happened, the oldest first."""

    owners: tuple[int | None, int | None]
    history: tuple[Event, ...]

    @property
    def sequence(self) -> int:
        return len(self.history)

    def after(self, *events: Event) -> "Head":
        """The HEAD that a commit of these events makes; their changes are made already."""
        return Head(self.owners, self.history + events)

    def with_owner(self, name: int, owner: int | None, event: Event) -> "Head":
        """The HEAD that a commit of this event makes, which gives a name an owner or none."""
        owners = (owner, self.owners[1]) if name == 0 else (self.owners[0], owner)
        return Head(owners, (*self.history, event))


class Slot(NamedTuple):
    """A slot of the key's marker: the claim of an attempt with the sequence number that it read, or the answer."""

    attempt: int
    sequence: int
    answer: bool | None = None


class Proposal(NamedTuple):
    """A change that its attempt left for a leader. `base` is a sequence number up to which the attempt has seen that it
    is neither committed nor cancelled; `written` is the store's time of the files that the change needs. A proposal of
    a takeover has a fresh id and the attempts that it `cancels`, which were not committed up to its base."""

    attempt: int
    base: int
    written: int = 0
    cancels: tuple[int, ...] = ()


class Request(NamedTuple):
    """One process with one request: its next step, its attempt and that attempt's slot, the base of its proposal, the
    store's time of its files, a swap that it is about to send, its answer, how many cancellations it has proposed."""

    attempt: int
    step: str = "begin"
    slot: int | None = None
    base: int = 0
    written: int = 0
    old: Head | None = None
    new: Head | None = None
    answer: bool | None = None
    cancellations: int = 0


class State(NamedTuple):
    """All that there is."""

    head: Head
    requests: tuple[Request, ...]
    proposals: frozenset[Proposal] = frozenset()
    slots: tuple[Slot, ...] = ()
    late_swaps: frozenset[tuple[Head, Head]] = frozenset()
    files: frozenset[tuple[int, int]] = frozenset()
    """The attempts whose files exist, and the store's time at which they were written."""
    collected: int = 0
    """Events before this number can no longer be walked to."""
    now: int = 0
    """The store's time: how often a deadline, or more, has passed."""
    faults: int = 0
    others: int = 0
    drops: int = 0
    collections: int = 0


@dataclass(frozen=True)
class Scenario:
    """How many requests of each kind there are, and what may happen around them."""

    under_one_key: int = 0
    for_the_same_name: int = 0
    for_another_name: int = 0
    second_attempts: bool = False
    """Whether a request whose attempt was cancelled goes on under a new id, once; else it waits for the others."""
    cancellations: int = 0
    """How many cancellations each takeover may propose. With none, it swaps HEAD until it wins."""
    window: int = 9
    faults: int = 0
    others: int = 0
    """Registry commits of anybody else."""
    drops: int = 0
    """How often the name 0 is dropped, so that it is free again."""
    collections: int = 0
    """How often the collector may delete proposals, files, and commits that HEAD no longer lists."""
    deadlines: int = 0
    """How often so much time passes that every request is past its deadline. Processes may be frozen meanwhile."""


@dataclass(frozen=True)
class Rules:
    """The rules of the protocol; a test leaves out one at a time."""

    reads_must_hold: bool = True
    """A leader takes in a proposal only if what the plan relied on is unchanged: here, if the name is free."""
    committed_only_once: bool = True
    """A leader takes in a proposal only if its id is not among the committed ones that HEAD lists."""
    cancelled_never_commits: bool = True
    """A leader takes in a proposal only if its id is not among the cancelled ones that HEAD lists."""
    listed_since_base: bool = True
    """A leader takes in, or cancels, a proposal only if HEAD lists everything since the base; else it leaves it."""
    base_is_the_claim: bool = True
    """The first base of a proposal under a key is the sequence number in its claim: it may have been cancelled, and the
    cancellation forgotten, before it was planned."""
    walk_before_a_new_base: bool = True
    """A proposal whose base HEAD no longer reaches is proposed again only after a walk that saw nothing of it."""
    takeover_cancels: bool = True
    """A takeover cancels the earlier attempts of the key before it plans."""
    cancels_name_ids: bool = True
    """A cancellation names the ids that it cancels: a HEAD that is only newer is not enough."""
    cancellations_hold: bool = True
    """A leader takes in a cancellation only if none of its attempts is among the committed ones that HEAD lists; else
    it cancels the cancellation."""
    walk_for_the_cancelled: bool = True
    """A cancellation whose base HEAD no longer reaches is proposed again only after a walk that saw none of its
    attempts committed."""
    giving_up_cancels: bool = True
    """A request that answers a failure after it proposed cancels its proposal first, or saw it cancelled."""
    failures_are_final: bool = True
    """A failure under a key is answered from a final slot."""
    new_attempts_cancel: bool = True
    """A request that goes on under a new id after it proposed cancels its proposal first, or saw it cancelled."""
    new_attempts_claim: bool = True
    """A request under a key that goes on under a new id claims the next slot for it."""
    old_files_are_left: bool = True
    """A leader takes in a proposal only if its deadline has not passed by the store's time of the HEAD that it read. A
    leader without this rule goes by its machine's clock, which may be wrong."""
    age_of_files: bool = True
    """That deadline runs from the store's time of the files, not from that of the proposal: a process may be frozen
    between the two."""
    collector_moves_head: bool = True
    """The collector moves HEAD after the deadline, before it deletes the files of a change that HEAD does not have."""
