"""A model of a consistent cut: a reader collects what several names mean twice, beside writers
(docs/design/resolve.md).

HEAD maps names to entities. An entry may be the intent of a transaction that creates its table. A pointer has a
version, a value and perhaps the intent of a transaction, with the value that the transaction commits. Writers commit to
single tables, rename, drop, and make transactions: they place intents one by one, decide, settle, and the decision is
collected once nothing needs it. Each read of an object is one step, in any order within a collection.

`seen` is what the names meant at each instant since the request began: an accepted cut must be one of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.models.tuples import with_item

PENDING, COMMITTED, ABORTED, GONE = "pending", "committed", "aborted", "gone"
UNREAD = ""


class Entry(NamedTuple):
    """What HEAD has for a name: the entity, and the transaction if it is an intent."""

    entity: int
    transaction: int | None = None


class Pointer(NamedTuple):
    """A pointer. `value` is the state without the intent, `planned` the state with it."""

    version: int
    value: int
    transaction: int | None = None
    planned: int = 0


Head = tuple[Entry | None, ...]
Meaning = tuple[tuple[int, int] | None, ...]
"""What the reader's names mean at an instant: each an entity and its value, None for no table."""


class Collection(NamedTuple):
    """What one collection has read: pointers by entity, decisions by transaction."""

    pointers: tuple[Pointer | None, ...]
    decisions: tuple[str, ...]


class Reader(NamedTuple):
    """The reader: its step, the HEAD that it goes by, what it has read in the collection before and in this one, how
    often it has collected, and what it has accepted."""

    step: str
    head: Head
    before: Collection
    now: Collection
    collections: int = 0
    accepted: Meaning | None = None


class State(NamedTuple):
    """The store, what writers may still do, the reader, and what the names have meant since its request began."""

    head: Head
    pointers: tuple[Pointer, ...]
    decisions: tuple[str, ...]
    commits: int
    renames: int
    drops: int
    reader: Reader
    seen: frozenset[Meaning] | None = None


@dataclass(frozen=True)
class Rules:
    """The rules of the reader; each may be left out."""

    collects_twice: bool = True
    """A cut is accepted only if a second collection equals the first."""
    compares_decisions: bool = True
    """The decisions read for intents are compared, not the versions of pointers alone."""
    reads_decisions_again: bool = True
    """Each collection reads the decisions anew."""
    reads_head_between: bool = True
    """HEAD is read between the two collections, and decides what the names mean."""
    reads_head_first: bool = True
    """The second collection begins with HEAD, before the pointers."""


@dataclass(frozen=True)
class Scenario:
    """How many names the reader wants, and how much the writers do. Each transaction changes the first two entities;
    with `creates` it also creates the table of the last name. `warm`: the first collection is what the process
    remembers, so that the request begins after it."""

    names: int = 2
    warm: bool = True
    transactions: int = 1
    creates: bool = False
    commits: int = 0
    renames: int = 0
    drops: int = 0
    collections: int = 3


class ConsistentCut:
    """The model."""

    def __init__(self, scenario: Scenario, rules: Rules | None = None) -> None:
        self.scenario = scenario
        self.rules = rules or Rules()
        self._entities = 3 if scenario.creates else 2
        self._nothing = Collection((None,) * self._entities, (UNREAD,) * scenario.transactions)

    def initial(self) -> State:
        """Two tables with the first two names; other names are free."""
        scenario = self.scenario
        head: Head = (Entry(0), Entry(1), None)
        pointers = tuple(Pointer(1, 0) for _ in range(self._entities))
        reader = Reader("collect", head, self._nothing, self._nothing)
        decisions = (PENDING,) * scenario.transactions
        state = State(head, pointers, decisions, scenario.commits, scenario.renames, scenario.drops, reader)
        return state if scenario.warm else state._replace(seen=frozenset({self._meaning(state)}))

    def violation(self, state: State) -> str | None:
        """The promise that an accepted cut breaks."""
        accepted = state.reader.accepted
        if accepted is None or state.seen is None or accepted in state.seen:
            return None
        return "the cut is of no instant"

    def successors(self, state: State) -> Iterator[State]:
        """Every step of a writer, of a transaction and of the reader."""
        for each in (*self._writes(state), *self._transactions(state)):
            yield each if each.seen is None else each._replace(seen=each.seen | {self._meaning(each)})
        if state.reader.step != "end":
            yield from self._read(state)

    # Writers.

    def _writes(self, state: State) -> Iterator[State]:
        head = state.head
        for name, entry in enumerate(head):
            if entry is None or entry.transaction is not None:
                continue
            if state.commits and not self._is_undecided(state, entry.entity):
                value = self._value(state, entry.entity) + 1
                yield self._moved(state, entry.entity, value)._replace(commits=state.commits - 1)
            for free in range(len(head)) if state.renames else ():
                if head[free] is None:
                    yield state._replace(
                        head=with_item(with_item(head, name, None), free, entry), renames=state.renames - 1
                    )
            if state.drops:
                yield state._replace(head=with_item(head, name, None), drops=state.drops - 1)

    def _transactions(self, state: State) -> Iterator[State]:
        for number, decision in enumerate(state.decisions):
            if decision == PENDING:
                yield from self._place(state, number)
                yield self._decided(state, number, ABORTED)
                if self._places(state, number) == self._all_places():
                    yield self._decided(state, number, COMMITTED)
            elif decision in (COMMITTED, ABORTED):
                yield from self._settle(state, number)
                if not self._places(state, number):
                    yield self._decided(state, number, GONE)

    def _all_places(self) -> set[object]:
        return {0, 1, "name"} if self.scenario.creates else {0, 1}

    def _places(self, state: State, number: int) -> set[object]:
        placed: set[object] = {at for at, pointer in enumerate(state.pointers) if pointer.transaction == number}
        return placed | {"name" for entry in state.head if entry is not None and entry.transaction == number}

    def _place(self, state: State, number: int) -> Iterator[State]:
        for entity in (0, 1):
            if state.pointers[entity].transaction is None:
                old = state.pointers[entity]
                intent = Pointer(old.version + 1, old.value, number, old.value + 10)
                yield state._replace(pointers=with_item(state.pointers, entity, intent))
        if self.scenario.creates and state.head[2] is None:
            yield state._replace(head=with_item(state.head, 2, Entry(2, number)))

    def _settle(self, state: State, number: int) -> Iterator[State]:
        for entity, pointer in enumerate(state.pointers):
            if pointer.transaction == number:
                yield self._moved(state, entity, self._value(state, entity))
        for name, entry in enumerate(state.head):
            if entry is not None and entry.transaction == number:
                settled = Entry(entry.entity) if state.decisions[number] == COMMITTED else None
                yield state._replace(head=with_item(state.head, name, settled))

    def _decided(self, state: State, number: int, decision: str) -> State:
        return state._replace(decisions=with_item(state.decisions, number, decision))

    def _moved(self, state: State, entity: int, value: int) -> State:
        pointer = Pointer(state.pointers[entity].version + 1, value)
        return state._replace(pointers=with_item(state.pointers, entity, pointer))

    def _is_undecided(self, state: State, entity: int) -> bool:
        transaction = state.pointers[entity].transaction
        return transaction is not None and state.decisions[transaction] == PENDING

    def _value(self, state: State, entity: int) -> int:
        pointer = state.pointers[entity]
        has_committed = pointer.transaction is not None and state.decisions[pointer.transaction] == COMMITTED
        return pointer.planned if has_committed else pointer.value

    def _meaning(self, state: State) -> Meaning:
        """What the reader's names mean now."""

        def of(entry: Entry | None) -> tuple[int, int] | None:
            if entry is None or (entry.transaction is not None and state.decisions[entry.transaction] != COMMITTED):
                return None
            return entry.entity, self._value(state, entry.entity)

        return tuple(of(entry) for entry in state.head[: self.scenario.names])

    # The reader.

    def _read(self, state: State) -> Iterator[State]:
        reader = state.reader
        if reader.step == "compare":
            yield self._compared(state)
        elif reader.step == "head":
            yield state._replace(reader=reader._replace(step="collect", head=state.head))
        elif reader.step == "head last":
            same = state.head[: self.scenario.names] == reader.head[: self.scenario.names]
            before = reader.before if same else self._nothing
            yield state._replace(reader=reader._replace(step="compare", head=state.head, before=before))
        else:
            reads = [*self._collect(state)]
            is_last = not self.rules.reads_head_first and reader.collections > 0
            yield from reads
            if not reads:
                yield state._replace(reader=reader._replace(step="head last" if is_last else "compare"))

    def _collect(self, state: State) -> Iterator[State]:
        """One read of a pointer or decision that the collection still lacks; decisions come after all pointers."""
        reader, now = state.reader, state.reader.now
        entries = [entry for entry in reader.head[: self.scenario.names] if entry is not None]
        lacking = {entry.entity for entry in entries if now.pointers[entry.entity] is None}
        for entity in lacking:
            pointers = with_item(now.pointers, entity, state.pointers[entity])
            yield state._replace(reader=reader._replace(now=now._replace(pointers=pointers)))
        if lacking:
            return
        intents = {entry.transaction for entry in entries}
        intents |= {pointer.transaction for pointer in now.pointers if pointer is not None}
        for number in intents - {None}:
            assert number is not None
            if now.decisions[number] == UNREAD:
                known = reader.before.decisions[number]
                cached = not self.rules.reads_decisions_again and known != UNREAD
                read = known if cached else _outcome(state.decisions[number])
                decisions = with_item(now.decisions, number, read)
                yield state._replace(reader=reader._replace(now=now._replace(decisions=decisions)))

    def _compared(self, state: State) -> State:
        """Accepts the cut if the two collections agree; otherwise this one is the first of the next try. The request
        begins after the first collection."""
        reader = state.reader
        seen = state.seen or frozenset({self._meaning(state)})
        if not self.rules.collects_twice or (reader.collections and self._agrees(reader)):
            return state._replace(reader=reader._replace(step="end", accepted=self._cut(reader)), seen=seen)
        if reader.collections + 1 == self.scenario.collections:
            return state._replace(reader=reader._replace(step="end"), seen=seen)
        step = "head" if self.rules.reads_head_between and self.rules.reads_head_first else "collect"
        again = Reader(step, reader.head, reader.now, self._nothing, reader.collections + 1)
        return state._replace(reader=again, seen=seen)

    def _agrees(self, reader: Reader) -> bool:
        return all(self._is_unmoved(reader, entry) for entry in reader.head[: self.scenario.names])

    def _is_unmoved(self, reader: Reader, entry: Entry | None) -> bool:
        before, now = reader.before, reader.now
        if entry is None:
            return True
        if entry.transaction is not None:
            if not self._same_decision(reader, entry.transaction):
                return False
            if now.decisions[entry.transaction] != COMMITTED:
                return True
        first, second = before.pointers[entry.entity], now.pointers[entry.entity]
        if first is None or second is None or first.version != second.version:
            return False
        return second.transaction is None or self._same_decision(reader, second.transaction)

    def _same_decision(self, reader: Reader, number: int) -> bool:
        before, now = reader.before.decisions[number], reader.now.decisions[number]
        return before == now if self.rules.compares_decisions else True

    def _cut(self, reader: Reader) -> Meaning:
        """What the names mean by the last collection."""

        def of(entry: Entry | None) -> tuple[int, int] | None:
            decisions = reader.now.decisions
            if entry is None or (entry.transaction is not None and decisions[entry.transaction] != COMMITTED):
                return None
            pointer = reader.now.pointers[entry.entity]
            assert pointer is not None
            has_committed = pointer.transaction is not None and decisions[pointer.transaction] == COMMITTED
            return entry.entity, pointer.planned if has_committed else pointer.value

        return tuple(of(entry) for entry in reader.head[: self.scenario.names])


def _outcome(decision: str) -> str:
    """What a reader learns from a decision: an undecided transaction is as one that was aborted."""
    return decision if decision in (COMMITTED, GONE) else ABORTED
