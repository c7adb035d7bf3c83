"""The processes that serve the requests of a program."""

from dataclasses import replace

from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.advisory_locks import AdvisoryLocks
from arco_catalog.protocol.background_tasks import BackgroundTasks
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.paths import Paths
from tests.simulation import collecting
from tests.simulation.clients import AS_DEPLOYED, EAGER
from tests.simulation.collecting import RETENTION
from tests.simulation.programs.history import History
from tests.simulation.programs.recorder import PATHS, STORE, Recorder
from tests.simulation.programs.requests import Program
from tests.simulation.programs.setting_up import begin
from tests.simulation.scenarios import TINY
from tests.simulation.world import Process, World
from tools.support.catalog_fixture import CatalogFixture

COPY = Paths("copy")
PREFIX = "copy-"
"""With which the names of a copy's processes begin."""
NUMBERS_OF_COPY = 1_000
"""After which the requests to a copy are numbered."""


class Servers:
    """The processes that serve a program's requests, each with settings, caches and a clock of its own; and the record
    of the run."""

    def __init__(self, world: World, program: Program, *, draw_faults: bool, copy: bool = False) -> None:
        self.world = world
        self.program = program
        self.paths = COPY if copy else PATHS
        self.recorder = Recorder(world, self.paths)
        self.recorder.closed = copy  # until there is one
        self.histories: list[History] = []
        """Those of catalogs that a restore has ended, or made."""
        conditions = program.conditions
        settings = AS_DEPLOYED if conditions.deployed else EAGER
        self.settings: Settings = replace(
            settings,
            warehouse=self.paths.root,
            allow_location_overlap=conditions.overlap,
            external=conditions.external,
            purge=settings.purge
            if conditions.window_ms is None
            else PurgeSettings(undrop_window_ms=conditions.window_ms, whole_location=True),
            spill=TINY if conditions.spilled else settings.spill,
        )
        if conditions.ages:
            self.settings = replace(self.settings, request_ms=collecting.SETTINGS.request_ms, retention=RETENTION)
        self._settings: dict[str, Settings] = {}
        self.fixtures: dict[str, CatalogFixture] = {}
        self._rng = world.loop.stream("player")
        self._numbers = NUMBERS_OF_COPY if copy else 0
        self._allowed = (f"{STORE}{PATHS.warehouse}/",) if copy else ()
        self.draws_faults = draw_faults
        self._beginning = None if copy else begin(world, self.recorder, program, self.settings)

    @property
    def history(self) -> History:
        """That of the catalog as it is now."""
        return self.recorder.history

    def process(self, name: str) -> Process:
        """A process of this name, or the one that took its place when it died."""
        name = self.name_of(name)
        while not (found := self.world.process(name, self._skew(name))).alive:
            name += "+"
        return found

    def name_of(self, process: str) -> str:
        """What the world calls a process of this catalog."""
        return process if self.paths is not COPY or process.startswith(PREFIX) else f"{PREFIX}{process}"

    def _skew(self, name: str) -> int:
        skew = self.program.conditions.skew_ms
        return self.world.loop.stream(f"{name}/skew").randint(-skew, skew)

    def settings_of(self, process: str) -> Settings:
        """The settings of a server: those of the program, unless servers disagree."""
        name = process.rstrip("+")
        if not self.program.conditions.own_settings or not name.startswith("p"):
            return self.settings
        if name not in self._settings:
            draw = self.world.loop.stream(f"{name}/settings")
            timing = draw.choice((AS_DEPLOYED, EAGER))
            self._settings[name] = replace(
                self.settings,
                request_ms=timing.request_ms,
                in_progress_ms=timing.in_progress_ms,
                duplicate_timeout_ms=timing.duplicate_timeout_ms,
                spill=draw.choice((TINY, timing.spill)),
                purge=replace(self.settings.purge, undrop_window_ms=draw.choice((0, 2_000, 5_000)))
                if self.program.conditions.window_ms is not None
                else self.settings.purge,
            )
        return self._settings[name]

    def fixture(self, process: Process) -> CatalogFixture:
        """The catalog as this process serves it, with all that it remembers."""
        if process.name not in self.fixtures:
            fixture = CatalogFixture(process.store, process.runtime, self.settings_of(process.name), self._allowed)
            conditions = self.program.conditions
            if conditions.warm and "+" not in process.name and self._beginning is not None:
                fixture.catalog = self._beginning.warm(fixture.catalog)
            if not conditions.shared:
                fixture.catalog = replace(fixture.catalog, group_committer=None)
            if conditions.served:
                fixture.catalog = replace(
                    fixture.catalog, background_tasks=BackgroundTasks(), table_locks=AdvisoryLocks()
                )
            self.fixtures[process.name] = fixture
        return self.fixtures[process.name]
