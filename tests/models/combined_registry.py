"""A model of registry commits that are combined across processes through the store.

A request that loses the compare-and-swap of HEAD puts its change as a *proposal*, an object that is created once. The
process that moves HEAD, the leader, takes in every proposal that still holds, and cancels those that no longer do. A
takeover, and a request that gives up, cancel by id in a registry commit of their own. None of this is in the product
yet; the model comes first.

HEAD is the owners of two names and a history of events: a change was committed, or cancelled, or anything else
happened. HEAD lists the last `window` events. A walk through older commits reaches as far back as the collector has
left them. The first requests are attempts under one key for name 0; others want name 0 or name 1 without a key. A crash
is a process that takes no further step; a leader may hold a proposal in memory for ever. `faults` bounds echoes (the
swap applies, and the answer is "refused") and swaps that outlive their sender and apply late or never.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

COMMITTED, CANCELLED, OTHER = "committed", "cancelled", "other"


class Event(NamedTuple):
    """One operation of a registry commit."""

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


class Slot(NamedTuple):
    """A slot of the key's marker: the claim of an attempt with the sequence number that it read, or the answer."""

    attempt: int
    sequence: int
    answer: bool | None = None


class Proposal(NamedTuple):
    """A change that its attempt left for a leader. `base` is a sequence number up to which the attempt has seen that it
    is neither committed nor cancelled."""

    attempt: int
    base: int


class Request(NamedTuple):
    """One attempt: its next step, its slot, the base of its proposal, a swap that it is about to send, its answer."""

    step: str = "begin"
    slot: int | None = None
    base: int = 0
    old: Head | None = None
    new: Head | None = None
    answer: bool | None = None


class State(NamedTuple):
    """All that there is."""

    head: Head
    requests: tuple[Request, ...]
    proposals: frozenset[Proposal] = frozenset()
    slots: tuple[Slot, ...] = ()
    late_swaps: frozenset[tuple[Head, Head]] = frozenset()
    collected: int = 0
    """Events before this number can no longer be walked to."""
    faults: int = 0
    others: int = 0
    collections: int = 0


@dataclass(frozen=True)
class Scenario:
    """How many requests of each kind there are, and what may happen around them."""

    under_one_key: int = 0
    for_the_same_name: int = 0
    for_another_name: int = 0
    window: int = 9
    faults: int = 0
    others: int = 0
    """Registry commits of anybody else."""
    collections: int = 0
    """How often the collector may delete proposals, and commits that HEAD no longer lists."""


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
    giving_up_cancels: bool = True
    """A request that answers a failure after it proposed cancels its proposal first, or saw it cancelled."""
    failures_are_final: bool = True
    """A failure under a key is answered from a final slot."""


class CombinedRegistry:
    """The model."""

    def __init__(self, scenario: Scenario, rules: Rules | None = None) -> None:
        self.scenario = scenario
        self.rules = rules or Rules()
        same = scenario.under_one_key + scenario.for_the_same_name
        self._names = (0,) * same + (1,) * scenario.for_another_name
        self._steps: dict[str, Callable[[State, int, Request], Iterator[State]]] = {
            "begin": self._begin,
            "take_over": self._take_over,
            "cancel": self._cancel,
            "plan": self._plan,
            "propose": self._propose,
            "wait": self._wait,
            "walk": self._walk,
            "lead": self._lead,
            "give_up": self._give_up,
            "cancel_own": self._cancel_own,
            "lose": self._lose,
            "succeed": self._succeed,
            "fail": self._fail,
        }

    def initial(self) -> State:
        """No name has an owner, and each request is about to begin."""
        return State(Head((None, None), ()), (Request(),) * len(self._names), faults=self.scenario.faults)

    # Promises.

    def violation(self, state: State) -> str | None:
        """The promise that the history or an answer breaks."""
        committed = [event.attempt for event in state.head.history if event.kind == COMMITTED]
        if len(committed) != len({*committed}):
            return "a proposal is committed twice"
        if sum(self._is_keyed(attempt) for attempt in committed) > 1:
            return "one key is applied twice"
        if sum(self._names[attempt] == 0 for attempt in committed) > 1:
            return "a name has two owners"
        for attempt, request in enumerate(state.requests):
            is_committed = any(other in self._same_request(attempt) for other in committed)
            if request.answer is not None and request.answer is not is_committed:
                return "a success is not committed" if request.answer else "a failure is committed"
        return None

    def _is_keyed(self, attempt: int) -> bool:
        return attempt < self.scenario.under_one_key

    def _same_request(self, attempt: int) -> range:
        """The attempts that carry out the same request."""
        return range(self.scenario.under_one_key) if self._is_keyed(attempt) else range(attempt, attempt + 1)

    # What HEAD and a walk show.

    def _listed(self, head: Head) -> tuple[Event, ...]:
        return head.history[-self.scenario.window :]

    def _lists_since(self, head: Head, base: int) -> bool:
        return head.sequence - base <= self.scenario.window

    def _take_in(self, head: Head, proposals: frozenset[Proposal]) -> Head | None:
        """The HEAD that a leader makes: it takes in what holds and cancels what does not, by the order of their ids.
        None if there is nothing to do."""
        rules, result = self.rules, head
        for attempt, base in sorted(proposals):
            listed, name = self._listed(result), self._names[attempt]
            if rules.listed_since_base and not self._lists_since(result, base):
                continue
            if rules.committed_only_once and Event(COMMITTED, attempt) in listed:
                continue
            if rules.cancelled_never_commits and Event(CANCELLED, attempt) in listed:
                continue
            if rules.reads_must_hold and result.owners[name] is not None:
                result = result.after(Event(CANCELLED, attempt))
                continue
            owners = (attempt, result.owners[1]) if name == 0 else (result.owners[0], attempt)
            result = Head(owners, (*result.history, Event(COMMITTED, attempt)))
        return None if result is head else result

    # Steps.

    def successors(self, state: State) -> Iterator[State]:
        """Every step of the network, of other processes, of the collector and of each request."""
        for swap in state.late_swaps:
            if state.head == swap[0]:
                yield state._replace(head=swap[1], late_swaps=state.late_swaps - {swap})
        if state.others < self.scenario.others:
            yield state._replace(head=state.head.after(Event(OTHER)), others=state.others + 1)
        if state.collections < self.scenario.collections:
            yield from self._collect(state._replace(collections=state.collections + 1))
        for attempt, request in enumerate(state.requests):
            if request.step != "end":
                yield from self._steps[request.step](state, attempt, request)

    def _collect(self, state: State) -> Iterator[State]:
        """A proposal is deleted, or the commits that HEAD does not list."""
        for proposal in state.proposals:
            yield state._replace(proposals=state.proposals - {proposal})
        unlisted = state.head.sequence - self.scenario.window
        if unlisted > state.collected:
            yield state._replace(collected=unlisted)

    def _swap(
        self, state: State, attempt: int, request: Request, applied: Request, refused: Request
    ) -> Iterator[State]:
        """The compare-and-swap of HEAD from `old` to `new`, with its faults."""
        assert request.old is not None
        assert request.new is not None
        if state.head != request.old:
            yield _step(state, attempt, refused)
            return
        moved = state._replace(head=request.new)
        yield _step(moved, attempt, applied)
        if state.faults:
            yield _step(moved._replace(faults=state.faults - 1), attempt, refused)
            late = state.late_swaps | {(request.old, request.new)}
            yield _step(state._replace(late_swaps=late, faults=state.faults - 1), attempt, Request("end"))

    def _begin(self, state: State, attempt: int, request: Request) -> Iterator[State]:
        """Without a key it plans. Under a key it takes the next slot: the first plans, a later one takes over."""
        if not self._is_keyed(attempt):
            yield _step(state, attempt, Request("plan"))
        elif state.slots and state.slots[-1].answer is not None:
            yield _step(state, attempt, Request("end", answer=state.slots[-1].answer))
        else:
            claimed = state._replace(slots=(*state.slots, Slot(attempt, state.head.sequence)))
            step = "take_over" if state.slots and self.rules.takeover_cancels else "plan"
            yield _step(claimed, attempt, Request(step, len(state.slots)))

    def _take_over(self, state: State, attempt: int, request: Request) -> Iterator[State]:
        """Looks for evidence of every earlier attempt, back to its claim, and then cancels them by id."""
        earlier = state.slots[: request.slot]
        if any(self._is_known(state, Event(COMMITTED, slot.attempt)) for slot in earlier):
            yield _step(state, attempt, request._replace(step="succeed"))
        elif any(slot.sequence < state.collected for slot in earlier):
            yield _step(state, attempt, Request("end"))  # unknown: the walk ends before the claim
        else:
            named = self.rules.cancels_name_ids
            events = [Event(CANCELLED, slot.attempt) for slot in earlier] if named else [Event(OTHER)]
            cancelling = request._replace(step="cancel", old=state.head, new=state.head.after(*events))
            yield _step(state, attempt, cancelling)

    def _is_known(self, state: State, event: Event) -> bool:
        """Whether HEAD or the walk behind it shows an event."""
        return event in self._listed(state.head) or event in state.head.history[state.collected :]

    def _cancel(self, state: State, attempt: int, request: Request) -> Iterator[State]:
        plan, again = Request("plan", request.slot), Request("take_over", request.slot)
        yield from self._swap(state, attempt, request, plan, again)

    def _plan(self, state: State, attempt: int, request: Request) -> Iterator[State]:
        """Plans on HEAD as it is. Under a key all attempts count as evidence."""
        since = state.slots[request.slot].sequence if request.slot is not None else state.head.sequence
        base = since if self.rules.base_is_the_claim else state.head.sequence
        events = [Event(COMMITTED, other) for other in self._same_request(attempt)]
        if any(self._is_known(state, event) for event in events):
            yield _step(state, attempt, request._replace(step="succeed"))
        elif self._is_known(state, Event(CANCELLED, attempt)):
            yield _step(state, attempt, request._replace(step="lose"))
        elif base < state.collected:
            yield _step(state, attempt, Request("end"))  # unknown: it may have been cancelled since the claim
        elif state.head.owners[self._names[attempt]] is not None:
            yield _step(state, attempt, request._replace(step="fail"))
        else:
            # The walk saw nothing of it up to this HEAD: that is the base if HEAD lists too little.
            seen = base if self._lists_since(state.head, base) else state.head.sequence
            yield _step(state, attempt, request._replace(step="propose", base=seen))

    def _propose(self, state: State, attempt: int, request: Request) -> Iterator[State]:
        proposed = state._replace(proposals=state.proposals | {Proposal(attempt, request.base)})
        yield _step(proposed, attempt, request._replace(step="wait"))

    def _wait(self, state: State, attempt: int, request: Request) -> Iterator[State]:
        """Looks at HEAD, leads, or gives up."""
        listed = self._listed(state.head)
        if Event(COMMITTED, attempt) in listed:
            yield _step(state, attempt, request._replace(step="succeed"))
        elif Event(CANCELLED, attempt) in listed:
            yield _step(state, attempt, request._replace(step="lose"))
        elif not self._lists_since(state.head, request.base):
            yield _step(state, attempt, request._replace(step="walk"))
        else:
            new = self._take_in(state.head, state.proposals)
            if new is not None:
                yield _step(state, attempt, request._replace(step="lead", old=state.head, new=new))
            yield _step(state, attempt, request._replace(step="give_up"))

    def _walk(self, state: State, attempt: int, request: Request) -> Iterator[State]:
        """HEAD lists too little since the base. A walk shows the rest; a change that is not there is proposed again."""
        if self.rules.walk_before_a_new_base:
            if self._is_known(state, Event(COMMITTED, attempt)):
                yield _step(state, attempt, request._replace(step="succeed"))
                return
            if self._is_known(state, Event(CANCELLED, attempt)):
                yield _step(state, attempt, request._replace(step="lose"))
                return
            if request.base < state.collected:
                yield _step(state, attempt, Request("end"))  # unknown: the walk ends before the base
                return
        yield _step(state, attempt, request._replace(step="propose", base=state.head.sequence))

    def _lead(self, state: State, attempt: int, request: Request) -> Iterator[State]:
        waiting = request._replace(step="wait", old=None, new=None)
        yield from self._swap(state, attempt, request, waiting, waiting)

    def _give_up(self, state: State, attempt: int, request: Request) -> Iterator[State]:
        """Cancels its proposal before it answers a failure."""
        if self._is_known(state, Event(COMMITTED, attempt)):
            yield _step(state, attempt, request._replace(step="succeed"))
        elif self._is_known(state, Event(CANCELLED, attempt)):
            yield _step(state, attempt, request._replace(step="lose"))
        elif request.base < state.collected:
            yield _step(state, attempt, Request("end"))
        elif not self.rules.giving_up_cancels:
            yield _step(state, attempt, request._replace(step="fail"))
        else:
            cancelled = state.head.after(Event(CANCELLED, attempt))
            yield _step(state, attempt, request._replace(step="cancel_own", old=state.head, new=cancelled))

    def _cancel_own(self, state: State, attempt: int, request: Request) -> Iterator[State]:
        failing, again = Request("fail", request.slot), request._replace(step="give_up", old=None, new=None)
        yield from self._swap(state, attempt, request, failing, again)

    def _lose(self, state: State, attempt: int, request: Request) -> Iterator[State]:
        """It is cancelled, by another process: without a key that is a failure, under a key another attempt decides."""
        if not self._is_keyed(attempt):
            yield _step(state, attempt, request._replace(step="fail"))
        elif state.slots[-1].answer is not None:
            yield _step(state, attempt, Request("end", answer=state.slots[-1].answer))

    def _succeed(self, state: State, attempt: int, request: Request) -> Iterator[State]:
        if request.slot is not None and len(state.slots) == request.slot + 1:
            state = state._replace(slots=(*state.slots, Slot(attempt, 0, answer=True)))
        yield _step(state, attempt, Request("end", answer=True))

    def _fail(self, state: State, attempt: int, request: Request) -> Iterator[State]:
        """A failure under a key is the answer once the final slot has it. If another attempt has the slot, that one
        decides."""
        if request.slot is None or not self.rules.failures_are_final:
            yield _step(state, attempt, Request("end", answer=False))
        elif len(state.slots) == request.slot + 1:
            final = state._replace(slots=(*state.slots, Slot(attempt, 0, answer=False)))
            yield _step(final, attempt, Request("end", answer=False))
        else:
            yield _step(state, attempt, request._replace(step="lose"))


def _step(state: State, attempt: int, request: Request) -> State:
    """The state after one request's step."""
    requests = (*state.requests[:attempt], request, *state.requests[attempt + 1 :])
    return state._replace(requests=requests)
