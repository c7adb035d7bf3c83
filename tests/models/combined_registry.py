"""A model of registry commits that are combined across processes through the store.

A request that loses the compare-and-swap of HEAD puts its change as a *proposal*, an object that is created once. The
process that moves HEAD, the leader, takes in every proposal that still holds, and cancels those that no longer do. A
takeover, and a request that gives up, cancel by id in a registry commit of their own. A request whose attempt a leader
cancelled goes on under a new id. docs/decisions/0077-changes-of-the-registry-as-proposals.md lists what of it is built.

HEAD is the owners of two names and a history of events: a change was committed, or cancelled, a name was dropped, or
anything else happened. HEAD lists the last `window` events. A walk through older commits reaches as far back as the
collector has left them. The first requests are attempts under one key for name 0; others want name 0 or name 1 without
a key. A crash is a process that takes no further step; a leader may hold a proposal in memory for ever, and any process
may be frozen between two steps while deadlines pass. `faults` bounds echoes (the swap applies, and the answer is
"refused") and swaps that outlive their sender and apply late or never. The bell, by which processes learn that there
are proposals, is left out: it is a hint, and any process may look at any time.
"""

from collections.abc import Callable, Iterator

from tests.models.combined_values import (
    CANCELLED,
    COMMITTED,
    DROPPED,
    OTHER,
    TAKEN_IN,
    Event,
    Head,
    Proposal,
    Request,
    Rules,
    Scenario,
    Slot,
    State,
)


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
            "wait_to_cancel": self._wait_to_cancel,
            "walk_to_cancel": self._walk_to_cancel,
            "lead_to_cancel": self._lead_to_cancel,
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
        requests = tuple(Request(attempt) for attempt in range(len(self._names)))
        return State(Head((None, None), ()), requests, faults=self.scenario.faults)

    # Attempts. A request's first attempt has the number of the request; the second one follows all the first ones.

    def _request_of(self, attempt: int) -> int:
        return attempt % len(self._names)

    def _name(self, attempt: int) -> int:
        return self._names[self._request_of(attempt)]

    def _is_keyed(self, attempt: int) -> bool:
        return self._request_of(attempt) < self.scenario.under_one_key

    def _same_request(self, attempt: int) -> list[int]:
        """The attempts that carry out the same request."""
        keyed, every = self._is_keyed(attempt), range(2 * len(self._names))
        if keyed:
            return [other for other in every if self._is_keyed(other)]
        return [other for other in every if self._request_of(other) == self._request_of(attempt)]

    # Promises.

    def violation(self, state: State) -> str | None:
        """The promise that the history or an answer breaks."""
        committed = [event.attempt for event in state.head.history if event.kind == COMMITTED]
        if len(committed) != len({*committed}):
            return "a proposal is committed twice"
        if sum(self._is_keyed(attempt) for attempt in committed) > 1:
            return "one key is applied twice"
        if len({self._request_of(attempt) for attempt in committed}) != len(committed):
            return "one request is applied twice"
        if self._has_two_owners(state.head):
            return "a name has two owners"
        if not {*committed} <= {attempt for attempt, _ in state.files}:
            return "a change is committed without its files"
        if self.scenario.cancellations and any(Event(CANCELLED, each) in state.head.history for each in committed):
            return "an attempt is committed and cancelled"
        for attempt, request in enumerate(state.requests):
            is_committed = any(other in self._same_request(attempt) for other in committed)
            if request.answer is not None and request.answer is not is_committed:
                return "a success is not committed" if request.answer else "a failure is committed"
        return None

    def _has_two_owners(self, head: Head) -> bool:
        """Whether name 0 was given to an owner while it had one."""
        is_owned = False
        for kind, attempt in head.history:
            if kind == DROPPED:
                is_owned = False
            elif kind == COMMITTED and self._name(attempt) == 0:
                if is_owned:
                    return True
                is_owned = True
        return False

    # What HEAD and a walk show.

    def _listed(self, head: Head) -> tuple[Event, ...]:
        return head.history[-self.scenario.window :]

    def _lists_since(self, head: Head, base: int) -> bool:
        return head.sequence - base <= self.scenario.window

    def _is_known(self, state: State, event: Event) -> bool:
        """Whether HEAD or the walk behind it shows an event."""
        return event in self._listed(state.head) or event in state.head.history[state.collected :]

    def _take_in(self, head: Head, proposals: frozenset[Proposal], now: int) -> Head | None:
        """The HEAD that a leader makes who read HEAD at the store's time `now`: it takes in what holds and cancels what
        does not, by the order of their ids. None if there is nothing to do."""
        rules, result = self.rules, head
        for attempt, base, written, cancels in sorted(proposals):
            listed = self._listed(result)
            if rules.listed_since_base and not self._lists_since(result, base):
                continue
            if cancels:
                result = self._take_in_cancellation(result, attempt, cancels)
                continue
            name = self._name(attempt)
            if rules.committed_only_once and Event(COMMITTED, attempt) in listed:
                continue
            if rules.cancelled_never_commits and Event(CANCELLED, attempt) in listed:
                continue
            if rules.old_files_are_left and written < now:
                continue
            if rules.reads_must_hold and result.owners[name] is not None:
                result = result.after(Event(CANCELLED, attempt))
                continue
            result = result.with_owner(name, attempt, Event(COMMITTED, attempt))
        return None if result is head else result

    def _take_in_cancellation(self, head: Head, proposal: int, cancels: tuple[int, ...]) -> Head:
        """The HEAD after the proposal of a cancellation: it holds if none of its attempts is committed."""
        listed = self._listed(head)
        if Event(TAKEN_IN, proposal) in listed or Event(CANCELLED, proposal) in listed:
            return head
        if self.rules.cancellations_hold and any(Event(COMMITTED, each) in listed for each in cancels):
            return head.after(Event(CANCELLED, proposal))
        return head.after(*(Event(CANCELLED, each) for each in cancels), Event(TAKEN_IN, proposal))

    # Steps.

    def successors(self, state: State) -> Iterator[State]:
        """Every step of the network, of time, of other processes, of the collector and of each request."""
        scenario, head = self.scenario, state.head
        for swap in state.late_swaps:
            if head == swap[0]:
                yield state._replace(head=swap[1], late_swaps=state.late_swaps - {swap})
        if state.now < scenario.deadlines:
            yield state._replace(now=state.now + 1)
        if state.others < scenario.others:
            yield state._replace(head=head.after(Event(OTHER)), others=state.others + 1)
        if state.drops < scenario.drops and head.owners[0] is not None:
            yield state._replace(head=head.with_owner(0, None, Event(DROPPED, 0)), drops=state.drops + 1)
        if state.collections < scenario.collections:
            yield from self._collect(state._replace(collections=state.collections + 1))
        for process, request in enumerate(state.requests):
            if request.step != "end":
                yield from self._steps[request.step](state, process, request)

    def _collect(self, state: State) -> Iterator[State]:
        """A proposal is deleted, or old files of a change that is not committed, or the commits that HEAD does not
        list."""
        for proposal in state.proposals:
            yield state._replace(proposals=state.proposals - {proposal})
        moved = state.head.after(Event(OTHER)) if self.rules.collector_moves_head else state.head
        for attempt, written in state.files:
            if written < state.now and Event(COMMITTED, attempt) not in state.head.history:
                yield state._replace(head=moved, files=state.files - {(attempt, written)})
        unlisted = state.head.sequence - self.scenario.window
        if unlisted > state.collected:
            yield state._replace(collected=unlisted)

    def _swap(
        self, state: State, process: int, request: Request, applied: Request, refused: Request
    ) -> Iterator[State]:
        """The compare-and-swap of HEAD from `old` to `new`, with its faults."""
        assert request.old is not None
        assert request.new is not None
        if state.head != request.old:
            yield _step(state, process, refused)
            return
        moved = state._replace(head=request.new)
        yield _step(moved, process, applied)
        if state.faults:
            yield _step(moved._replace(faults=state.faults - 1), process, refused)
            late = state.late_swaps | {(request.old, request.new)}
            yield _step(state._replace(late_swaps=late, faults=state.faults - 1), process, _ended(request))

    def _begin(self, state: State, process: int, request: Request) -> Iterator[State]:
        """Without a key it plans. Under a key it takes the next slot: the first plans, a later one takes over."""
        if not self._is_keyed(process):
            yield _step(state, process, request._replace(step="plan"))
        elif state.slots and state.slots[-1].answer is not None:
            yield _step(state, process, _ended(request, state.slots[-1].answer))
        else:
            claimed = state._replace(slots=(*state.slots, Slot(request.attempt, state.head.sequence)))
            step = "take_over" if state.slots and self.rules.takeover_cancels else "plan"
            yield _step(claimed, process, request._replace(step=step, slot=len(state.slots)))

    def _take_over(self, state: State, process: int, request: Request) -> Iterator[State]:
        """Looks for evidence of every earlier attempt, back to its claim, and then cancels them by id."""
        earlier = state.slots[: request.slot]
        if any(self._is_known(state, Event(COMMITTED, slot.attempt)) for slot in earlier):
            yield _step(state, process, request._replace(step="succeed"))
        elif any(slot.sequence < state.collected for slot in earlier):
            yield _step(state, process, _ended(request))  # unknown: the walk ends before the claim
        else:
            named = self.rules.cancels_name_ids
            events = [Event(CANCELLED, slot.attempt) for slot in earlier] if named else [Event(OTHER)]
            cancelling = request._replace(step="cancel", old=state.head, new=state.head.after(*events))
            yield _step(state, process, cancelling)
            if request.cancellations < self.scenario.cancellations:
                again = request._replace(cancellations=request.cancellations + 1)
                yield self._propose_to_cancel(state, process, again)

    def _cancel(self, state: State, process: int, request: Request) -> Iterator[State]:
        without = request._replace(old=None, new=None)
        plan, again = without._replace(step="plan"), without._replace(step="take_over")
        yield from self._swap(state, process, request, plan, again)

    def _propose_to_cancel(self, state: State, process: int, request: Request) -> State:
        """The state after a takeover has proposed to cancel the earlier attempts, of which HEAD as it is, and a walk,
        show none as committed."""
        cancels = tuple(slot.attempt for slot in state.slots[: request.slot])
        proposal = Proposal(_cancellation(process, request), state.head.sequence, state.now, cancels)
        proposed = state._replace(proposals=state.proposals | {proposal})
        return _step(proposed, process, request._replace(step="wait_to_cancel", base=state.head.sequence))

    def _wait_to_cancel(self, state: State, process: int, request: Request) -> Iterator[State]:
        """Looks at HEAD for the proposal of its cancellation, leads, or gives up."""
        listed, proposal = self._listed(state.head), _cancellation(process, request)
        committed = any(Event(COMMITTED, slot.attempt) in listed for slot in state.slots[: request.slot])
        if Event(TAKEN_IN, proposal) in listed:
            yield _step(state, process, request._replace(step="plan"))
        elif committed or Event(CANCELLED, proposal) in listed:
            yield _step(state, process, request._replace(step="take_over"))
        elif not self._lists_since(state.head, request.base):
            yield _step(state, process, request._replace(step="walk_to_cancel"))
        else:
            new = self._take_in(state.head, state.proposals, state.now)
            if new is not None:
                yield _step(state, process, request._replace(step="lead_to_cancel", old=state.head, new=new))
            yield _step(state, process, _ended(request))  # unknown: a leader may still take the cancellation in

    def _walk_to_cancel(self, state: State, process: int, request: Request) -> Iterator[State]:
        """HEAD lists too little since the base. A walk shows the rest; a cancellation that neither is there nor has a
        committed attempt is proposed again."""
        proposal, earlier = _cancellation(process, request), state.slots[: request.slot]
        walks = self.rules.walk_for_the_cancelled
        if self._is_known(state, Event(TAKEN_IN, proposal)):
            yield _step(state, process, request._replace(step="plan"))
        elif self._is_known(state, Event(CANCELLED, proposal)):
            yield _step(state, process, request._replace(step="take_over"))
        elif request.base < state.collected:
            yield _step(state, process, _ended(request))  # unknown: the walk ends before the base
        elif walks and any(self._is_known(state, Event(COMMITTED, slot.attempt)) for slot in earlier):
            yield _step(state, process, request._replace(step="take_over"))
        else:
            yield self._propose_to_cancel(state, process, request)

    def _lead_to_cancel(self, state: State, process: int, request: Request) -> Iterator[State]:
        waiting = request._replace(step="wait_to_cancel", old=None, new=None)
        yield from self._swap(state, process, request, waiting, waiting)

    def _plan(self, state: State, process: int, request: Request) -> Iterator[State]:
        """Plans on HEAD as it is, and writes the files. Under a key all attempts count as evidence."""
        since = state.slots[request.slot].sequence if request.slot is not None else state.head.sequence
        base = since if self.rules.base_is_the_claim else state.head.sequence
        events = [Event(COMMITTED, other) for other in self._same_request(request.attempt)]
        if any(self._is_known(state, event) for event in events):
            yield _step(state, process, request._replace(step="succeed"))
        elif self._is_known(state, Event(CANCELLED, request.attempt)):
            yield _step(state, process, request._replace(step="lose"))
        elif base < state.collected:
            yield _step(state, process, _ended(request))  # unknown: it may have been cancelled since the claim
        elif state.head.owners[self._name(request.attempt)] is not None:
            yield _step(state, process, request._replace(step="fail"))
        else:
            # The walk saw nothing of it up to this HEAD: that is the base if HEAD lists too little.
            seen = base if self._lists_since(state.head, base) else state.head.sequence
            wrote = state._replace(files=state.files | {(request.attempt, state.now)})
            yield _step(wrote, process, request._replace(step="propose", base=seen, written=state.now))

    def _propose(self, state: State, process: int, request: Request) -> Iterator[State]:
        written = request.written if self.rules.age_of_files else state.now
        proposal = Proposal(request.attempt, request.base, written)
        proposed = state._replace(proposals=state.proposals | {proposal})
        yield _step(proposed, process, request._replace(step="wait"))

    def _wait(self, state: State, process: int, request: Request) -> Iterator[State]:
        """Looks at HEAD, leads, or gives up."""
        listed = self._listed(state.head)
        if Event(COMMITTED, request.attempt) in listed:
            yield _step(state, process, request._replace(step="succeed"))
        elif Event(CANCELLED, request.attempt) in listed:
            yield _step(state, process, request._replace(step="lose"))
        elif not self._lists_since(state.head, request.base):
            yield _step(state, process, request._replace(step="walk"))
        else:
            new = self._take_in(state.head, state.proposals, state.now)
            if new is not None:
                yield _step(state, process, request._replace(step="lead", old=state.head, new=new))
            yield _step(state, process, request._replace(step="give_up"))

    def _walk(self, state: State, process: int, request: Request) -> Iterator[State]:
        """HEAD lists too little since the base. A walk shows the rest; a change that is not there is proposed again."""
        if self.rules.walk_before_a_new_base:
            if self._is_known(state, Event(COMMITTED, request.attempt)):
                yield _step(state, process, request._replace(step="succeed"))
                return
            if self._is_known(state, Event(CANCELLED, request.attempt)):
                yield _step(state, process, request._replace(step="lose"))
                return
            if request.base < state.collected:
                yield _step(state, process, _ended(request))  # unknown: the walk ends before the base
                return
        yield _step(state, process, request._replace(step="propose", base=state.head.sequence))

    def _lead(self, state: State, process: int, request: Request) -> Iterator[State]:
        waiting = request._replace(step="wait", old=None, new=None)
        yield from self._swap(state, process, request, waiting, waiting)

    def _give_up(self, state: State, process: int, request: Request) -> Iterator[State]:
        """Cancels its proposal before it answers a failure, or goes on under a new id."""
        if self._is_known(state, Event(COMMITTED, request.attempt)):
            yield _step(state, process, request._replace(step="succeed"))
        elif self._is_known(state, Event(CANCELLED, request.attempt)):
            yield _step(state, process, request._replace(step="lose"))
        elif request.base < state.collected:
            yield _step(state, process, _ended(request))
        elif not self.rules.giving_up_cancels:
            yield _step(state, process, request._replace(step="fail"))
        elif self._may_begin_another(request) and not self.rules.new_attempts_cancel:
            yield from self._begin_another(state, process, request)
        else:
            cancelled = state.head.after(Event(CANCELLED, request.attempt))
            yield _step(state, process, request._replace(step="cancel_own", old=state.head, new=cancelled))

    def _cancel_own(self, state: State, process: int, request: Request) -> Iterator[State]:
        without = request._replace(old=None, new=None)
        step = "lose" if self._may_begin_another(request) else "fail"
        cancelled, again = without._replace(step=step), without._replace(step="give_up")
        yield from self._swap(state, process, request, cancelled, again)

    def _lose(self, state: State, process: int, request: Request) -> Iterator[State]:
        """It is cancelled, by itself or by another process. The request goes on under a new id; under a key only if no
        other sending took over, else that one decides."""
        if self._is_keyed(process) and state.slots[-1].answer is not None:
            yield _step(state, process, _ended(request, state.slots[-1].answer))
        elif self._may_begin_another(request):
            if request.slot is None or len(state.slots) == request.slot + 1:
                yield from self._begin_another(state, process, request)
        elif not self._is_keyed(process):
            yield _step(state, process, request._replace(step="fail"))

    def _may_begin_another(self, request: Request) -> bool:
        return self.scenario.second_attempts and request.attempt < len(self._names)

    def _begin_another(self, state: State, process: int, request: Request) -> Iterator[State]:
        """Goes on under a new id, with a key in the next slot."""
        another = Request(request.attempt + len(self._names), "plan", request.slot)
        if request.slot is not None and self.rules.new_attempts_claim:
            another = another._replace(slot=len(state.slots))
            state = state._replace(slots=(*state.slots, Slot(another.attempt, state.head.sequence)))
        yield _step(state, process, another)

    def _succeed(self, state: State, process: int, request: Request) -> Iterator[State]:
        if request.slot is not None and len(state.slots) == request.slot + 1:
            state = state._replace(slots=(*state.slots, Slot(request.attempt, 0, answer=True)))
        yield _step(state, process, _ended(request, True))

    def _fail(self, state: State, process: int, request: Request) -> Iterator[State]:
        """A failure under a key is the answer once the final slot has it. If another attempt has the slot, that one
        decides."""
        if request.slot is None or not self.rules.failures_are_final:
            yield _step(state, process, _ended(request, False))
        elif len(state.slots) == request.slot + 1:
            final = state._replace(slots=(*state.slots, Slot(request.attempt, 0, answer=False)))
            yield _step(final, process, _ended(request, False))
        else:
            yield _step(state, process, request._replace(step="lose"))


def _ended(request: Request, answer: bool | None = None) -> Request:
    """A request that takes no further step, with its answer; None if it has none."""
    return Request(request.attempt, "end", answer=answer)


def _step(state: State, process: int, request: Request) -> State:
    """The state after one request's step."""
    requests = (*state.requests[:process], request, *state.requests[process + 1 :])
    return state._replace(requests=requests)


def _cancellation(process: int, request: Request) -> int:
    """The id of the cancellation that a takeover has proposed last: after those of all attempts."""
    return 100 * request.cancellations + process
