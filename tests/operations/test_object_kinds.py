"""Whatever a catalog stores is of a kind in one table (arco_catalog/state/paths.py), and fsck, collections, backups and
restores know each kind."""

import inspect
from datetime import date
from pathlib import Path

import pytest

from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.reports import take_report
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state import feed_cursors
from arco_catalog.state.bell import Bell
from arco_catalog.state.checkpoints import Checkpoints
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.expiry_record import ExpiryRecord
from arco_catalog.state.file_directories import FileDirectories, read_entities, shard_of, write_shard
from arco_catalog.state.floors import raise_floors, read_floors
from arco_catalog.state.locations import Location
from arco_catalog.state.metadata_claim import Claim, claim
from arco_catalog.state.paths import OBJECT_KINDS, ObjectKind, Paths, object_kind
from arco_catalog.state.proposal import Proposal
from arco_catalog.state.proposal_store import ProposalStore
from arco_catalog.state.reads import Reads
from arco_catalog.state.registry import Operation
from arco_catalog.state.spilling import Limits
from arco_catalog.state.subscription import DeadLetter, Subscription
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.expiry.tables import LiveTable, submit_table
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends.memory import MemoryStore
from tests.support.feeding import feed
from tests.upkeep.recovery.test_backup import a_catalog, a_lived_in_catalog, backed_up, clock_of, restored
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property

PATHS = Paths("wh")
DAY_MS = 24 * 60 * 60_000
GONE = "01KAN0Y7Q2M3C4D5E6F7G8H9JK"
"""An entity that no longer exists."""


def kind_of(key: str) -> ObjectKind | None:
    return object_kind(key.removeprefix(f"{PATHS.state}/"))


def every_path() -> dict[str, str]:
    """What each property and method of `Paths` gives, that gives a key or a prefix of keys below the state folder."""
    samples: dict[object, object] = {str: "x", int: 1, date: date(2026, 1, 1), "str": "x", "int": 1}
    found: dict[str, str] = {}
    for name, member in inspect.getmembers(Paths):
        if name.startswith("_") or name in ("state", "root", "folder", "warehouse"):
            continue
        value: object
        if inspect.isfunction(member):
            wanted = [each.annotation for each in [*inspect.signature(member).parameters.values()][1:]]
            if inspect.signature(member).return_annotation is not str or name == "kept_aside":
                continue
            value = member(PATHS, *(samples[each] for each in wanted))
        else:
            value = getattr(PATHS, name)
        assert isinstance(value, str)
        found[name] = value
    return found


def test_each_path_of_a_catalog_has_a_kind() -> None:
    paths = every_path()
    assert len(paths) > 25
    above_kinds = {"operational"}
    assert {name: path for name, path in paths.items() if kind_of(path) is None and name not in above_kinds} == {}


async def a_catalog_with_all_kinds() -> CatalogFixture:
    purge = PurgeSettings(undrop_window_ms=0, trust_locations=True)
    fixture = a_catalog(Settings("wh", purge=purge, spill=Limits(embedded=900, segment=800, least=200)))
    await a_lived_in_catalog(fixture)
    await fixture.table("short")
    await drop_table(fixture.session(), NS, "short", purge=True)
    await task_worker(fixture.another().catalog).run_until_idle()
    session = fixture.session()
    await take_report(session, NS, "a", {"report-type": "scan-report"}, keep=True)
    await fixture.table("doomed")
    await drop_table(fixture.session(), NS, "doomed", purge=True)
    await raise_floors(session.state, {GONE: 1})
    await write_shard(session.state, shard_of(GONE), {GONE: FileDirectories("1", (), ())}, {GONE})
    await session.state.page_key()
    removed = Location.parse("memory:///wh/warehouse/db/x/metadata/00000-x.metadata.json")
    await claim(session.state, removed, Claim.REMOVED, entity="x", claim_id=fixture.runtime.ulid())
    head = await session.state.head()
    operation = Operation(fixture.runtime.ulid(), "create-table", {}, None)
    proposal = Proposal.of(head, operation, {}, Reads.of(head, []), base=head.sequence, written_ms=1)
    await ProposalStore(session.state).put(proposal)
    await session.state.ring(Bell())
    await session.state.create(session.state.paths.plan_request(64 * "0"), b"")
    entry = RelationEntry({"entity": GONE, "type": "table", "locations": []})
    task = await submit_table(session, LiveTable(NS, "gone", entry), "0", {})
    await session.state.create(session.state.paths.expiry_record(GONE, task, 64 * "0"), ExpiryRecord(1).body)
    aside = session.state.paths.kept_aside(fixture.runtime.ulid(), session.state.paths.manifest)
    await session.state.create(aside, b"{}")
    await fixture.another().commit(set_property("p", "z"), "b")
    await feed(fixture.another().session())
    subscription = Subscription("s", GONE, "https://example.com/", 0, None, 1)
    await session.state.create(session.state.paths.subscription("s"), subscription.body)
    await session.state.create(session.state.paths.dead_letter(GONE, 1), DeadLetter(1, "refused", {}, 1).body)
    return fixture


def keys_by_kind(fixture: CatalogFixture) -> dict[ObjectKind, set[str]]:
    assert isinstance(fixture.store, MemoryStore)
    found: dict[ObjectKind, set[str]] = {kind: set() for kind in OBJECT_KINDS}
    for key in fixture.store.keys(f"{PATHS.state}/"):
        kind = kind_of(key)
        assert kind is not None, key
        found[kind].add(key)
    return found


async def test_fsck_knows_every_kind() -> None:
    fixture = await a_catalog_with_all_kinds()
    assert [kind for kind, keys in keys_by_kind(fixture).items() if not keys] == []
    assert [str(each) async for each in check(Examination(fixture.another().session()))] == []


async def test_a_backup_and_its_restore_know_every_kind(tmp_path: Path) -> None:
    fixture = await a_catalog_with_all_kinds()
    before = keys_by_kind(fixture)
    await backed_up(fixture, tmp_path / "b.tar.gz")
    after = keys_by_kind(await restored(tmp_path / "b.tar.gz", fixture))
    for kind, keys in before.items():
        assert bool(after[kind]) is kind.backed_up, kind
        if kind.backed_up and kind.name != "registry-commit":  # the restore makes one
            assert keys <= after[kind], kind


async def test_a_collection_knows_every_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_cursors, "MAX_BEHIND", 1)  # so that all cursors include the old segments
    fixture = await a_catalog_with_all_kinds()
    first = keys_by_kind(fixture)
    for name in ("a", "b", "r"):
        await drop_table(fixture.another().session(), NS, name, purge=False)
    for _ in range(6):
        clock_of(fixture).ms += 40 * DAY_MS
        await task_worker(fixture.another().catalog).run_until_idle()
        await fixture.another().namespace(f"n{fixture.runtime.ulid()}")  # HEAD moves
        await feed(fixture.another().session(deadline_ms=DAY_MS))
        await collect(fixture.another().session(deadline_ms=DAY_MS), delete=True)
    last = keys_by_kind(fixture)
    checkpoints = await Checkpoints.read(fixture.another().session().state)
    assert (checkpoints.by_entity, await read_floors(fixture.session().state)) == ({}, {})
    assert await read_entities(fixture.another().session().state) == set()
    for kind, keys in first.items():
        if kind.name != "operational":  # a few objects, whose entries go
            assert bool(keys - last[kind]) is kind.collected, kind
