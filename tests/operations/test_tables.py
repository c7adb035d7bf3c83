"""Creating, registering, renaming and dropping tables (docs/design/state.md, docs/design/registry.md#operations)."""

import asyncio
import gzip
from functools import partial

import pytest

from arco_catalog.iceberg.errors import (
    AlreadyExists,
    BadRequest,
    CommitFailed,
    NoSuchNamespace,
    NoSuchTable,
    NotFound,
)
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table, require_table
from arco_catalog.operations.receipts import receipts
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.planning.answers import Document
from arco_catalog.state.entries import find_relation
from arco_catalog.state.index import tombstones_of
from storage_backends import ABSENT, ANY, Found
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import Rule, ScriptedStore, get
from tools.support.catalog_fixture import NS, CatalogFixture, state
from tools.support.request_bodies import creation_updates, schema, set_property

WAREHOUSE = "memory:///wh/warehouse"


async def document(fixture: CatalogFixture, name: str = "t") -> JsonObject:
    found = loads((await load_table(fixture.session(), NS, name)).metadata)
    assert isinstance(found, dict)
    return found


async def test_a_created_table_is_seen_at_once_by_another_process(fixture: CatalogFixture) -> None:
    other = fixture.another()
    with pytest.raises(NoSuchTable):
        await load_table(other.session(), NS, "t")
    made = await fixture.table("t")
    assert (await load_table(other.session(), NS, "t")).metadata == made.metadata


async def test_a_table_lives_where_no_other_ever_did(fixture: CatalogFixture) -> None:
    first = await fixture.table("t")
    await drop_table(fixture.session(), NS, "t", purge=True)
    second = await fixture.table("t")
    assert first.entity != second.entity
    assert first.metadata_location.split("/metadata/")[0] != second.metadata_location.split("/metadata/")[0]
    assert str((await document(fixture))["location"]).startswith(f"{WAREHOUSE}/db/t-")


@pytest.mark.parametrize("name", ["a b", "a/b", "ü", "a%2Fb", "..", ".", "a.b", "x" * 200])
async def test_any_name_makes_a_location_that_every_engine_takes(fixture: CatalogFixture, name: str) -> None:
    await fixture.table(name)
    location = str((await document(fixture, name))["location"])
    assert location.isascii()
    assert not set(location) & set(" %?#")
    assert location.count("/") == WAREHOUSE.count("/") + 2


async def test_a_table_needs_its_namespace_and_a_free_name(fixture: CatalogFixture) -> None:
    body: JsonObject = {"name": "t", "schema": schema("x")}
    with pytest.raises(NoSuchNamespace, match="Namespace does not exist: nowhere"):
        await create_table(fixture.session(body), ("nowhere",), body)
    await fixture.table("t")
    with pytest.raises(AlreadyExists, match=r"Table already exists: db\.t"):
        await fixture.table("t")


async def test_an_explicit_location_is_taken_as_given_inside_the_warehouse_and_nowhere_else(
    fixture: CatalogFixture,
) -> None:
    await fixture.table("t", location=f"{WAREHOUSE}/mine/")
    assert (await document(fixture))["location"] == f"{WAREHOUSE}/mine"
    for outside in ("memory:///elsewhere", "s3://bucket/x", f"{WAREHOUSE}/../_catalog/x", "memory:///wh/_catalog/t"):
        with pytest.raises(BadRequest):
            await fixture.table("u", location=outside)


@pytest.mark.parametrize("inside", ["", "/deeper", "/a%62"])
async def test_a_location_of_a_live_table_is_not_shared(fixture: CatalogFixture, inside: str) -> None:
    await fixture.table("t", location=f"{WAREHOUSE}/mine/ab")
    overlap = f"{WAREHOUSE}/mine{inside}" if inside == "/a%62" else f"{WAREHOUSE}/mine/ab{inside}"
    with pytest.raises(BadRequest, match="overlaps"):
        await fixture.table("u", location=overlap)
    with pytest.raises(BadRequest, match="overlaps"):
        await fixture.table("u", location=f"{WAREHOUSE}/mine")


async def test_a_location_is_shared_where_the_operator_allows_it(fixture: CatalogFixture) -> None:
    settings = type(fixture.settings)("wh", allow_location_overlap=True)
    sharing = CatalogFixture(fixture.store, fixture.runtime, settings)
    await sharing.table("t", location=f"{WAREHOUSE}/mine")
    await sharing.table("u", location=f"{WAREHOUSE}/mine")


@pytest.mark.parametrize("purge", [False, True])
async def test_the_location_of_a_dropped_table_may_be_named_again(fixture: CatalogFixture, purge: bool) -> None:
    for _ in range(2):
        await fixture.table("t", location=f"{WAREHOUSE}/mine")
        await drop_table(fixture.session(), NS, "t", purge=purge)
    await fixture.table("t", location=f"{WAREHOUSE}/mine")


@pytest.mark.parametrize(
    ("location", "data", "metadata", "held"),
    [
        ("mine", "mine/data", "mine/metadata", ["mine"]),
        ("mine/inner", "mine", "mine/other", ["mine"]),
        ("mine/inner", "theirs", "mine", ["mine", "theirs"]),
        ("mine", "mine", "theirs", ["mine", "theirs"]),
    ],
)
async def test_a_table_holds_its_outermost_locations(
    fixture: CatalogFixture, location: str, data: str, metadata: str, held: list[str]
) -> None:
    named = {"write.data.path": f"{WAREHOUSE}/{data}", "write.metadata.path": f"{WAREHOUSE}/{metadata}"}
    await fixture.table("t", location=f"{WAREHOUSE}/{location}", properties={**named})

    entry = find_relation((await fixture.session().state.head()).index, NS, "t")
    assert entry is not None
    assert sorted(entry.locations) == [f"{WAREHOUSE}/{place}" for place in held]


async def test_a_commit_may_add_a_free_location_which_is_then_held(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    await fixture.commit({"requirements": [], "updates": [{"action": "set-location", "location": f"{WAREHOUSE}/new"}]})
    await fixture.commit(set_property("write.data.path", f"{WAREHOUSE}/data"))
    for held in ("new", "data/inside"):
        with pytest.raises(BadRequest, match="overlaps"):
            await fixture.table("u", location=f"{WAREHOUSE}/{held}")
    await fixture.commit(set_property("a", "1"))
    assert (await load_table(fixture.session(), NS, "t")).metadata_location.startswith(
        f"{WAREHOUSE}/new/metadata/00003-"
    )


async def test_a_commit_may_not_add_a_location_that_is_taken_or_forbidden(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    await fixture.table("u", location=f"{WAREHOUSE}/theirs")
    key = fixture.key()
    for _ in range(2):
        with pytest.raises(BadRequest, match="overlaps"):
            await fixture.commit(set_property("write.data.path", f"{WAREHOUSE}/theirs/x"), key=key)
    with pytest.raises(BadRequest, match="outside"):
        await fixture.commit(set_property("write.metadata.path", "memory:///etc"))


async def test_staging_makes_nothing_and_the_commit_makes_the_table(fixture: CatalogFixture) -> None:
    body: JsonObject = {"name": "s", "schema": schema("x"), "stage-create": True}
    staged = await create_table(fixture.session(body), NS, body)
    assert isinstance(staged, Document)
    assert staged.body is not None
    assert "metadata-location" not in staged.body
    with pytest.raises(NoSuchTable):
        await require_table(fixture.session(), NS, "s")
    metadata = staged.body["metadata"]
    assert isinstance(metadata, dict)
    commit: JsonObject = {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            *creation_updates(),
            {"action": "set-location", "location": metadata["location"]},
        ],
    }
    made = state(await commit_table(fixture.session(commit), NS, "s", commit))
    assert (await document(fixture, "s"))["location"] == metadata["location"]
    assert not made.created
    with pytest.raises(CommitFailed, match="Requirement failed: table already exists"):
        await commit_table(fixture.session(commit), NS, "s", commit)


async def test_a_rename_keeps_everything_but_the_name(fixture: CatalogFixture) -> None:
    made = await fixture.table("t")
    await fixture.namespace("other")
    await rename_table(fixture.session(), (NS, "t"), (("other",), "u"))
    assert (await load_table(fixture.session(), ("other",), "u")).metadata_location == made.metadata_location
    with pytest.raises(NoSuchTable):
        await load_table(fixture.session(), NS, "t")


async def test_a_rename_checks_source_then_namespace_then_target(fixture: CatalogFixture) -> None:
    with pytest.raises(NoSuchTable, match=r"Table does not exist: db\.t"):
        await rename_table(fixture.session(), (NS, "t"), (("nowhere",), "t"))
    await fixture.table("t")
    with pytest.raises(NoSuchNamespace):
        await rename_table(fixture.session(), (NS, "t"), (("nowhere",), "t"))
    await fixture.table("u")
    with pytest.raises(AlreadyExists, match=r"Table already exists: db\.u"):
        await rename_table(fixture.session(), (NS, "t"), (NS, "u"))


async def test_a_drop_leaves_a_tombstone_and_a_marked_pointer(fixture: CatalogFixture) -> None:
    made = await fixture.table("t")
    await drop_table(fixture.session(), NS, "t", purge=False)
    session = fixture.session()
    tombstones = list((await session.state.head()).index.scan(tombstones_of(NS, "t")))
    pointer = await session.state.pointer(made.entity)
    assert [tombstone["entity"] for _, tombstone in tombstones] == [made.entity]
    assert pointer is not None
    assert pointer.dropped_by == tombstones[0][1]["operation"]
    with pytest.raises(NoSuchTable):
        await drop_table(fixture.session(), NS, "t", purge=False)


async def test_a_registered_table_has_the_file_as_it_is_and_a_history_of_its_own(fixture: CatalogFixture) -> None:
    made = await fixture.table("t")
    await fixture.commit(set_property("a", "1"))
    current = await load_table(fixture.session(), NS, "t")
    await drop_table(fixture.session(), NS, "t", purge=False)
    again = state(await register_table(fixture.session(), NS, "r", current.metadata_location, overwrite=False))
    assert (again.metadata, again.metadata_location) == (current.metadata, current.metadata_location)
    assert again.entity != made.entity
    await fixture.commit(set_property("a", "2"), name="r")
    assert [listed["metadata_location"] for listed in await receipts(fixture.session(), NS, "r")] == [
        (await load_table(fixture.session(), NS, "r")).metadata_location
    ]


async def test_registering_over_a_table_buries_it(fixture: CatalogFixture) -> None:
    await fixture.table("old")
    file = (await load_table(fixture.session(), NS, "old")).metadata_location
    await drop_table(fixture.session(), NS, "old", purge=False)
    replaced = await fixture.table("t")
    with pytest.raises(AlreadyExists):
        await register_table(fixture.session(), NS, "t", file, overwrite=False)
    key = fixture.key()
    first = await register_table(fixture.session(key=key), NS, "t", file, overwrite=True)
    assert await register_table(fixture.session(key=key), NS, "t", file, overwrite=True) == first
    pointer = await fixture.session().state.pointer(replaced.entity)
    assert pointer is not None
    assert pointer.dropped_by is not None


async def test_registering_what_is_no_metadata_file_is_refused(fixture: CatalogFixture) -> None:
    folder = f"{WAREHOUSE}/x/metadata"
    with pytest.raises(NotFound):
        await register_table(fixture.session(), NS, "r", f"{folder}/none.metadata.json", overwrite=False)
    for body in (b"", b"[]", b"{}", b'{"format-version":9}', b"\x1f\x8bbroken"):
        await fixture.store.put("wh/warehouse/x/metadata/bad.metadata.json", body, ANY)
        with pytest.raises((BadRequest, NotFound)):
            await register_table(fixture.session(), NS, "r", f"{folder}/bad.metadata.json", overwrite=False)
    with pytest.raises(BadRequest, match="outside"):
        await register_table(fixture.session(), NS, "r", "memory:///wh2/x.metadata.json", overwrite=False)


async def test_a_gzipped_metadata_file_is_read_and_written(fixture: CatalogFixture) -> None:
    made = await fixture.table("t")
    packed = "wh/warehouse/z/metadata/00007-x.gz.metadata.json"
    moved = loads(made.metadata)
    assert isinstance(moved, dict)
    moved["location"] = f"{WAREHOUSE}/z"
    await fixture.store.put(packed, gzip.compress(dumps(moved)), ABSENT)
    await register_table(fixture.session(), NS, "r", f"memory:///{packed}", overwrite=False)
    assert (await document(fixture, "r"))["location"] == f"{WAREHOUSE}/z"
    committed = await fixture.commit(set_property("write.metadata.compression-codec", "gzip"), name="r")
    assert committed.metadata_location.endswith(".gz.metadata.json")
    assert committed.metadata_location.rpartition("/")[2].startswith("00008-")
    assert (await load_table(fixture.another().session(), NS, "r")).metadata == committed.metadata


async def test_a_missing_metadata_file_is_reported_a_minute_after_the_store_confirmed_it() -> None:
    clock = FakeRuntime()
    fixture = CatalogFixture(ScriptedStore(clock.now_ms), clock)
    await fixture.namespace("db")
    made = await fixture.table("t")
    await load_table(fixture.session(), NS, "t")
    await fixture.store.delete(made.metadata_location.removeprefix("memory:///"))
    assert (await load_table(fixture.session(), NS, "t")).metadata == made.metadata
    with pytest.raises(NotFound):
        await load_table(fixture.another().session(), NS, "t")

    clock.ms += fixture.settings.file_confirmed_ms
    with pytest.raises(NotFound, match="Failed to open input stream for file: memory:///"):
        await load_table(fixture.session(), NS, "t")


async def test_a_file_that_is_no_longer_current_is_not_kept_in_memory(fixture: CatalogFixture) -> None:
    files = fixture.session().files
    first = await fixture.table("t")
    assert files.cached(first.metadata_location) == first.metadata

    own = await fixture.commit(set_property("a", "1"))
    assert files.cached(first.metadata_location) is None
    assert files.cached(own.metadata_location) == own.metadata

    others = await fixture.another().commit(set_property("a", "2"))
    await load_table(fixture.session(), NS, "t")
    assert files.cached(own.metadata_location) is None
    assert files.cached(others.metadata_location) == others.metadata


async def test_files_that_left_the_log_are_deleted_only_if_the_table_has_the_property(fixture: CatalogFixture) -> None:
    made = await fixture.table("t")
    await fixture.commit(set_property("write.metadata.previous-versions-max", "1"))
    await fixture.commit(set_property("a", "1"))
    first = made.metadata_location.removeprefix("memory:///")
    assert (await fixture.store.list(first)).entries
    await fixture.commit(set_property("write.metadata.delete-after-commit.enabled", "true"))
    second = (await load_table(fixture.session(), NS, "t")).metadata_location
    await fixture.commit(set_property("a", "2"))
    await fixture.commit(set_property("a", "3"))
    listed = await fixture.store.list(made.metadata_location.removeprefix("memory:///").rpartition("/")[0])
    assert len([entry for entry in listed.entries if second.rpartition("/")[2] in entry.key]) <= 1
    assert len(listed.entries) < 6


async def test_what_leaves_the_log_is_deleted_in_the_tables_own_folder_and_nowhere_else(
    fixture: CatalogFixture,
) -> None:
    moved = loads((await fixture.table("t")).metadata)
    assert isinstance(moved, dict)
    moved["location"] = f"{WAREHOUSE}/z"
    moved["properties"] = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    theirs = "wh/warehouse/theirs/00003-x.metadata.json"
    await fixture.store.put(theirs, dumps(moved), ABSENT)
    await register_table(fixture.session(), NS, "r", f"memory:///{theirs}", overwrite=False)
    for value in "abc":
        await fixture.commit(set_property("p", value), name="r")
    assert len((await fixture.store.list("wh/warehouse/z/metadata/")).entries) == 2
    assert isinstance(await fixture.store.get(theirs), Found)


async def test_a_table_is_not_staged_where_another_lives(fixture: CatalogFixture) -> None:
    await fixture.table("t", location=f"{WAREHOUSE}/mine")
    location = f"{WAREHOUSE}/mine/deeper"
    body: JsonObject = {"name": "u", "schema": schema("x"), "location": location, "stage-create": True}
    with pytest.raises(BadRequest, match="overlaps"):
        await create_table(fixture.session(body), NS, body)


async def test_reserved_properties_and_another_uuid_are_refused(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    with pytest.raises(BadRequest):
        await fixture.commit(set_property("ARCO.x", "1"))
    with pytest.raises(BadRequest):
        await fixture.commit(
            {"requirements": [], "updates": [{"action": "assign-uuid", "uuid": "00000000-0000-4000-8000-0000000000ff"}]}
        )


async def test_every_commit_has_one_receipt_with_author_and_changes(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    for value in "abc":
        await fixture.commit(set_property("p", value))
    listed = await receipts(fixture.session(), NS, "t")
    assert [entry["state"] for entry in listed] == ["committed"] * 4
    assert len({str(entry["commit_key"]) for entry in listed}) == 4
    assert listed[0]["updates"] == ["set-properties"]
    assert (listed[0]["principal"], listed[0]["source"]) == (
        "tester",
        {"kind": "IcebergRest", "client_info": "tests"},
    )
    with pytest.raises(NoSuchTable):
        await receipts(fixture.session(), NS, "nothing")


def ready_in(metadata: JsonValue) -> JsonValue:
    assert isinstance(metadata, dict)
    properties = metadata["properties"]
    assert isinstance(properties, dict)
    return properties["ready"]


async def renamed_away_changed_and_back(writer: CatalogFixture) -> None:
    for _ in range(20):  # until what is read beside HEAD has been read
        await asyncio.sleep(0)
    await writer.commit(set_property("ready", "yes"), "staging")
    await rename_table(writer.session(), (NS, "staging"), (NS, "t"))


async def test_a_load_never_shows_a_state_from_before_the_table_had_the_name() -> None:
    store = ScriptedStore()
    writer = CatalogFixture(store)
    reader = writer.another()
    await writer.namespace("db")
    await writer.table("t")
    await load_table(reader.session(), NS, "t")
    await rename_table(writer.session(), (NS, "t"), (NS, "staging"))

    store.rules = [Rule(get("manifest.json"), first=partial(renamed_away_changed_and_back, writer), times=1)]
    loaded = loads((await load_table(reader.session(), NS, "t")).metadata)

    assert ready_in(loaded) == "yes"


async def test_a_verdict_never_rests_on_a_state_from_before_the_table_had_the_name() -> None:
    """A commit finds nothing to do, or a requirement that fails, only in what the name has meant."""
    store = ScriptedStore()
    writer = CatalogFixture(store)
    other = writer.another()
    await writer.namespace("db")
    await writer.table("t")
    await other.commit(set_property("ready", "no"))
    await rename_table(writer.session(), (NS, "t"), (NS, "staging"))

    store.rules = [Rule(get("manifest.json"), first=partial(renamed_away_changed_and_back, writer), times=1)]
    answer = await other.commit(set_property("ready", "no"))

    assert answer.metadata_location == (await load_table(writer.session(), NS, "t")).metadata_location
    assert ready_in(loads(answer.metadata)) == "no"
