"""What is there before a program begins: made once for all programs that begin alike, and copied into their worlds."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache

from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.policies.policies import create_policy
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.state.access import Caches
from arco_catalog.state.files import FileCache
from storage_backends import ABSENT
from tests.simulation.bucket import Stored
from tests.simulation.loop import SimulatedLoop
from tests.simulation.programs import bodies
from tests.simulation.programs.grammar import DB, NOTIFIED, OTHER
from tests.simulation.programs.recorder import Recorder
from tests.simulation.programs.requests import Conditions, Name, Program, Request
from tests.simulation.world import World
from tests.support.registry_versions import raise_version
from tools.support.catalog_fixture import CatalogFixture


@dataclass(frozen=True, slots=True)
class Beginning:
    """A bucket, what was recorded of how it came to be, and what a process that was there remembers."""

    objects: dict[str, Stored]
    recorder: Recorder
    caches: Caches
    files: FileCache

    def warm(self, catalog: Catalog) -> Catalog:
        """A catalog as a process serves it that has seen all of this."""
        return replace(catalog, caches=deepcopy(self.caches), files=deepcopy(self.files))


async def leave_files(fixture: CatalogFixture) -> None:
    """Writes all that another catalog may tell of."""
    document = loads((await fixture.table("like")).metadata)
    assert isinstance(document, dict)
    await drop_table(fixture.session(principal="setup"), DB, "like", purge=False)
    for name in [*((DB, name) for name in "tuv"), (OTHER, "t")]:
        named: JsonObject = {"table-uuid": bodies.followed_uuid(name), "location": bodies.followed_folder(name)}
        for at in range(NOTIFIED):
            key = bodies.followed_file(name, at).removeprefix("memory:///")
            await fixture.store.put(key, dumps({**document, **named}), ABSENT)


def begin(world: World, recorder: Recorder, program: Program, settings: Settings) -> Beginning:
    """Fills a world with what a program begins with."""
    said = program.conditions
    told = Conditions(
        cleaning=said.cleaning,
        shared_folder=said.shared_folder,
        overlap=said.overlap,
        policies=said.policies,
        appends=said.appends,
        proposals=said.proposals,
    )
    beginning = _beginning(program.tables, program.views, told, settings)
    world.fill(beginning.objects)
    recorder.resume(beginning.recorder)
    return beginning


@lru_cache(200)
def _beginning(tables: Sequence[Name], views: Sequence[Name], conditions: Conditions, settings: Settings) -> Beginning:
    loop = SimulatedLoop(0)
    world = World(loop)
    recorder = Recorder(world)
    process = world.process("setup", 0)
    fixture = CatalogFixture(process.store, process.runtime, settings)

    async def make() -> None:
        for namespace in dict.fromkeys([DB, *(name[0] for name in (*tables, *views))]):
            await fixture.namespace(*namespace)
        for number, name in enumerate((*tables, *views)):
            principal = f"setup{number}"
            table = name in tables
            request = Request("create" if table else "create-view", (name,))
            body = bodies.new_table(name[1], principal, conditions) if table else bodies.new_view(name[1], principal)
            await bodies.performing(request, body)(fixture.session(body, principal=principal))
        if conditions.policies:
            for choice, policy in enumerate("tuv"):
                session, of = fixture.session(principal="setup"), bodies.policy_type(choice % 2)
                await create_policy(session, DB, policy, of, bodies.policy_text("setup"))
        if settings.external:
            await leave_files(fixture)
        if conditions.proposals:
            await raise_version(fixture.session().state)
        await world.settle()

    loop.run(make())
    assert recorder.history.problems == []
    return Beginning(world.stored(), recorder, fixture.catalog.caches, fixture.catalog.files)
