"""A catalog in memory whose tables are maintained, without Spark: what procedures do is done by commits of ours."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.operations.load import load_table
from arco_catalog.operations.policies.attachments import attach_policy
from arco_catalog.operations.policies.policies import PolicyText, create_policy
from arco_catalog.planning.access import Securable
from arco_catalog.protocol.catalog import Settings
from arco_catalog.tasks.retry import TaskPolicies
from reconciler.compact.values import objects_of
from reconciler.maintain.budget import Budget
from reconciler.maintain.calls import Call, Procedure, Time
from reconciler.maintain.driver import Maintenance, MaintenanceStats
from reconciler.maintain.figures import Figures, read_figures
from reconciler.maintain.planning import HeldBack, Step
from reconciler.maintain.progress import ProcedureOutcome
from reconciler.maintain.table_plans import TablePlan, TableRef
from reconciler.system.definition import Row
from tests.support.fake_runtime import ShortSleeps
from tests.support.scripted_store import ScriptedStore
from tests.support.table_files import append, commit_files, write
from tools.support.catalog_fixture import NS, CatalogFixture

DAY_MS = 86_400_000
LEASE_MS = 300_000
FOR_EVER_MS = 100 * DAY_MS
NAMESPACE = Securable(NS)


class Killed(BaseException):
    """The driver was killed: no handler of the product catches this."""


@dataclass
class MemoryRows:
    """Rows of `system.maintenance` in memory; `dies` says whether the driver dies before or after it writes them."""

    rows: list[Row] = field(default_factory=list)
    dies: str | None = None

    def last_task(self, entity: str) -> str:
        return next((str(row["task_id"]) for row in reversed(self.rows) if row["entity"] == entity), "")

    def write(self, task: str, rows: Sequence[Row]) -> None:
        if self.dies == "before":
            raise Killed
        if all(row["task_id"] != task for row in self.rows):
            self.rows += rows
        if self.dies == "after":
            raise Killed

    def last_orphan_removals(self) -> Mapping[str, int]:
        found = [row for row in self.rows if row["procedure"] == "remove_orphan_files" and row["outcome"] == "done"]
        return {str(row["entity"]): int(str(row["ended_at"])) for row in found}


@dataclass
class RecordingObserver:
    """Records the events of runs."""

    table_plans: list[TablePlan] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    ended: list[ProcedureOutcome] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)
    left_tables: dict[str, str] = field(default_factory=dict)

    def on_plan(self, table_plan: TablePlan) -> None:
        self.table_plans.append(table_plan)

    def on_start(self, table: TableRef, step: Step) -> None:
        self.started.append(f"{table.name} {step.call.procedure}")

    def on_end(self, table: TableRef, outcome: ProcedureOutcome) -> None:
        self.ended.append(outcome)

    def on_held_back(self, table: TableRef, held: HeldBack) -> None:
        self.held[table.name] = held.reason

    def on_skip(self, table: TableRef, reason: str) -> None:
        self.left_tables[table.name] = reason

    def outcomes(self) -> list[tuple[Procedure, str]]:
        """Each procedure that ended, with its outcome."""
        return [(each.procedure, each.outcome) for each in self.ended]


async def nothing_happens(call: Call) -> None:
    """Before or after a call."""


@dataclass
class Procedures:
    """Makes the changes to a table's figures that Iceberg's procedures make."""

    lake: "Lake"
    before: Callable[[Call], Awaitable[None]] = nothing_happens
    after: Callable[[Call], Awaitable[None]] = nothing_happens
    calls: list[str] = field(default_factory=list)
    answers: list[JsonObject] = field(default_factory=list)
    """The results of the first calls, which change nothing."""

    def of(self, name: str) -> list[str]:
        """The procedures that were called for a table."""
        return [call.partition(" ")[2] for call in self.calls if call.startswith(f"{name} ")]

    async def call(self, call: Call, table: Sequence[str]) -> JsonObject:
        name = table[-1]
        self.calls.append(f"{name} {call.procedure}")
        await self.before(call)
        if self.answers:
            return self.answers.pop(0)
        match call.procedure:
            case Procedure.REWRITE_DATA_FILES:
                result = await self.lake.rewrite(name)
            case Procedure.EXPIRE_SNAPSHOTS:
                older_than = call.arguments["older_than"]
                assert isinstance(older_than, Time)
                result = await self.lake.expire(name, older_than.ms)
            case _:
                result = {}
        await self.after(call)
        return result


class Lake:
    """A catalog with the namespace `db`, its clock, and the rows and events of its maintenance."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.runtime = ShortSleeps()
        self.store = ScriptedStore(self.runtime.now_ms)
        self.fixture = CatalogFixture(self.store, self.runtime, settings or Settings("wh"))
        self.rows = MemoryRows()
        self.seen = RecordingObserver()

    async def made(self) -> "Lake":
        """With its namespace."""
        await self.fixture.namespace("db")
        return self

    async def bad_table(self, name: str = "t", files: int = 8, snapshots: int = 4, **more: JsonValue) -> None:
        """A table of small files and many snapshots, a day between each."""
        made = await self.fixture.table(name, None, **more)
        for number in range(snapshots):
            made = await append(self.fixture, made, *(f"{number}-{each}" for each in range(files)), name=name)
            self.runtime.ms += DAY_MS

    async def policy(
        self, kind: str, target: Securable = NAMESPACE, name: str | None = None, **content: JsonValue
    ) -> None:
        """A policy of a predefined type, attached."""
        document: JsonObject = {"enable": True, **content}
        policy, text = name or kind, PolicyText(None, dumps(document).decode())
        await create_policy(self.fixture.session(path=f"/policies/{policy}"), NS, policy, f"system.{kind}", text)
        await attach_policy(self.fixture.session(path=f"/mappings/{policy}"), NS, policy, target, {})

    async def compacted_and_expired(self, target: Securable = NAMESPACE) -> None:
        """Policies by which files are rewritten and snapshots expire after half a day."""
        await self.policy("data-compaction", target)
        await self.policy("snapshot-expiry", target, config={"max_snapshot_age_days": 0.5})

    async def rewrite(self, name: str) -> JsonObject:
        """Makes one file of all."""
        state = await load_table(self.fixture.session(), NS, name)
        document = loads(state.metadata)
        assert isinstance(document, dict)
        file = await write(self.store, f"{document['location']}/data/{self.runtime.uuid()}.parquet")
        await commit_files(self.fixture, state, [file], name=name, operation="replace")
        return {"rewritten_data_files_count": 8}

    async def append(self, name: str, operation: str = "append") -> None:
        """Commits a snapshot beside a procedure: all files are there still, and three more."""
        state = await load_table(self.fixture.session(), NS, name)
        document = loads(state.metadata)
        assert isinstance(document, dict)
        count = (await self.figures(name)).data_files + 3
        files = [f"{document['location']}/data/{self.runtime.uuid()}.parquet" for _ in range(count)]
        await commit_files(self.fixture, state, files, name=name, operation=operation)

    async def expire(self, name: str, older_than_ms: int) -> JsonObject:
        """Removes all older snapshots but the current one."""
        state = await load_table(self.fixture.session(), NS, name)
        document = loads(state.metadata)
        assert isinstance(document, dict)
        gone = [
            each["snapshot-id"]
            for each in objects_of(document["snapshots"])
            if each["snapshot-id"] != document["current-snapshot-id"] and int(str(each["timestamp-ms"])) < older_than_ms
        ]
        update: JsonObject = {"action": "remove-snapshots", "snapshot-ids": [*gone]}
        await self.fixture.commit({"requirements": [], "updates": [update]}, name)
        return {"deleted_manifest_lists_count": len(gone)}

    async def figures(self, name: str = "t") -> Figures:
        """The table as it is now."""
        state = await load_table(self.fixture.session(), NS, name)
        found = await read_figures(self.fixture.another().session(), state.entity)
        assert found is not None
        return found

    def maintenance(self, budget: Budget | None = None) -> Maintenance:
        """A run of another process."""
        session = self.fixture.another().session(deadline_ms=FOR_EVER_MS)
        return Maintenance(session, self.rows, budget or Budget(self.runtime), self.seen)

    async def run(self, procedures: Procedures | None = None, budget: Budget | None = None) -> MaintenanceStats:
        """A run, to its end."""
        maintenance = self.maintenance(budget)
        await maintenance.run(procedures or Procedures(self), TaskPolicies(lease_ms=LEASE_MS))
        return maintenance.stats

    def lease_runs_out(self) -> None:
        """Time passes."""
        self.runtime.ms += 2 * LEASE_MS

    def reported(self) -> list[tuple[str, str, str]]:
        """The table, procedure and outcome of each row."""
        return [(str(row["name"]), str(row["procedure"]), str(row["outcome"])) for row in self.rows.rows]
