"""What the one driver of all mutations asks of each of them: how to read, plan and recognise its own past.

The driver (driver.py) owns markers, takeovers, retries and the order of things; a mutation owns what is moved.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeAlias, TypeVar

from arco_catalog.planning.answers import Answer
from arco_catalog.planning.attempt import Attempt
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.registry import RegistryState
from storage_backends import Applied, PreconditionFailed


class Freshness(IntEnum):
    """Which parts of a read may come from the process's caches."""

    CACHED = 0
    """All: good enough to plan a compare-and-swap, but not to answer a client from."""
    MOVED = 1
    """Names, but not the object to swap: after a lost compare-and-swap."""
    FRESH = 2
    """None: the client may be answered from it."""


@dataclass(frozen=True, slots=True)
class Write:
    """An object to create, once, under a key that holds an id of its writer's."""

    key: str
    put: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class NoOp:
    """The request changes nothing: everything is already as it asks."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """A step to run before this mutation can be planned. `run` raises `Refusal` if the step is impossible."""

    run: Callable[[], Awaitable[None]]


V = TypeVar("V", bound="ReadSet")

Revalidate: TypeAlias = Callable[[V], Awaitable[bool]]
"""Whether an attempt may commit at a version that was read after its plan was made: the next slot is empty, and no
attempt of the request has committed (docs/design/commit.md#rule-1). Raises `Superseded`."""


@dataclass(frozen=True, slots=True)
class PlannedCommit(Generic[V]):
    """A planned commit: what it may change, what to write first, how to validate, the compare-and-swap, and what to
    write after it.

    `check` runs concurrently with the first writes. It returns None if the plan is still valid, or a fresher read
    set to plan on. `ready`, if given, runs between the first writes and the swap, and raises `AttemptAborted` if this
    attempt can no longer succeed. `swap` is the commit point; if it commits at another version than the plan was made
    on, it revalidates the attempt there first. `after` is written concurrently with the final slot, at best effort: the
    reconciler repairs what is missing.
    """

    write_set: WriteSet
    first: Sequence[Write]
    check: Callable[[], Awaitable[V | None]]
    swap: Callable[["Revalidate[V]"], Awaitable[Applied | PreconditionFailed]]
    after: Sequence[Write]
    answer: Answer
    ready: Callable[[], Awaitable[None]] | None = None


class AttemptAborted(Exception):
    """This attempt can never commit: plan again under another one."""


class ReadSet(ABC):
    """What a mutation read: the object that it would change, at one version, and whatever its plan depends on. `head`
    is the registry's HEAD under which it was read."""

    head: RegistryState

    @property
    @abstractmethod
    def is_fresh(self) -> bool:
        """Whether every part was read from the store for this request, so that the client may be answered from it."""

    @abstractmethod
    def covers(self, write_set: WriteSet) -> bool:
        """Whether everything that a write set names was read."""

    @abstractmethod
    async def has_committed(self, attempt: str, write_set: WriteSet) -> bool:
        """Whether the attempt, which has this write set, had committed by the time that this was read. Raises
        `CommitStateUnknown` where the evidence is gone (docs/design/commit.md#evidence)."""


class Mutation(ABC, Generic[V]):
    """One request that changes something."""

    @abstractmethod
    async def read(self, freshness: Freshness, rank: str) -> V:
        """Resolves the name, and reads the object to change, at a version. `rank` is the request's (`Attempt`)."""

    @abstractmethod
    def needs_base(self, read_set: V) -> bool:
        """Whether planning needs more than `read` has read, which `load_base` must load first."""

    @abstractmethod
    async def load_base(self, read_set: V) -> None:
        """Reads the rest of what planning needs (the base: a metadata file, say) into the read set. If that raises a
        refusal, it is kept there, and `plan` raises it."""

    @abstractmethod
    async def write_set(self, read_set: V, attempt: Attempt) -> WriteSet:
        """What an attempt may change on this read set, as far as that is known before it is planned."""

    @abstractmethod
    async def plan(self, read_set: V, attempt: Attempt) -> "PlannedCommit[V] | NoOp | Prerequisite":
        """What to do: what `planning` makes of the read set, the request and the attempt, ready to be carried out; what
        it looks up is read first. Raises `Refusal` for a definite no, and `StoreUnavailable` past the deadline."""

    @abstractmethod
    async def answer_on_evidence(self, attempt: str, write_set: WriteSet) -> Answer:
        """The answer to an attempt that is known to have committed, by the entity that it named, never by name."""
