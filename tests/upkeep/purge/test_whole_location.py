"""A purge empties a whole location only if the catalog made it for one table, and no other table has named it
(docs/design/purge.md#rule-17)."""

import json
from dataclasses import replace

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.create import create_table
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.answers import Document, TableState
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.state.index import Edits, location_key
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Steps, immediately
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.task import Status, Task
from arco_catalog.state.tombstone import PURGED, PURGING
from tests.support.scripted_store import Rule, delete
from tests.support.table_files import append, key_of, write
from tests.upkeep.purge.conftest import Purges
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema

HOUR_MS = 3_600_000
WHOLE = PurgeSettings(whole_location=True, vended_ms=12 * HOUR_MS)


@pytest.fixture
async def whole() -> Purges:
    made = Purges(Settings("wh", purge=WHOLE))
    await made.fixture.namespace("db")
    return made


def left(task: Task) -> int:
    assert task.status is Status.SUCCESS, task.summary
    return int(json.loads(str(task.document["result_extended"]))["left_behind"])


def place_of(state: TableState) -> str:
    return state.metadata_location.partition("/metadata/")[0]


async def stray(purges: Purges, state: TableState) -> str:
    """A file that no metadata names."""
    return key_of(await write(purges.store, f"{place_of(state)}/data/stray.parquet"))


async def stage(fixture: CatalogFixture, name: str, location: str | None) -> str:
    """Stages a create. Returns where."""
    where: JsonObject = {} if location is None else {"location": location}
    body: JsonObject = {"name": name, "schema": schema("x"), "stage-create": True, **where}
    answer = await create_table(fixture.session(body), NS, body)
    assert isinstance(answer, Document)
    assert answer.body is not None
    metadata = answer.body["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["location"])


async def test_whatever_lies_where_the_catalog_put_the_table_goes(whole: Purges) -> None:
    await stray(whole, await append(whole.fixture, await whole.table(), "a"))
    assert left(await whole.purge()) == 0
    assert whole.files() == []


async def test_unreferenced_files_are_only_reported_by_default(purges: Purges) -> None:
    kept = await stray(purges, await append(purges.fixture, await purges.table(), "a"))
    assert left(await purges.purge()) == 1
    assert purges.files() == [kept]


async def test_a_location_that_a_client_chose_is_not_emptied(whole: Purges) -> None:
    kept = await stray(whole, await whole.table(location="memory:///wh/warehouse/chosen"))
    assert left(await whole.purge()) == 1
    assert whole.files() == [kept]


async def test_a_staged_location_is_not_emptied(whole: Purges) -> None:
    kept = await stray(whole, await whole.table(location=await stage(whole.fixture, "t", None)))
    assert left(await whole.purge()) == 1
    assert whole.files() == [kept]


@pytest.mark.parametrize("where", ["", "/inner", "/.."])
async def test_a_location_at_which_a_create_was_staged_since_is_not_emptied(whole: Purges, where: str) -> None:
    made = await whole.table()
    kept = await stray(whole, made)
    await whole.drop()
    place = f"{place_of(made)}{where}" if where != "/.." else place_of(made).rpartition("/")[0] + "/outer"
    await stage(whole.fixture.another(), "u", place)
    whole.window_passes()
    await whole.run()
    task = await whole.task(str((await whole.tombstone()).task))
    assert (left(task), whole.files()) == ((0, []) if where == "/.." else (1, [kept]))


async def test_that_a_location_was_shared_is_known_after_an_undrop_and_another_drop(whole: Purges) -> None:
    made = await whole.table()
    kept = await stray(whole, made)
    await whole.drop()
    await stage(whole.fixture.another(), "u", place_of(made))
    await undrop(whole.fixture.session(), NS, "t")
    assert left(await whole.purge()) == 1
    assert whole.files() == [kept]


async def test_an_undrop_shares_nothing(whole: Purges) -> None:
    await stray(whole, await whole.table())
    await whole.drop()
    await undrop(whole.fixture.session(), NS, "t")
    assert left(await whole.purge()) == 0
    assert whole.files() == []


async def test_a_location_at_which_a_table_was_made_since_is_shared_when_that_has_gone(whole: Purges) -> None:
    made = await whole.table()
    kept = await stray(whole, made)
    await whole.drop()
    await whole.table("u", location=place_of(made))
    await whole.drop("u", purge=False)
    index = (await whole.fixture.session().state.head()).index
    tombstone = await whole.tombstone()
    steps = tombstone.is_shared(index)
    next(steps)
    with pytest.raises(StopIteration) as report:
        steps.send(None)
    assert report.value.value is True
    assert kept in whole.files()


async def test_a_create_that_is_staged_at_a_live_table_shares_its_location() -> None:
    overlapping = Purges(Settings("wh", allow_location_overlap=True, purge=WHOLE))
    await overlapping.fixture.namespace("db")
    made = await overlapping.table()
    kept = await stray(overlapping, made)
    await stage(overlapping.fixture.another(), "u", place_of(made))
    assert left(await overlapping.purge()) == 1
    assert overlapping.files() == [kept]


@pytest.mark.parametrize("name", [[], ["db", "u"]], ids=["none", "another's"])
async def test_a_create_at_a_live_table_whose_hold_does_not_lead_to_its_entry_shares_its_location(
    name: list[JsonValue],
) -> None:
    """An earlier version recorded no name in a hold."""
    overlapping = Purges(Settings("wh", allow_location_overlap=True, purge=WHOLE))
    await overlapping.fixture.namespace("db")
    made = await overlapping.table()
    kept = await stray(overlapping, made)
    await overlapping.table("u")
    key = location_key(Location.parse(place_of(made)).normal, made.entity)
    written: Edits = {key: {"entity": made.entity, "state": "live", **({"name": name} if name else {})}}

    def as_of_old(head: RegistryState) -> Steps[Edits | None]:
        return immediately(None if head.index.get(key) == written[key] else written)

    await change_registry(overlapping.fixture.session(), "as of old", {}, as_of_old)
    await stage(overlapping.fixture.another(), "v", place_of(made))
    assert left(await overlapping.purge()) == 1
    assert kept in overlapping.files()


async def test_nothing_is_staged_where_files_are_being_deleted(whole: Purges) -> None:
    met: list[str] = []
    made = await append(whole.fixture, await whole.table(), "a")

    async def stage_there() -> None:
        with pytest.raises(BadRequest) as raised:
            await stage(whole.fixture.patient(), "u", place_of(made))
        met.append(raised.value.message)

    whole.store.rules = [Rule(delete("/data/"), first=stage_there, times=1)]
    assert left(await whole.purge()) == 0
    assert len(met) == 1
    assert "whose files are being deleted" in met[0]


async def in_a_realm(settings: PurgeSettings) -> Purges:
    """A catalog of a realm, whose clients get credentials."""
    purges = Purges(Settings("wh", purge=settings))
    purges.fixture.catalog = replace(purges.fixture.catalog, entry=("id", 1))
    await purges.fixture.namespace("db")
    return purges


async def run(purges: Purges) -> int:
    worker_catalog = replace(purges.fixture.another().catalog, entry=("id", 1))
    from arco_catalog.upkeep.purge.worker import task_worker

    return await task_worker(worker_catalog).run_due(lambda: False)


@pytest.mark.parametrize("whole_location", [True, False])
async def test_a_location_is_listed_again_when_no_client_has_credentials_for_it(whole_location: bool) -> None:
    settings = PurgeSettings(undrop_window_ms=0, whole_location=whole_location, vended_ms=12 * HOUR_MS)
    purges = await in_a_realm(settings)
    made = await append(purges.fixture, await purges.table(), "a")
    await purges.drop()
    tombstone = await purges.tombstone()

    assert await run(purges) == 1
    assert purges.files() == []
    late = await stray(purges, made)  # by a client whose credentials hold still
    waiting = await purges.task(str(tombstone.task))
    assert (waiting.status, waiting.attempts) == (Status.RETRY_SCHEDULED, 0)
    assert waiting.next_run_ms == tombstone.dropped_ms + 12 * HOUR_MS + 20_000
    assert (await purges.tombstone()).state == PURGING
    purges.runtime.ms = waiting.next_run_ms - 1
    assert await run(purges) == 0
    purges.runtime.ms += 1
    assert await run(purges) == 1

    assert left(await purges.task(waiting.id)) == (0 if whole_location else 1)
    assert purges.files() == ([] if whole_location else [late])
    assert (await purges.tombstone()).state == PURGED


async def test_after_a_long_window_no_client_has_credentials() -> None:
    purges = await in_a_realm(PurgeSettings(vended_ms=12 * HOUR_MS))
    await purges.table()
    await purges.drop()
    purges.window_passes()
    assert await run(purges) == 1
    assert (await purges.tombstone()).state == PURGED
