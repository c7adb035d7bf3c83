"""A model of a branch of a catalog, with one table (docs/design/branches.md).

HEAD has the branch: none, announced, alive, closing or gone. The table of main has a pointer with a version; each
version has a metadata file, which the log of later versions names until it is trimmed. Each snapshot has a data file.
Engines delete data files of snapshots that they have removed, and orphans: files that were in the table's location when
they loaded the table, and that its metadata did not name. These engines do not honour `gc.enabled`. Requests read HEAD
and the pointers in one step, and swap a pointer in another, or end without a swap.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.models.tuples import with_item

NONE, ANNOUNCED, ALIVE, CLOSING, GONE = "none", "announced", "alive", "closing", "gone"
APPEND, REMOVE, BRANCH_APPEND, PROMOTE = "append", "remove", "append to the branch", "promote"
KINDS = (APPEND, REMOVE, BRANCH_APPEND, PROMOTE)
METADATA, DATA = "metadata", "data"
OF_BRANCH = 100
"""Snapshots of the branch have numbers from here."""

File = tuple[str, int]


class Pointer(NamedTuple):
    """A table: its version, its snapshots, and the earlier versions that its metadata log names."""

    version: int
    snapshots: frozenset[int]
    log: frozenset[int] = frozenset()

    @property
    def files(self) -> frozenset[File]:
        """The files that the current metadata file names, and itself."""
        data = ((DATA, number) for number in self.snapshots)
        return frozenset((*data, (METADATA, self.version), *((METADATA, number) for number in self.log)))


class Head(NamedTuple):
    """HEAD: the state of the branch, how often HEAD has changed, and the version of the table in the list of the
    branch, None before there is one."""

    branch: str = NONE
    sequence: int = 0
    base: int | None = None


class Request(NamedTuple):
    """A request that has read HEAD and the pointers, and has not ended."""

    head: Head
    main: Pointer
    branch: Pointer | None


class Orphans(NamedTuple):
    """An engine that removes orphans: the files of the table's location when it loaded the table, and those that the
    metadata named."""

    there: frozenset[File]
    named: frozenset[File]


class State(NamedTuple):
    """The store, the requests under way by kind, how many more of each there may be, and what engines have yet to
    do."""

    head: Head
    main: Pointer
    branch: Pointer | None
    files: frozenset[File]
    requests: tuple[Request | None, ...]
    left: tuple[int, ...]
    orphans: int
    removing: Orphans | None = None
    deletable: frozenset[File] = frozenset()
    """The data of snapshots that were removed from main: an engine deletes it at any time."""
    cut: Pointer | None = None
    """The table of main when the list of the branch was written."""
    collecting: frozenset[File] | None = None
    """The files of the closed branch that are to be deleted."""
    appended: frozenset[int] = frozenset()
    removed: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Rules:
    """The rules of branches (docs/design/branches.md); each may be left out."""

    announces: bool = True
    """HEAD has the branch before the cut is made."""
    waits: bool = True
    """The cut comes after all requests that read an earlier HEAD have ended."""
    refuses_removals: bool = True
    """A commit that removes snapshots of main is refused while there is a branch."""
    keeps_base_in_log: bool = True
    """Commits to main keep the metadata file of the list in the metadata log."""
    keeps_log_while_announced: bool = True
    """Commits to main trim nothing of the log before the list is there."""
    has_own_location: bool = True
    """The branch writes its files outside of the location of main."""
    compares_main: bool = True
    """A promotion is refused if main has changed since the cut."""
    closes_first: bool = True
    """The files of the branch are collected after all requests that read HEAD before it was closed have ended."""
    keeps_promoted: bool = True
    """The collection keeps the files that main names."""


@dataclass(frozen=True)
class Scenario:
    """How many requests of each kind there are, and how many removals of orphans."""

    appends: int = 1
    removals: int = 0
    branch_appends: int = 1
    promotions: int = 0
    orphans: int = 0


class CatalogBranch:
    """The model."""

    def __init__(self, scenario: Scenario, rules: Rules | None = None) -> None:
        self.scenario = scenario
        self.rules = rules or Rules()

    def initial(self) -> State:
        """A table with two snapshots, and no branch."""
        main = Pointer(0, frozenset((0, 1)))
        scenario = self.scenario
        left = (scenario.appends, scenario.removals, scenario.branch_appends, scenario.promotions)
        return State(Head(), main, None, main.files, (None,) * len(KINDS), left, scenario.orphans)

    def violation(self, state: State) -> str | None:
        """The promise that a state breaks."""
        if state.head.branch == ALIVE and state.cut is not None and state.branch is not None:
            data = {(DATA, number) for number in state.cut.snapshots | state.branch.snapshots}
            if not data | {(METADATA, state.cut.version)} <= state.files:
                return "a file of the branch is deleted"
        if not {(DATA, number) for number in state.main.snapshots} <= state.files:
            return "a file of main is deleted"
        if not state.appended <= state.main.snapshots | state.removed:
            return "a commit to main is lost"
        return None

    def successors(self, state: State) -> Iterator[State]:
        """Every step of a request, of the branch's life, and of engines that delete files."""
        for place, kind in enumerate(KINDS):
            request = state.requests[place]
            if request is None and state.left[place]:
                yield self._begin(state, place)
            elif request is not None:
                ended = state._replace(requests=with_item(state.requests, place, None))
                yield ended
                yield from self._swap(ended, kind, request)
        yield from self._live(state)
        yield from self._delete(state)

    # Requests.

    def _begin(self, state: State, place: int) -> State:
        request = Request(state.head, state.main, state.branch)
        requests = with_item(state.requests, place, request)
        return state._replace(requests=requests, left=with_item(state.left, place, state.left[place] - 1))

    def _swap(self, state: State, kind: str, request: Request) -> Iterator[State]:
        head = request.head
        if kind == APPEND and request.main == state.main:
            number = max(state.main.snapshots) % OF_BRANCH + 10 * (state.main.version + 1)
            made = self._next(state.main, head, state.main.snapshots | {number})
            yield self._committed(state, made)._replace(appended=state.appended | {number})
        elif kind == REMOVE and request.main == state.main:
            oldest = min(state.main.snapshots)
            is_refused = self.rules.refuses_removals and head.branch in (ANNOUNCED, ALIVE, CLOSING)
            if len(state.main.snapshots) > 1 and not is_refused:
                made = self._next(state.main, head, state.main.snapshots - {oldest})
                deletable = state.deletable | {(DATA, oldest)}
                yield self._committed(state, made)._replace(removed=state.removed | {oldest}, deletable=deletable)
        elif kind == BRANCH_APPEND and head.branch == ALIVE and request.branch == state.branch is not None:
            number = OF_BRANCH + state.branch.version
            branch = Pointer(state.branch.version + 1, state.branch.snapshots | {number})
            yield state._replace(branch=branch, files=state.files | {(DATA, number)})
        elif kind == PROMOTE and head.branch == ALIVE and request.branch is not None:
            is_unchanged = request.main.version == head.base or not self.rules.compares_main
            if is_unchanged and request.main == state.main and request.branch.snapshots != state.main.snapshots:
                yield self._committed(state, self._next(state.main, head, request.branch.snapshots))

    def _next(self, main: Pointer, head: Head, snapshots: frozenset[int]) -> Pointer:
        """The next version of main. Its log names the version before it alone, and what the branch needs."""
        log = frozenset((main.version,))
        if self.rules.keeps_log_while_announced and head.branch == ANNOUNCED:
            log |= main.log
        if self.rules.keeps_base_in_log and head.base is not None and head.branch == ALIVE:
            log |= main.log & {head.base}
        return Pointer(main.version + 1, snapshots, log)

    def _committed(self, state: State, main: Pointer) -> State:
        """Main has another version, with its metadata file and the data of new snapshots."""
        made = {(DATA, number) for number in main.snapshots - state.main.snapshots if number < OF_BRANCH}
        return state._replace(main=main, files=state.files | made | {(METADATA, main.version)})

    # The life of the branch.

    def _live(self, state: State) -> Iterator[State]:
        head = state.head
        if head.branch == NONE and self.rules.announces:
            yield state._replace(head=Head(ANNOUNCED, head.sequence + 1))
        elif head.branch == NONE or (head.branch == ANNOUNCED and state.cut is None):
            if not self.rules.waits or not self._has_earlier(state):
                yield self._made(state) if head.branch == NONE else state._replace(cut=state.main)
        elif head.branch == ANNOUNCED and state.cut is not None:
            yield self._alive(state, state.cut)
        elif head.branch == ALIVE:
            closing = state._replace(head=head._replace(branch=CLOSING, sequence=head.sequence + 1))
            yield closing if self.rules.closes_first else self._collected(closing)
        elif head.branch == CLOSING and not self._has_earlier(state):
            yield self._collected(state)

    def _made(self, state: State) -> State:
        """The branch is there at once, as of what was read before."""
        return self._alive(state._replace(cut=state.main), state.main)

    def _alive(self, state: State, cut: Pointer) -> State:
        head = Head(ALIVE, state.head.sequence + 1, cut.version)
        return state._replace(head=head, branch=Pointer(0, cut.snapshots))

    def _has_earlier(self, state: State) -> bool:
        """Whether a request is under way that read HEAD before its last change."""
        return any(each is not None and each.head.sequence < state.head.sequence for each in state.requests)

    def _collected(self, state: State) -> State:
        """The branch is gone, and what is to be deleted of its files is known."""
        assert state.branch is not None
        mine = frozenset((DATA, number) for number in state.branch.snapshots if number >= OF_BRANCH)
        kept = state.main.files if self.rules.keeps_promoted else frozenset()
        return state._replace(head=state.head._replace(branch=GONE), collecting=mine - kept)

    # What deletes files.

    def _delete(self, state: State) -> Iterator[State]:
        if state.deletable:
            yield state._replace(files=state.files - state.deletable, deletable=frozenset())
        if state.collecting:
            yield state._replace(files=state.files - state.collecting, collecting=frozenset())
        if state.removing is not None:
            orphans = state.removing.there - state.removing.named
            yield state._replace(files=state.files - orphans, removing=None)
        elif state.orphans:
            there = frozenset(file for file in state.files if self._is_in_main(file))
            yield state._replace(removing=Orphans(there, state.main.files), orphans=state.orphans - 1)

    def _is_in_main(self, file: File) -> bool:
        kind, number = file
        return kind == METADATA or number < OF_BRANCH or not self.rules.has_own_location
