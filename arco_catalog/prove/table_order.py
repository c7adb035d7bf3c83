"""Judges the commits of one table. Each commit appends its id to the ids that it read, and requires that the snapshot
that it read is still the current one. So each state of a table has the order of all commits before it: no order has
to be searched for, and a violation is one comparison."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from arco_catalog.prove.findings import Breaks, Finding
from arco_catalog.prove.history import History, Observation, Status, TableState
from arco_catalog.prove.snapshots import snapshot_id

MAX_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Sight:
    """A state of a table in the answer to an operation."""

    state: TableState
    by: Observation

    def precedes(self, other: "Sight") -> bool:
        """Whether this state was received before the other was requested."""
        return self.by.precedes(other.by)


def check_tables(history: History) -> list[Finding]:
    """Returns the violations in the creations of tables and in the commits of every table: rejected or repeated
    commits, halves of them, and forks. The times of commits are checked only in tables without forks."""
    changes = history.changes()
    tables: dict[str, list[Sight]] = {}
    for observation in history.observations:
        for state in observation.tables:
            tables.setdefault(state.uuid, []).append(Sight(state, observation))
    found = [*_check_creations(tables)]
    for uuid, sights in tables.items():
        order = max((sight.state.commits for sight in sights), key=len)
        found += _check_commits(uuid, order, changes)
        found += _check_snapshots(uuid, sights)
        forks = [*_check_forks(uuid, order, sights)]
        found += forks or _check_times(uuid, order, sights, changes)
    return found


def _check_creations(tables: Mapping[str, Sequence[Sight]]) -> Iterator[Finding]:
    """Yields the violations of this rule: a creation makes one table, and every table has one creation."""
    made: dict[str, set[str]] = {}
    for uuid, sights in tables.items():
        creators = sorted({sight.state.creator for sight in sights})
        if len(creators) > 1:
            yield _violation("one creation", f"table {uuid} was made by {' and by '.join(creators)}", *creators)
        for creator in creators:
            made.setdefault(creator, set()).add(uuid)
    for creator, uuids in made.items():
        if len(uuids) > 1:
            yield _violation("one creation", f"creation {creator} made {len(uuids)} tables", creator)


def _check_commits(uuid: str, order: Sequence[str], changes: Mapping[str, Observation]) -> Iterator[Finding]:
    """Yields the violations of this rule: every commit in the order was sent, was not refused, and is in it once."""
    for commit in dict.fromkeys(order):
        change = changes.get(commit)
        if order.count(commit) > 1:
            yield _violation("applied once", f"table {uuid} has commit {commit} twice", commit)
        if change is None:
            yield _violation("sent", f"table {uuid} has commit {commit}, which was not sent", commit)
        elif change.status is Status.REFUSED:
            text = f"commit {commit} was refused with status {change.code}, and table {uuid} has it"
            yield _violation("refused", text, commit)


def _check_snapshots(uuid: str, sights: Sequence[Sight]) -> Iterator[Finding]:
    """Yields the violations of this rule: the current snapshot is that of the last commit, since a commit is applied
    whole."""
    for sight in sights:
        commits = sight.state.commits
        expected = snapshot_id(sight.state.creator, commits[-1]) if commits else None
        if sight.state.snapshot != expected:
            text = f"{_name(sight)} showed table {uuid} with {_text(commits)} and snapshot {sight.state.snapshot}"
            yield _violation("whole", f"{text}, which is not that of the last commit", *commits[-1:], _name(sight))


def _check_forks(uuid: str, order: Sequence[str], sights: Sequence[Sight]) -> Iterator[Finding]:
    """Yields the violations of this rule: every state is a beginning of the longest one, since a commit keeps what it
    read."""
    for sight in sights:
        commits = sight.state.commits
        if commits != order[: len(commits)]:
            text = f"table {uuid} had {_text(order)}, and {_name(sight)} showed {_text(commits)}"
            yield _violation(
                "one order", f"{text}: a commit replaced one that it had not read", *order[-1:], *commits[-1:]
            )


def _check_times(
    uuid: str, order: Sequence[str], sights: Sequence[Sight], changes: Mapping[str, Observation]
) -> Iterator[Finding]:
    """Yields the violations of this rule: a state has all commits that were done, or that others had, before it was
    requested, and none that was sent later."""
    done = [change for change in changes.values() if change.status is Status.DONE and _commits_to(change, uuid)]
    lost = {change.operation.id for change in done if _is_lost(change, order, changes)}
    for sight in sights:
        shown = sight.state.commits
        for commit in done:
            if commit.operation.id not in shown and commit.precedes(sight.by):
                name = commit.operation.id
                yield _missing(sight, name, f"commit {name} was done", for_good=name in lost or sight.by.final)
        for other in sights:
            if len(other.state.commits) > len(shown) and other.precedes(sight):
                commit_id = other.state.commits[len(shown)]
                yield _missing(sight, commit_id, f"{_name(other)} showed commit {commit_id}", for_good=sight.by.final)
        for commit_id in shown:
            if commit_id in changes and sight.by.precedes(changes[commit_id]):
                yield _violation("sent", f"{_name(sight)} showed commit {commit_id} before it was sent", commit_id)


def _is_lost(commit: Observation, order: Sequence[str], changes: Mapping[str, Observation]) -> bool:
    """Returns whether a commit that was done is not in the order, though others are that were sent after its answer."""
    later = (commit_id for commit_id in order if commit_id in changes and commit.precedes(changes[commit_id]))
    return commit.operation.id not in order and next(later, None) is not None


def _missing(sight: Sight, commit: str, before: str, *, for_good: bool) -> Finding:
    """Returns the violation that a commit is missing in a state: for good, or for as long as a reader may be late."""
    rule, breaks = ("durable", Breaks.SPECIFICATION) if for_good else ("fresh", Breaks.LINEARIZABILITY)
    text = f"{before} before {_name(sight)} was sent, whose answer does not have it"
    return Finding(rule, breaks, text, (commit, _name(sight)))


def _commits_to(change: Observation, uuid: str) -> bool:
    """Whether a change was based on the table with this UUID."""
    return any(base.uuid == uuid for base in change.bases)


def _name(sight: Sight) -> str:
    """Returns the id of the operation that saw a state."""
    return sight.by.operation.id


def _violation(rule: str, text: str, *operations: str) -> Finding:
    """Returns the finding that these operations broke a rule of the specification."""
    return Finding(rule, Breaks.SPECIFICATION, text, operations)


def _text(commits: Sequence[str]) -> str:
    """Formats the ids of the last `MAX_SHOWN` of these commits, for a finding."""
    return f"commits {' '.join(commits[-MAX_SHOWN:])}" if commits else "no commits"
