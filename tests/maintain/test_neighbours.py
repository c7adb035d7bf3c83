"""Nothing that deletes files runs where others may have some, and the report names the other
(docs/design/pipeline.md#rule-11). Everything else that is due is done."""

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Session, Settings
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.state.index import Edits, location_key
from arco_catalog.state.needs import Steps, immediately
from arco_catalog.state.registry import RegistryState
from arco_catalog.tasks.execution import TaskFailed
from reconciler.maintain.calls import Procedure
from reconciler.maintain.figures import Figures, read_figures
from reconciler.maintain.neighbours import find_file_elsewhere
from reconciler.maintain.table_plans import TableRef, current_entry
from tests.maintain.lake import DAY_MS, FOR_EVER_MS, Lake, Procedures
from tests.support.scripted_store import Rule, anything, get
from tests.support.table_files import append, commit_files
from tools.support.catalog_fixture import NS

PLACE = "memory:///wh/warehouse/place"
DATA, _, _, EXPIRE, ORPHANS = Procedure


async def shared(*, allow_location_overlap: bool = False) -> Lake:
    """A lake whose tables may overlap, with a bad table at a place, and policies for it."""
    purge = PurgeSettings(trust_locations=True)
    lake = await Lake(Settings("wh", allow_location_overlap=allow_location_overlap, purge=purge)).made()
    await lake.bad_table(location=PLACE)
    await lake.compacted_and_expired()
    await lake.policy("orphan-file-removal")
    return lake


async def state_of(lake: Lake) -> TableState:
    """The table as it is now."""
    return await load_table(lake.fixture.session(), NS, "t")


async def reasons(lake: Lake) -> dict[Procedure, str]:
    """Runs, and returns why what deletes files was held back; what does not was done."""
    procedures = Procedures(lake)
    await lake.run(procedures)
    assert procedures.of("t") == [DATA]
    assert [told for told in lake.reported() if told[0] == "t"] == [("t", "rewrite_data_files", "done")]
    [looked] = [each for each in lake.seen.table_plans if each.table.name == "t"]
    return {held.procedure: held.reason for held in looked.plan.held_back}


@pytest.mark.parametrize("place", [PLACE, f"{PLACE}/inner", PLACE.rpartition("/")[0] + "/place/a/b"])
async def test_a_live_table_in_the_same_place_or_inside(place: str) -> None:
    lake = await shared(allow_location_overlap=True)
    other = await lake.fixture.table("other", location=place)
    held = await reasons(lake)
    assert {*held} == {EXPIRE, ORPHANS}
    assert held[EXPIRE] == f"db.other (entity {other.entity}) lies at a place that overlaps {PLACE}"


async def test_a_live_table_around() -> None:
    lake = await shared(allow_location_overlap=True)
    await lake.fixture.table("t2", location=f"{PLACE}x")  # beside, by its letters
    other = await lake.fixture.table("around", location="memory:///wh/warehouse")
    assert f"db.around (entity {other.entity}) lies" in (await reasons(lake))[ORPHANS]


async def test_a_table_that_was_dropped_inside() -> None:
    lake = await Lake().made()
    other = await lake.fixture.table("other", location=f"{PLACE}/inner")
    await drop_table(lake.fixture.session(), NS, "other", purge=False)
    await lake.bad_table(location=PLACE)
    await lake.compacted_and_expired()
    held = await reasons(lake)
    assert held[EXPIRE].startswith(f"db.other (entity {other.entity}) was dropped, and its files may lie at")


async def test_a_table_that_is_being_purged() -> None:
    lake = await shared()

    def edit(head: RegistryState) -> Steps[Edits | None]:
        hold: JsonObject = {"entity": "01PURGED", "state": "purging", "task": "x"}
        key = location_key(f"{PLACE}/inner", "01PURGED")
        return immediately(None if head.index.get(key) is not None else {key: hold})

    await change_registry(lake.fixture.session(), "a purge that has begun", {}, edit)
    assert "(entity 01PURGED) is being purged" in (await reasons(lake))[EXPIRE]


def snapshot_of(manifest_list: str) -> JsonObject:
    """A commit of a snapshot with this list."""
    added: JsonObject = {
        "snapshot-id": 77,
        "sequence-number": 77,
        "timestamp-ms": 1_767_225_600_000,
        "manifest-list": manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": added}]}


async def test_a_table_that_borrows_from_there() -> None:
    lake = await shared()
    other = await lake.fixture.table("other")
    await lake.fixture.commit(snapshot_of(f"{PLACE}/metadata/snap-1.avro"), "other")
    assert f"db.other (entity {other.entity}) takes files from" in (await reasons(lake))[EXPIRE]


async def test_a_table_that_borrows_from_elsewhere() -> None:
    lake = await shared()
    other = await lake.fixture.table("other")
    place = other.metadata_location.rpartition("/")[0]
    await lake.fixture.commit(snapshot_of(f"{place}/snap-1.avro"))
    assert f"db.other (entity {other.entity}) lies" in (await reasons(lake))[EXPIRE]


async def test_a_table_that_took_a_data_file_of_another_expires_no_snapshot() -> None:
    lake = await shared()
    other = await append(lake.fixture, await lake.fixture.table("other"), "a", name="other")
    taken = f"{other.metadata_location.partition('/metadata/')[0]}/data/a"
    state = await commit_files(lake.fixture, await load_table(lake.fixture.session(), NS, "t"), [taken])
    await append(lake.fixture, state, *(f"late-{number}" for number in range(8)))
    lake.runtime.ms += DAY_MS
    procedures = Procedures(lake)
    await lake.run(procedures)
    assert procedures.of("t") == [DATA, ORPHANS]
    [looked] = [each for each in lake.seen.table_plans if each.table.name == "t"]
    assert [held.reason for held in looked.plan.held_back] == [f"it names a file outside of its locations: {taken}"]


@pytest.mark.parametrize("kind", ["/snap-", "-m0.avro"])
async def test_a_table_that_leads_to_what_is_gone_expires_no_snapshot(kind: str) -> None:
    """What is gone may have named a file of another."""
    lake = await shared()
    gone = min(key for key in lake.store.keys("wh/warehouse/place/metadata/") if kind in key)
    looked = read_figures

    async def first(session: Session, entity: str) -> Figures | None:
        figures = await looked(session, entity)
        await lake.store.delete(gone)
        return figures

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reconciler.maintain.table_plans.read_figures", first)
        procedures = Procedures(lake)
        await lake.run(procedures)
    assert EXPIRE not in procedures.of("t")
    [table] = [each for each in lake.seen.table_plans if each.table.name == "t"]
    held = {each.procedure: each.reason for each in table.plan.held_back}
    assert (
        held[EXPIRE]
        == f"the manifest or manifest list memory:///{gone} does not exist, so it is not known whether the table "
        "refers to files outside of its locations: expire_snapshots is held back, and other procedures are not, until "
        "you restore that file"
    )


async def test_a_table_whose_manifests_are_rewritten_while_they_are_read_is_read_again() -> None:
    """Else a file of another that the old and the new ones name would be in neither."""
    lake = await shared()
    other = await append(lake.fixture, await lake.fixture.table("other"), "a", name="other")
    taken = f"{other.metadata_location.partition('/metadata/')[0]}/data/a"
    state = await commit_files(lake.fixture, await load_table(lake.fixture.session(), NS, "t"), [taken])
    entry = await current_entry(lake.fixture.session(), TableRef(NS, "t", state.entity))
    assert entry is not None
    lists = [key for key in lake.store.keys("wh/warehouse/place/metadata/") if "/snap-" in key]

    async def rewritten() -> None:
        await commit_files(lake.fixture, await load_table(lake.fixture.session(), NS, "t"), [taken])
        for key in lists:
            await lake.store.delete(key)

    lake.store.rules = [Rule(anything("/snap-"), first=rewritten, times=1)]
    assert await find_file_elsewhere(lake.fixture.another().session(), entry) == taken


async def test_a_table_that_changes_during_each_reading_expires_no_snapshot() -> None:
    lake = await shared()
    entry = await current_entry(lake.fixture.session(), TableRef(NS, "t", (await state_of(lake)).entity))
    assert entry is not None

    async def rewritten() -> None:
        lists = [key for key in lake.store.keys("wh/warehouse/place/metadata/") if "/snap-" in key]
        await append(lake.fixture, await state_of(lake), "new")
        for key in lists:
            await lake.store.delete(key)

    lake.store.rules = [Rule(get(".metadata.json"), first=rewritten)]
    with pytest.raises(TaskFailed, match=r"changed between \d+ readings"):
        await find_file_elsewhere(lake.fixture.another().session(deadline_ms=FOR_EVER_MS), entry)


async def test_a_place_that_a_policy_names_must_be_the_table_s() -> None:
    lake = await Lake().made()
    await lake.bad_table(location=PLACE)
    await lake.policy("orphan-file-removal", locations=["memory:///wh/warehouse"])
    await lake.run()
    [looked] = lake.seen.table_plans
    [held] = looked.plan.held_back
    assert "is not among the locations that the registry has" in held.reason


async def test_a_table_that_is_alone_is_not_held_back() -> None:
    lake = await shared()
    await lake.fixture.table("t2", location=f"{PLACE}x")
    procedures = Procedures(lake)
    await lake.run(procedures)
    assert procedures.of("t") == [DATA, EXPIRE, ORPHANS]


async def test_a_neighbour_that_comes_during_a_run_stands_in_the_way() -> None:
    lake = await shared(allow_location_overlap=True)

    async def come(call: object) -> None:
        await lake.fixture.table("other", location=f"{PLACE}/inner")

    procedures = Procedures(lake, after=come)
    await lake.run(procedures)
    assert procedures.of("t") == [DATA]
    assert "db.other" in lake.seen.held["t"]


async def test_a_file_that_left_the_log_has_its_receipt_before_orphans_are_removed() -> None:
    lake = await Lake().made()
    await lake.bad_table(location=PLACE)
    await lake.policy("orphan-file-removal")
    receipts = [key for key in lake.store.keys("wh/_catalog/events/") if "/committed/" in key]
    for key in receipts:
        await lake.store.delete(key)
    there: list[int] = []

    async def look(call: object) -> None:
        there.append(len([key for key in lake.store.keys("wh/_catalog/events/") if "/committed/" in key]))

    await lake.run(Procedures(lake, before=look))
    assert there == [len(receipts)]
