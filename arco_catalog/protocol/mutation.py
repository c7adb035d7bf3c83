"""The interface of a mutation: how one request that changes something reads, plans, and finds its own past commits.

The driver (driver.py) owns markers, takeovers, retries and the order of steps. A mutation owns what is changed.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Generic, TypeVar

from arco_catalog.planning.answers import Answer
from arco_catalog.planning.attempt import Attempt
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.registry import RegistryState
from storage_backends.lazy_dataclass import dataclass

if TYPE_CHECKING:  # importing it takes time, which a cold start for a read saves
    from arco_catalog.protocol.planned_commit import PlannedCommit


class Freshness(IntEnum):
    """Which parts of what a mutation reads may come from the process's caches."""

    CACHED = 0
    """All parts. A plan may rely on such a read, as a compare-and-swap follows; an answer may not."""
    MOVED = 1
    """Names, but not the object to swap: for the read after a lost compare-and-swap."""
    FRESH = 2
    """No part. An answer may be based on such a read."""


@dataclass(frozen=True, slots=True)
class NoOp:
    """The plan of a request that changes nothing, because the state is already the requested one; and its answer."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """A step that must run before a mutation can be planned. `run` raises `Refusal` if the step is impossible."""

    run: Callable[[], Awaitable[None]]


class AttemptAborted(Exception):
    """An attempt at a mutation can never commit; the commit loop must plan again under another one."""


class ReadSet(ABC):
    """What a mutation read: the stored object to change, at one version, and all else on which its plan depends. `head`
    is the registry's HEAD under which it was read."""

    head: RegistryState

    @property
    @abstractmethod
    def is_fresh(self) -> bool:
        """Whether every part of this read set was read from the store for this request, so that the client may be
        answered from it."""

    @abstractmethod
    def covers(self, write_set: WriteSet) -> bool:
        """Whether this read set has every object that a write set names."""

    @abstractmethod
    async def has_committed(self, attempt: str, write_set: WriteSet) -> bool:
        """Whether an attempt at a request, which has this write set, had committed when this read set was read. Raises
        `CommitStateUnknown` where the evidence was removed (docs/design/commit.md#evidence)."""


V = TypeVar("V", bound=ReadSet)


class Mutation(ABC, Generic[V]):
    """The interface of a request that changes something, by which the driver reads, plans and answers it."""

    @abstractmethod
    async def read(self, freshness: Freshness, rank: str) -> V:
        """Reads what a request is to change: resolves the name in the request, and reads the object that has it, with
        the version, from the caches as far as `freshness` allows. `rank` is that of the request (`Attempt.rank`)."""

    @abstractmethod
    def needs_base(self, read_set: V) -> bool:
        """Whether `load_base` must be called before `plan`: the plan needs a base that is not in the read set, and
        not cached. A cached one is put into the read set."""

    @abstractmethod
    async def load_base(self, read_set: V) -> None:
        """Reads the rest of what planning needs (the base, such as a metadata file) into the read set. A `Refusal` is
        not raised but stored there, and `plan` raises it."""

    @abstractmethod
    async def write_set(self, read_set: V, attempt: Attempt) -> WriteSet:
        """Returns the objects that an attempt may change on this read set, as far as they are known before the plan."""

    @abstractmethod
    async def plan(self, read_set: V, attempt: Attempt) -> "PlannedCommit | NoOp | Prerequisite":
        """Plans the change that `planning` makes of the read set, the request and the attempt, and reads the segments
        that the plan looks up. Returns the commit to make, that there is nothing to change (`NoOp`), or a step that
        must run before another plan (`Prerequisite`). Raises `Refusal` for a definite refusal, and `StoreUnavailable`
        past the deadline."""

    @abstractmethod
    async def validate(self, read_set: V, rank: str) -> V | None:
        """Checks that a plan on this read set is still valid; runs concurrently with the plan's first writes.
        Returns None if it is, else a fresher read set, with its base, to plan on. `rank` is that of the request."""

    async def take_turn(self, read_set: V, losses: int, rank: str) -> V | None:
        """Lets other writers go first, or makes them wait, after so many `losses` of compare-and-swaps by this request,
        none of which is in doubt. `rank` is that of the request. Returns a fresher read set, with its base, to plan on;
        None to plan on this one, which is all that a mutation without turns does."""
        return None

    @abstractmethod
    async def answer_on_evidence(self, attempt: str, write_set: WriteSet) -> Answer:
        """Returns the answer to a request of which an attempt, this or an earlier one, is known to have committed. What
        it changed is found by the attempt's write set, which has the entity or the place in the registry's history,
        never by name."""
