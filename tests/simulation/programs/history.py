"""What a run leaves behind: the states of the catalog from instant to instant, what was asked and answered, and what
became of files. The judges look at nothing else."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.key_settings import KeyPolicy
from tests.simulation.programs.requests import Name, Request
from tests.simulation.programs.rows import Manifests
from tests.simulation.programs.states import CatalogState


@dataclass(frozen=True, slots=True)
class Moment:
    """From `at` on, until the next one, the catalog says this."""

    at: float
    state: CatalogState


@dataclass(frozen=True, slots=True)
class Effect:
    """A request took effect: `unit` is the attempt, operation or transaction that did it. A commit has a file, the one
    before it, the name by which it came, and the time from which its base was the state."""

    at: float
    principal: str
    unit: str
    kind: str
    entity: str
    name: Name | None = None
    file: str | None = None
    base: str | None = None
    since: float = 0.0
    process: str = ""
    sent: float = 0.0
    """When the write that did it was sent first, by this process."""


@dataclass(slots=True)
class Transaction:
    """A transaction's life, and the intents that it laid, on entities and on names."""

    begun: float
    decided: float = math.inf
    committed: bool = False
    entities: dict[str, float] = field(default_factory=dict)
    names: dict[Name, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deletion:
    """A metadata file that was deleted, and whom that takes it from."""

    at: float
    file: str
    needed_by: str | None


@dataclass(slots=True)
class Asked:
    """One request as its client sees it. `told` is its answer, or what it was refused with; None while, or if, nobody
    knows. `body` is what was sent."""

    principal: str
    request: Request
    key_ms: int | None
    since: float
    body: JsonObject = field(default_factory=dict)
    until: float = math.inf
    told: object | Refusal = None
    undone: bool = False
    """Whether it was told that nothing was done, which is true for ever only of a request without a key."""
    sendings: int = 0
    calls: int = 0
    """The most calls to the store that one sending of it made."""
    deadlines: dict[str, float] = field(default_factory=dict)
    """By process, the deadline of the last sending; empty where clocks are set meanwhile."""
    given_up: bool = False
    """Whether its client stopped sending it without an answer."""
    in_progress: int = 0
    """How often it was told that somebody else is at it, at a time when nobody was."""
    starts: list[float] = field(default_factory=list)
    """When each sending of it began."""
    answered: float = math.inf
    """When the sending began that got the first answer."""
    contradiction: object = None
    """A later answer that is the opposite of the first."""

    @property
    def yes(self) -> bool:
        """Whether it was told that it is done."""
        return self.told is not None and not isinstance(self.told, Refusal)

    def __str__(self) -> str:
        return f"{self.principal} ({self.request})"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a read was told: a table's entity and file, the names in a listing, properties, or why not."""

    request: Request
    process: str
    since: float
    until: float
    told: tuple[str, str] | frozenset[str] | JsonObject | Refusal | None


@dataclass(slots=True)
class History:
    """One run. `documents` are metadata files by location, `problems` what was wrong in the instant in which it was
    seen."""

    moments: list[Moment] = field(default_factory=lambda: [Moment(0.0, CatalogState())])
    effects: list[Effect] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    transactions: dict[str, Transaction] = field(default_factory=dict)
    deletions: list[Deletion] = field(default_factory=list)
    claimed_to_remove: set[str] = field(default_factory=set)
    """Files that cleaning may delete, or has: nobody registers them any more."""
    documents: dict[str, JsonObject] = field(default_factory=dict)
    properties: dict[str, JsonObject] = field(default_factory=dict)
    current: list[tuple[str, str, int]] = field(default_factory=list)
    """Each metadata file of ours that became current: entity, location, time."""
    collected_before: list[tuple[str, str, int]] = field(default_factory=list)
    """Those of entities whose names a collection had removed before the backup from which the catalog was restored. The
    backup may have their receipts, which the collection deletes later."""
    key_policies: list[tuple[float, KeyPolicy]] = field(default_factory=lambda: [(0.0, KeyPolicy())])
    """How the catalog reads keys, from each time on."""
    begun: dict[str, float] = field(default_factory=dict)
    """When the first attempt of a request was put into a marker, by principal."""
    keyless: set[str] = field(default_factory=set)
    """Whose markers were closed by a server that read no keys, or had not heard that they are read again."""
    denials: list[float] = field(default_factory=list)
    """When the store refused somebody for lack of permission."""
    problems: list[str] = field(default_factory=list)
    manifests: Manifests = field(default_factory=Manifests)

    @property
    def state(self) -> CatalogState:
        """The last one."""
        return self.moments[-1].state

    def window(self, since: float, until: float) -> Iterator[Moment]:
        """Each state that held at some instant from `since` to `until`."""
        first = bisect_right(self.moments, since, key=lambda moment: moment.at) - 1
        while first > 0 and self.moments[first].at >= since:
            first -= 1  # what ended in the very instant held in it
        for moment in self.moments[max(0, first) :]:
            if moment.at > until:
                return
            yield moment

    def chain_of(self, files: Mapping[str, str]) -> list[tuple[str, str, int]]:
        """What became current of each entity up to this file of it, in the order in which it did."""
        bases = {(effect.entity, effect.file): effect.base for effect in self.effects if effect.file is not None}
        chain: set[tuple[str, str]] = set()
        for entity, last in files.items():
            file: str | None = last
            while file is not None and (entity, file) not in chain:
                chain.add((entity, file))
                file = bases.get((entity, file))
        return [each for each in self.current if each[:2] in chain]

    def of(self, principal: str) -> list[Effect]:
        """What a request did."""
        return [effect for effect in self.effects if effect.principal == principal]


@dataclass(frozen=True, slots=True)
class Ending:
    """What is in the store when all is quiet and the reconciler has been everywhere."""

    objects: Mapping[str, bytes]
    entries: Mapping[str, JsonObject]
    short_memory: bool = False
    unwalked: Sequence[str] = ()
