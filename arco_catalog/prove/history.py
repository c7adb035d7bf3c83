"""What clients did and saw in a run: the values that the checker judges."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What an operation of a client does."""

    CREATE = "create"
    COMMIT = "commit"
    TRANSACTION = "transaction"
    DROP = "drop"
    RENAME = "rename"
    LOAD = "load"
    EXISTS = "exists"
    LIST = "list"


READS = (Kind.LOAD, Kind.EXISTS, Kind.LIST)
"""Operations that change nothing."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a client. `id` is unique in its run, and has no blanks; `names` are the names of tables, of
    which a rename has the old and the new one, and a transaction two."""

    id: str
    kind: Kind
    names: tuple[str, ...] = ()


class Status(StrEnum):
    """How an operation ended for its client."""

    DONE = "done"
    REFUSED = "refused"
    """By an answer that means that nothing was changed: 4xx."""
    UNKNOWN = "unknown"
    """Without an answer, or with one that leaves open whether anything was changed: 5xx, or another form than the
    specification requires; of a listing also if another page is missing."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as it is in an answer: the id of the operation that created it, the ids of the commits in the order in
    which each was appended to the others, the table's UUID, and its current snapshot."""

    creator: str
    commits: tuple[str, ...]
    uuid: str
    snapshot: int | None


@dataclass(frozen=True, slots=True)
class Observation:
    """An operation and its outcome. `invoked` and `completed` are numbers in the one order of all that clients sent and
    received; `completed` is None if there was no answer. `code` is the HTTP status, None without one, and `error` the
    type of the error in the answer. `tables` has the states in the answer, and `bases` those on which a commit or
    transaction was based. `listed` has the names in a listing. `final`: sent when all other requests of the run had
    ended."""

    operation: Operation
    status: Status
    invoked: int
    completed: int | None = None
    code: int | None = None
    error: str = ""
    tables: tuple[TableState, ...] = ()
    bases: tuple[TableState, ...] = ()
    listed: frozenset[str] = frozenset()
    final: bool = False

    def precedes(self, other: "Observation") -> bool:
        """Whether this operation was completed before the other was sent."""
        return self.completed is not None and self.completed < other.invoked


@dataclass(frozen=True, slots=True)
class RepeatedRequest:
    """The outcomes of one request that was sent twice under one idempotency key. Both are known."""

    first: Observation
    second: Observation


@dataclass(frozen=True, slots=True)
class History:
    """The observations of all clients of a run, and the requests that were sent twice under one key."""

    observations: Sequence[Observation]
    repeated: Sequence[RepeatedRequest] = ()

    def changes(self) -> dict[str, Observation]:
        """Returns the observations of operations of a kind that changes something, whether or not they succeeded, by
        the ids of these."""
        return {
            observation.operation.id: observation
            for observation in self.observations
            if observation.operation.kind not in READS
        }
