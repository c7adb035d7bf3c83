"""Appends to one table in the simulated world, which the catalog rebases, beside commits that it must refuse once they
have lost (docs/design/appends.md). What each client appends is drawn. In the end each row that was applied is there
once, whatever died or was collected meanwhile."""

from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import fastavro

from arco_catalog.iceberg.errors import CatalogError, CommitFailed
from arco_catalog.iceberg.json import loads
from arco_catalog.operations.commit import commit_table
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.fields import text
from tests.simulation.auditor import WAREHOUSE, Ask
from tests.simulation.collecting import LATE_ORPHANS, SETTINGS, CollectingClients, CollectionAuditor
from tests.simulation.explore import Scenario
from tests.simulation.world import DIED, World
from tools.support.appended_files import ALLOWED, REBASE, Lake
from tools.support.catalog_fixture import NS

APPENDS = 3
"""How often each client appends."""
MERGE: dict[str, str] = {}
KAFKA = {**REBASE, "kafka.connect.commit-id": "7"}
KINDS = ((0.6, REBASE), (0.8, MERGE), (1.0, KAFKA))
"""The summaries of commits, drawn by these shares: of appends that may be rebased; of a MERGE that has matched nothing;
and of coordinators of Kafka Connect."""


@dataclass
class Request:
    """A commit that a client has sent: its request, and the file that it adds."""

    ask: Ask
    snapshot_id: int
    parent: int | None
    summary: dict[str, str]

    @property
    def may_be_rebased(self) -> bool:
        return self.summary == REBASE


class AppendAuditor(CollectionAuditor):
    """Judges refusals of appends, and deletions of manifest lists, too."""

    sent: dict[str, Request]

    def _explained(self, ask: Ask, refusal: CatalogError) -> bool:
        """A rebase never fails here. Other commits fail once they have lost."""
        lost = isinstance(refusal, CommitFailed) and refusal.message.startswith("Requirement failed: branch main")
        return lost and not self.sent[ask.principal].may_be_rebased

    def _see_delete(self, key: str) -> None:
        super()._see_delete(key)
        for entity, location, _ in self.became_current:
            if entity in self.locations:
                file = self.world.peek(location.removeprefix(WAREHOUSE))
                assert file is None or f'"{WAREHOUSE}{key}"'.encode() not in file, f"{key} is named, and was deleted"

    def document(self) -> Any:
        """The present metadata of the one table."""
        [entity] = self.locations
        body = self.world.peek(text(self._effective(entity), "metadata_location").removeprefix(WAREHOUSE))
        assert body is not None
        return loads(body)


class AppendClients(CollectingClients):
    """Clients that append again and again, each with what it has loaded some time before."""

    def __init__(self, world: World, settings: Settings, version: int, pause_s: float) -> None:
        super().__init__(world, settings)
        world._network.observers.clear()  # of the auditor that the base has made
        self.auditor: AppendAuditor = AppendAuditor(world)
        self.auditor.sent = {}
        self.version = version
        self.pause_s = pause_s

    async def set_up(self, *tables: str) -> None:
        fixture = self.fixture(self.world.process("setup", skew_ms=0))
        await fixture.namespace("db")
        for name in tables:
            await fixture.table(name, properties={**ALLOWED, "format-version": str(self.version)})

    async def append(self, client: int, process: str) -> None:
        """One client's commits, one after the other."""
        runtime, lake = self.world.runtime, self.world.process("lake", skew_ms=0)
        for number in range(APPENDS):
            document = self.auditor.document()
            await runtime.sleep(self.pause_s * runtime.random())
            drawn = runtime.random()
            summary = next(kind for share, kind in KINDS if drawn < share)
            snapshot_id = 10 * client + number
            body = await lake.run(Lake(lake.store).append(document, snapshot_id, summary=summary))
            assert body is not DIED
            principal = f"c{snapshot_id}"
            ask = self.auditor.ask(Ask(principal, "commit", ("t",)))
            parent = body["requirements"][0]["snapshot-id"]
            self.auditor.sent[principal] = Request(ask, snapshot_id, parent, summary)
            perform = lambda session, body=body: commit_table(session, NS, "t", body)  # noqa: E731
            await self._all(ask, perform, body, (process,), keyed=True)

    async def close(self) -> None:
        await super().close()
        judge(self.world, self.auditor)


def judge(world: World, auditor: AppendAuditor) -> None:
    """What the table has in the end: the rows of each commit that was applied, once; and numbers that only rise."""
    document = auditor.document()
    snapshots = {each["snapshot-id"]: each for each in document["snapshots"]}
    applied = {each.snapshot_id: each for each in auditor.sent.values() if each.ask.applied}
    assert snapshots.keys() == applied.keys()
    for snapshot_id, each in applied.items():
        parent = snapshots[snapshot_id].get("parent-snapshot-id")
        assert each.may_be_rebased or parent == each.parent, f"snapshot {snapshot_id} was rebased"
    chain: list[Any] = []
    head = snapshots.get(document.get("current-snapshot-id"))
    while head is not None:
        chain.append(head)
        head = snapshots.get(head.get("parent-snapshot-id"))
    assert len(chain) == len(snapshots), "a snapshot is on no branch"
    times = [each["timestamp-ms"] for each in document["snapshot-log"]]
    assert times == sorted(times)
    entries: dict[str, Any] = {}
    for number, snapshot in enumerate(reversed(chain), 1):
        listed = {each["manifest_path"]: each for each in records(world, snapshot["manifest-list"])}
        [new] = listed.keys() - entries.keys()
        assert entries == {path: each for path, each in listed.items() if path != new}, "a manifest was lost"
        assert listed[new]["sequence_number"] == snapshot["sequence-number"] == number
        [row] = records(world, new)
        assert row["data_file"]["file_path"].endswith(f"/{snapshot['snapshot-id']}.parquet")
        if document["format-version"] == 3:
            assert listed[new]["first_row_id"] == snapshot["first-row-id"] == number - 1
        entries = listed


def records(world: World, location: str) -> list[Any]:
    """The records of an Avro file, as of now."""
    body = world.peek(location.removeprefix(WAREHOUSE))
    assert body is not None, f"{location} is gone"
    return [*fastavro.reader(BytesIO(body))]


def _scenario(
    name: str, version: int, *, collected: bool, settings: Settings = SETTINGS, pause_s: float = 3.0
) -> Scenario:
    async def run(world: World) -> None:
        clients = AppendClients(world, settings, version, pause_s)
        await clients.set_up("t")
        requests = [clients.append(number, f"p{1 + number % 2}") for number in (1, 2, 3)]
        if collected:
            requests.append(clients.collector("g1"))
        await clients.all(requests)
        await clients.close()

    run.__qualname__ = name
    return run


appends_of_three_clients = _scenario("appends_of_three_clients", 2, collected=False)
appends_with_row_ids = _scenario("appends_with_row_ids", 3, collected=False)
appends_beside_a_collector = _scenario("appends_beside_a_collector", 3, collected=True)
appends_beside_a_hasty_collector = _scenario(
    "appends_beside_a_hasty_collector",
    2,
    collected=True,
    settings=replace(LATE_ORPHANS, retention=replace(SETTINGS.retention, orphans_ms=1_000, margin_ms=11_000)),
)
appends_at_once = _scenario("appends_at_once", 2, collected=False, pause_s=0.05)
SCENARIOS = [
    appends_of_three_clients,
    appends_with_row_ids,
    appends_beside_a_collector,
    appends_beside_a_hasty_collector,
]
