"""A model of the event feed: sequencers append to numbered segments what they find in HEAD and behind pointers, beside
writers (docs/design/events.md).

HEAD is the number of operations of the registry. Table 0 exists before the feed, with file 0; table 1 may be created:
its pointer first, then the operation. A commit moves a pointer to the next file, and its committed receipt is written
any time later. A transaction places an intent on table 0, is decided, and settles. Each read and write of an object is
one step; a write of a sequencer that is killed may still land, at any time.

What must hold in each state: nothing is in the feed twice, or that did not happen; commits follow those before them,
operations too; a table's commits follow its creation, and what was current when it was dropped comes before the drop.
What must hold when a step ends: all that had happened when it began is in the feed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.models.tuples import with_item

PENDING, COMMITTED, ABORTED, NONE = "pending", "committed", "aborted", ""
CREATE, DROP, OTHER = "create", "drop", "other"
TABLES = (0, 1)

Record = tuple[str, int, int]
"""`commit` with a table and a file; `operation` with its place in the registry's history, and 0."""


class Pointer(NamedTuple):
    """A pointer: its version, the file that is current without the intent, and whether it has an intent."""

    version: int
    file: int
    has_intent: bool = False


class Cursor(NamedTuple):
    """How far a feed has been read: up to `segments`, with `operations`, `files` by table (-1 for none), and the
    versions of pointers of which everything has entered."""

    segments: int = 0
    operations: int = 0
    files: tuple[int, ...] = (0, -1)
    versions: tuple[int, ...] = (0, 0)


class Sequencer(NamedTuple):
    """One sequencer: its next step, how often it still begins one, what it remembers, and what it has read in this
    step: HEAD's operations, pointers, and the decision. `due` is what had happened when the step began."""

    step: str = "idle"
    runs: int = 1
    cursor: Cursor | None = None
    operations: int = -1
    pointers: tuple[Pointer | None, ...] = ()
    decision: str = NONE
    plan: tuple[Record, ...] = ()
    due: frozenset[Record] = frozenset()


class State(NamedTuple):
    """What is stored, what sequencers remember, and what writers may still do."""

    operations: tuple[str, ...]
    pointers: tuple[Pointer | None, ...]
    decision: str
    receipts: frozenset[tuple[int, int, int]]
    """Committed receipts: table, file, and the time in the file."""
    unwritten: frozenset[tuple[int, int, int]]
    feed: tuple[tuple[Record, ...], ...]
    cursor: Cursor
    flying: tuple[tuple[int, tuple[Record, ...]], ...]
    """Segments that killed sequencers have sent."""
    sequencers: tuple[Sequencer, ...]
    commits: int
    kills: int
    before_drop: int = -1
    """The file of table 0 when it was dropped."""
    missed: bool = False


@dataclass(frozen=True)
class Rules:
    """The rules of the feed; each may be left out."""

    creates_once: bool = True
    follows_chains: bool = True
    enters_predecessors_first: bool = True
    reads_head_first: bool = True
    waits_for_creations: bool = True
    waits_for_decisions: bool = True
    cursors_after_segments: bool = True
    versions_with_decisions: bool = True
    walks_registry: bool = True


@dataclass(frozen=True)
class Scenario:
    """What happens: so many commits, runs of each sequencer, kills; whether a transaction, a create or a drop is there,
    and the times in files that writers choose from. Without `judges_ends` a step may miss something."""

    commits: int = 2
    runs: tuple[int, ...] = (2,)
    kills: int = 0
    transaction: bool = False
    creates: bool = False
    drops: bool = False
    clocks: tuple[int, ...] = (1,)
    judges_ends: bool = True


ALL = Rules()


class EventFeed:
    """The model of one scenario by these rules."""

    def __init__(self, scenario: Scenario, rules: Rules = ALL) -> None:
        self.scenario = scenario
        self.rules = rules

    def initial(self) -> State:
        """Table 0 exists, and the feed has begun."""
        scenario = self.scenario
        return State(
            operations=(),
            pointers=(Pointer(1, 0), None),
            decision=PENDING if scenario.transaction else NONE,
            receipts=frozenset(),
            unwritten=frozenset(),
            feed=(),
            cursor=Cursor(),
            flying=(),
            sequencers=tuple(Sequencer(runs=runs) for runs in scenario.runs),
            commits=scenario.commits,
            kills=scenario.kills,
        )

    def violation(self, state: State) -> str | None:
        """The promise that the feed breaks."""
        records = [record for segment in state.feed for record in segment]
        if len({*records}) < len(records):
            return "something is in the feed twice"
        if not {*records} <= self._happened(state):
            return "something is in the feed that did not happen"
        if not self._is_ordered(state, records):
            return "something comes before its predecessor"
        return "a step ended without all that had happened when it began" if state.missed else None

    def _is_ordered(self, state: State, records: list[Record]) -> bool:
        places = [place for kind, place, _ in records if kind == "operation"]
        if places != [*range(len(places))]:
            return False
        for table in TABLES:
            files = [file for kind, of, file in records if kind == "commit" and of == table]
            first = 1 if table == 0 else 0
            if files != [*range(first, first + len(files))]:
                return False
        for number, (kind, place, _) in enumerate(records):
            operation = state.operations[place] if kind == "operation" else ""
            before, later = records[:number], records[number + 1 :]
            if operation == CREATE and any(each[:2] == ("commit", 1) for each in before):
                return False
            if operation == DROP and any(each[:2] == ("commit", 0) and each[2] <= state.before_drop for each in later):
                return False
        return True

    def _happened(self, state: State) -> frozenset[Record]:
        """All that belongs into the feed by now."""
        happened: set[Record] = {("operation", place, 0) for place in range(len(state.operations))}
        happened |= {("commit", 0, file) for file in range(1, self._current(state, 0) + 1)}
        if CREATE in state.operations:
            happened |= {("commit", 1, file) for file in range(self._current(state, 1) + 1)}
        return frozenset(happened)

    def _current(self, state: State, table: int) -> int:
        pointer = state.pointers[table]
        assert pointer is not None
        return pointer.file + (pointer.has_intent and state.decision == COMMITTED)

    def successors(self, state: State) -> Iterator[State]:
        """Every step of a writer, of the network, and of a sequencer."""
        yield from self._writers(state)
        yield from self._transaction(state)
        for place, (number, plan) in enumerate(state.flying):
            left = (*state.flying[:place], *state.flying[place + 1 :])
            yield self._landed(state, number, plan)[0]._replace(flying=left)
            yield state._replace(flying=left)
        for place, sequencer in enumerate(state.sequencers):
            for each, after in self._sequence(state, sequencer):
                yield each._replace(sequencers=with_item(each.sequencers, place, after))
            if state.kills and sequencer.step != "idle":
                flying = state.flying
                if sequencer.step == "create":
                    flying = (*flying, (self._cursor(sequencer).segments, sequencer.plan))
                killed = Sequencer(runs=sequencer.runs)
                sequencers = with_item(state.sequencers, place, killed)
                yield state._replace(sequencers=sequencers, flying=flying, kills=state.kills - 1)

    # Writers

    def _writers(self, state: State) -> Iterator[State]:
        for table in TABLES if state.commits else ():
            pointer = state.pointers[table]
            exists = CREATE in state.operations if table else DROP not in state.operations
            if pointer is None or not exists or (pointer.has_intent and state.decision == PENDING):
                continue
            file = self._current(state, table) + 1
            for ms in self.scenario.clocks:
                pointers = with_item(state.pointers, table, Pointer(pointer.version + 1, file))
                yield self._written(state, table, file, ms)._replace(pointers=pointers, commits=state.commits - 1)
        for written in state.unwritten:
            yield state._replace(receipts=state.receipts | {written}, unwritten=state.unwritten - {written})
        if self.scenario.creates and state.pointers[1] is None:
            yield state._replace(pointers=with_item(state.pointers, 1, Pointer(1, 0)))
        if state.pointers[1] is not None and CREATE not in state.operations:
            yield self._written(state, 1, 0, 1)._replace(operations=(*state.operations, CREATE))
        if self.scenario.drops and DROP not in state.operations:
            operations = (
                (*state.operations, OTHER, DROP) if not self.rules.walks_registry else (*state.operations, DROP)
            )
            yield state._replace(operations=operations, before_drop=self._current(state, 0))

    def _written(self, state: State, table: int, file: int, ms: int) -> State:
        """The state in which the committed receipt of a commit is still to be written."""
        return state._replace(unwritten=state.unwritten | {(table, file, ms)})

    def _transaction(self, state: State) -> Iterator[State]:
        pointer = state.pointers[0]
        assert pointer is not None
        if state.decision == PENDING:
            if not pointer.has_intent and DROP not in state.operations:
                intent = Pointer(pointer.version + 1, pointer.file, True)
                yield state._replace(pointers=with_item(state.pointers, 0, intent))
            if pointer.has_intent:
                yield self._written(state, 0, pointer.file + 1, 1)._replace(decision=COMMITTED)
                yield state._replace(decision=ABORTED)
        elif pointer.has_intent:
            settled = Pointer(pointer.version + 1, self._current(state, 0))
            yield state._replace(pointers=with_item(state.pointers, 0, settled))

    # Sequencers

    def _cursor(self, sequencer: Sequencer) -> Cursor:
        assert sequencer.cursor is not None
        return sequencer.cursor

    def _sequence(self, state: State, sequencer: Sequencer) -> Iterator[tuple[State, Sequencer]]:
        """The next steps of a sequencer: the state, and the sequencer after it."""
        match sequencer.step:
            case "idle":
                if sequencer.runs:
                    cursor = sequencer.cursor or state.cursor
                    due = self._happened(state)
                    yield state, Sequencer("read", sequencer.runs - 1, cursor, due=due)
            case "read":
                cursor = self._cursor(sequencer)
                for segment in state.feed[cursor.segments :]:
                    cursor = self._after(state, cursor, segment)
                after = sequencer._replace(cursor=cursor, pointers=(), step=self._first())
                yield state, after
            case "head":
                step = "pointers" if self.rules.reads_head_first else "decision"
                yield state, sequencer._replace(operations=len(state.operations), step=step)
            case "pointers":
                table = len(sequencer.pointers)
                read = (*sequencer.pointers, state.pointers[table])
                last = "decision" if self.rules.reads_head_first else "head"
                yield state, sequencer._replace(pointers=read, step="pointers" if len(read) < len(TABLES) else last)
            case "decision":
                after = sequencer._replace(decision=state.decision, step="create")
                after = after._replace(plan=self._plan(state, after))
                if not after.plan:
                    yield from self._ended(state, after)
                elif self.rules.cursors_after_segments:
                    yield state, after
                else:
                    ahead = self._after(state, self._cursor(after), after.plan)
                    yield state._replace(cursor=ahead), after
            case "create":
                landed, applied = self._landed(state, self._cursor(sequencer).segments, sequencer.plan)
                if not applied:  # another sequencer was first
                    yield state, Sequencer("idle", sequencer.runs, sequencer.cursor)
                else:
                    cursor = self._after(landed, self._cursor(sequencer), sequencer.plan)
                    yield from self._ended(landed, sequencer._replace(cursor=cursor))
            case "store":
                cursor = self._cursor(sequencer)
                stored = cursor if cursor.segments >= state.cursor.segments else state.cursor
                yield state._replace(cursor=stored), Sequencer("idle", sequencer.runs, cursor)

    def _first(self) -> str:
        return "head" if self.rules.reads_head_first else "pointers"

    def _ended(self, state: State, sequencer: Sequencer) -> Iterator[tuple[State, Sequencer]]:
        """The end of a step that has entered all that it has found: cursors are stored next."""
        records = {record for segment in state.feed for record in segment}
        missed = state.missed or (self.scenario.judges_ends and not sequencer.due <= records)
        versions = tuple(self._passed(sequencer, table) for table in TABLES)
        cursor = self._cursor(sequencer)._replace(versions=versions)
        yield state._replace(missed=missed), sequencer._replace(step="store", cursor=cursor)

    def _passed(self, sequencer: Sequencer, table: int) -> int:
        """The version of a pointer of which everything has entered; 0 for none."""
        pointer, cursor = sequencer.pointers[table], self._cursor(sequencer)
        if pointer is None or cursor.files[table] < 0:
            return 0
        is_open = pointer.has_intent and sequencer.decision == PENDING
        return 0 if is_open and self.rules.versions_with_decisions else pointer.version

    def _landed(self, state: State, number: int, plan: tuple[Record, ...]) -> tuple[State, bool]:
        """The state after a write of a segment, and whether that was applied."""
        if number == len(state.feed) or not self.rules.creates_once:
            return state._replace(feed=(*state.feed, plan)), True
        return state, False

    def _after(self, state: State, cursor: Cursor, segment: tuple[Record, ...]) -> Cursor:
        """The cursor after a segment."""
        operations, files = cursor.operations, cursor.files
        for kind, place, file in segment:
            if kind == "operation":
                operations = place + 1
            else:
                files = with_item(files, place, file)
        return Cursor(cursor.segments + 1, operations, files, cursor.versions)

    def _plan(self, state: State, sequencer: Sequencer) -> tuple[Record, ...]:
        """What enters next."""
        cursor = self._cursor(sequencer)
        new = range(cursor.operations, sequencer.operations)
        if not self.rules.walks_registry:
            new = range(max(cursor.operations, sequencer.operations - 1), sequencer.operations)
        known = state.operations[: sequencer.operations]
        chains = {table: self._chain(state, sequencer, table, CREATE in known) for table in TABLES}
        plan: list[Record] = []
        for place in new:
            if state.operations[place] == DROP:
                plan += chains.pop(0)
            plan.append(("operation", place, 0))
        return (*plan, *(record for chain in chains.values() for record in chain))

    def _chain(self, state: State, sequencer: Sequencer, table: int, is_created: bool) -> list[Record]:
        """The commits of a table that enter next."""
        cursor, pointer = self._cursor(sequencer), sequencer.pointers[table]
        if table == 1 and not is_created and self.rules.waits_for_creations:
            return []
        if not self.rules.follows_chains or not self.rules.enters_predecessors_first:
            return self._by_receipts(state, table)
        if pointer is None or cursor.versions[table] == pointer.version:
            return []
        committed = sequencer.decision == COMMITTED or not self.rules.waits_for_decisions
        newest = pointer.file + (pointer.has_intent and committed)
        return [("commit", table, file) for file in range(cursor.files[table] + 1, newest + 1)]

    def _by_receipts(self, state: State, table: int) -> list[Record]:
        """The commits with a receipt that are not in the feed; by time, only those after the newest that is."""
        entered = {record for segment in state.feed for record in segment}
        receipts = sorted((ms, file) for of, file, ms in state.receipts if of == table)
        times = [ms for ms, file in receipts if ("commit", table, file) in entered]
        since = max(times, default=0) if not self.rules.follows_chains else -1
        found = [(ms, file) for ms, file in receipts if ("commit", table, file) not in entered and ms > since]
        return [("commit", table, file) for _, file in found]
