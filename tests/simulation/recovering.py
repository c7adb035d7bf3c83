"""Objects are lost at any instant of a run, and what a recovery makes of it is held against what they held
(docs/recovery.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.decisions import resolve_for_read
from arco_catalog.state.fields import sequence, text
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.upkeep.recovery.restore import Choices, restore
from storage_backends import ABSENT, Found, Version
from storage_backends.memory import MemoryStore
from tests.simulation.explore import Scenario, trace
from tests.simulation.faults import NO_FAULTS, FaultPlan
from tests.simulation.history import Event
from tests.simulation.loop import SimulatedLoop
from tests.simulation.world import World
from tests.support.fake_runtime import FakeRuntime
from tools.support.catalog_fixture import CatalogFixture

PATHS = Paths("wh")
HOUR_MS = 60 * 60_000


@dataclass
class Outcomes:
    """How often a recovery knew what had been lost, and how often it had to ask."""

    known: int = 0
    asked: int = 0


@dataclass
class Instants:
    """What was stored in the instant after each applied write of the state."""

    snapshots: list[dict[str, bytes]] = field(default_factory=list)

    def world(self, loop: SimulatedLoop, plan: FaultPlan) -> World:
        """A world that is watched."""
        world = World(loop, plan)

        def see(event: Event) -> None:
            if event.key.startswith(PATHS.state):
                self.snapshots.append(world.snapshot())

        world.observe(see)
        return world


def instants_of(scenario: Scenario, seed: int, plan: FaultPlan = NO_FAULTS) -> Sequence[dict[str, bytes]]:
    """The instants of one run."""
    instants = Instants()
    trace(scenario, seed, plan, instants.world)
    return instants.snapshots


async def stored(objects: Mapping[str, bytes]) -> CatalogFixture:
    """A catalog with these objects, in another world, an hour later."""
    clock = FakeRuntime()
    store = MemoryStore(now_ms=clock.now_ms)
    for key, body in objects.items():
        await store.put(key, body, ABSENT)
    clock.ms += HOUR_MS
    return CatalogFixture(store, clock)


def candidates(report: JsonObject, name: str) -> list[str]:
    """What an operator is asked to choose from."""
    return [text(each, name) for each in sequence(report, "candidates") if isinstance(each, dict)]


async def lose_head(objects: Mapping[str, bytes], outcomes: Outcomes) -> None:
    """HEAD is lost: it is found again, or among those that the operator is asked about."""
    body = objects.get(PATHS.manifest)
    if body is None:
        return
    truth = RegistryState.parse(body, Version(""), "HEAD")
    fixture = await stored({key: each for key, each in objects.items() if key != PATHS.manifest})

    report = await restore(fixture.session(), Choices(), dry=False)
    head = report["head"]
    assert isinstance(head, dict)
    if head["chosen"] is None:
        outcomes.asked += 1
        assert truth.id in candidates(head, "commit"), f"HEAD was {truth.id}, which is not among {head}"
        assert PATHS.manifest not in [*_keys(fixture)], "HEAD was written, and nobody chose it"
        report = await restore(fixture.session(), Choices(head=truth.id), dry=False)
    else:
        outcomes.known += 1
        assert head["chosen"] == truth.id, f"HEAD was {truth.id}, and {head} was chosen"
    assert await _body(fixture, PATHS.manifest) == body


async def lose_pointers(objects: Mapping[str, bytes], outcomes: Outcomes) -> None:
    """All pointers are lost: each names what it named, or that is among what the operator is asked about. What a
    transaction has not committed is not in it."""
    if PATHS.manifest not in objects:
        return
    complete = await stored(objects)
    truths: dict[str, Pointer] = {}
    for key, body in objects.items():
        if key.startswith(PATHS.pointers):
            pointer = Pointer.parse(body, Version(""), key)
            truths[pointer.entity] = await resolve_for_read(complete.session().state, pointer)
    fixture = await stored({key: each for key, each in objects.items() if not key.startswith(PATHS.pointers)})

    report = await restore(fixture.session(), Choices(), dry=False)
    for each in sequence(report, "pointers"):
        assert isinstance(each, dict)
        truth = truths[text(each, "entity")]
        if each["chosen"] is None:
            outcomes.asked += 1
            assert truth.metadata.location in candidates(each, "metadata_location"), f"{truth.document} not in {each}"
            continue
        outcomes.known += 1
        assert each["error"] is None
        assert each["chosen"] == truth.metadata.location, f"it named {truth.metadata}, and {each} was chosen"
        made = Pointer.parse(await _body(fixture, PATHS.pointer(truth.entity)), Version(""), truth.entity)
        assert made.metadata == truth.metadata
        assert made.sequence - truth.sequence > len(made.recent), "it would deny commits that it does not remember"
        for name in ("table_uuid", "current_snapshot_id", "refs", "origin", "base"):
            assert made.document.get(name) == truth.document.get(name), name


def _keys(fixture: CatalogFixture) -> Sequence[str]:
    assert isinstance(fixture.store, MemoryStore)
    return fixture.store.keys("")


async def _body(fixture: CatalogFixture, key: str) -> bytes:
    found = await fixture.store.get(key)
    assert isinstance(found, Found)
    return found.body
