"""A commit as a mutation plans it: a value, of one case for each object that a compare-and-swap may replace.

The commit loop carries it out (commit_execution.py).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from arco_catalog.planning.answers import Answer
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.registry_change import Change
from arco_catalog.planning.writes import PlannedWrite
from arco_catalog.protocol.group_commit import Replan
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from storage_backends.lazy_dataclass import dataclass

if TYPE_CHECKING:  # a cold start for a read does not pay for what makes tables
    from arco_catalog.planning.transaction import TransactionPlan


@dataclass(frozen=True, slots=True)
class Write:
    """A write of a planned commit, which `put` makes, once. `key` is the key of the object that it creates, or a
    description of another step, such as a registry commit, or one that settles intents or removes old files."""

    key: str
    put: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PlannedWrites:
    """The parts that every planned commit has. `write_set` names what it may change. `first` is written before the
    compare-and-swap. `after` is written concurrently with the final slot, at best effort: the reconciler repairs what
    is missing. `answer` is that of the commit."""

    write_set: WriteSet
    first: Sequence[PlannedWrite]
    after: Sequence[PlannedWrite]
    answer: Answer


@dataclass(frozen=True, slots=True)
class PointerCommit(PlannedWrites):
    """A commit to one table or view: replaces its pointer by the successor."""

    pointer: Pointer
    successor: Pointer


@dataclass(frozen=True, slots=True)
class RegistryCommit(PlannedWrites):
    """A commit to the registry: replaces HEAD, on which the plan is based. `planner` replans it where other requests
    share the registry commit, or where the change is proposed."""

    head: RegistryState
    attempt: Attempt
    change: Change
    planner: "RegistryPlanner"


@dataclass(frozen=True, slots=True)
class TransactionCommit(PlannedWrites):
    """A commit to several tables: replaces the transaction's object, which decides. `head` is the HEAD on which it was
    planned: the registry commit with the intents on new names follows it. `leftover` collects the intents of aborted
    attempts that are still on pointers: the next commit to each table replaces them."""

    head: RegistryState
    plan: "TransactionPlan"
    leftover: list[Pointer]


PlannedCommit: TypeAlias = PointerCommit | RegistryCommit | TransactionCommit


class RegistryPlanner(Protocol):
    """The parts of a mutation of the registry that the execution of the commit needs: to plan the change again on
    another HEAD."""

    kind: str
    """The kind of the operation in the registry's history."""

    def further_writes(self, attempt: Attempt) -> Sequence[Write]:
        """Returns the writes that an attempt must make before the registry commit, besides the writes in the plan.
        Makes none of them."""

    def replan(self, plan: RegistryCommit, head: RegistryState) -> Replan | None:
        """Replans a change of the registry on another HEAD, without reading from the store. Returns None if the change
        is impossible there or needs a read, if the caller's rights are not seen to allow it there, or if its writes,
        write set or result would differ from the plan's."""
