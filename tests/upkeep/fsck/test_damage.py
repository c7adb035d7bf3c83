"""Each type of object is damaged in each possible way, and the check reports exactly that (docs/fsck.md)."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.fields import mapping
from arco_catalog.state.index import Index
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import Pointer
from arco_catalog.upkeep.fsck.codes import Code
from storage_backends import Found
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.upkeep.fsck.conftest import HOUR_MS, LIST, STATE, StoredCatalog
from tools.support.catalog_fixture import CatalogFixture


async def test_nothing_is_wrong_with_a_sound_catalog(stored: StoredCatalog) -> None:
    for folder in (
        "core/commits/",
        "core/index/",
        "core/entities/",
        "iceberg_pointers/",
        "iceberg_idempotency/",
        "transactions/",
        "metadata_claims/",
        "events/",
        "operational/",
    ):
        assert stored.keys(folder), folder

    assert await stored.found() == []


async def test_a_check_writes_nothing(stored: StoredCatalog) -> None:
    before = {key: await stored.body(key) for key in stored.store.keys("")}

    await stored.found()

    assert {key: await stored.body(key) for key in stored.store.keys("")} == before


def head(stored: StoredCatalog) -> str:
    """The registry's HEAD."""
    return stored.keys("core/manifest.json")[0]


def commit(stored: StoredCatalog) -> str:
    """A commit of the registry's history."""
    return stored.keys("core/commits/")[3]


async def segments(stored: StoredCatalog) -> Sequence[str]:
    """The segments that HEAD names."""
    document = loads(await stored.body(head(stored)))
    assert isinstance(document, dict)
    return [f"{STATE}core/index/{ref.id}.json" for ref in Index.parse(mapping(document, "index")).directory.refs]


def values(stored: StoredCatalog) -> Sequence[str]:
    """The values that the namespaces have now: that of `db` was changed once."""
    return stored.keys("core/entities/")[1:]


async def pointers(stored: StoredCatalog) -> Sequence[str]:
    """Pointers of tables: that of `t`, and another."""
    keys = stored.keys("iceberg_pointers/")
    documents = [loads(await stored.body(key)) for key in keys]
    tables = [
        key
        for key, document in zip(keys, documents, strict=True)
        if isinstance(document, dict) and document["type"] == "table"
    ]
    return tables[:2]


async def metadata(stored: StoredCatalog) -> Sequence[str]:
    """Keys of the current metadata files of these tables."""
    return [
        (await pointer_of(stored, key)).metadata.location.removeprefix("memory:///") for key in await pointers(stored)
    ]


async def pointer_of(stored: StoredCatalog, key: str) -> Pointer:
    """A stored pointer."""
    found = await stored.store.get(key)
    assert isinstance(found, Found)
    return Pointer.parse(found.body, found.version, key)


async def current_receipt(stored: StoredCatalog) -> str:
    """The committed receipt of the current file of `t`."""
    pointer = await pointer_of(stored, (await pointers(stored))[0])
    name = commit_key(pointer.entity, pointer.metadata.location)
    return next(key for key in stored.keys("events/") if f"committed/{name}" in key)


async def test_head_that_is_gone_is_reported_with_the_commit_that_is_known_to_have_been_it(
    stored: StoredCatalog,
) -> None:
    document = loads(await stored.body(head(stored)))
    assert isinstance(document, dict)
    await stored.store.delete(head(stored))

    (finding,) = await stored.found()

    assert finding.code is Code.MANIFEST_MISSING
    assert f"known to have been HEAD is {document['parent']}" in finding.found
    assert f"may be HEAD: {document['id']}" in finding.found


async def test_a_truncated_head_is_reported_as_unreadable(stored: StoredCatalog) -> None:
    await stored.cut(head(stored))

    (finding,) = await stored.found()

    assert finding.code is Code.MANIFEST_UNREADABLE
    assert "known to have been HEAD" in finding.found


@pytest.mark.parametrize("back", [2, 3, 4])
async def test_an_older_head_is_reported_with_the_commits_that_may_be_put_there(
    stored: StoredCatalog, back: int
) -> None:
    newest = loads(stored.bodies[head(stored)][-1])
    assert isinstance(newest, dict)
    await stored.put(head(stored), stored.bodies[head(stored)][-1 - back])

    found = [finding for finding in await stored.found() if finding.code is Code.MANIFEST_OLDER]

    assert found
    assert str(newest["id"]) in found[0].found


async def test_a_head_that_is_one_commit_too_old_is_reported_by_the_answer_of_its_request(
    stored: StoredCatalog,
) -> None:
    """The last of these commits has no key, that before it has one."""
    before = loads(stored.bodies[head(stored)][-2])
    assert isinstance(before, dict)
    for key in [key for key in stored.keys("core/commits/") if loads(await stored.body(key))["parent"] == before["id"]]:  # type: ignore[index,call-overload]
        await stored.store.delete(key)
    await stored.put(head(stored), stored.bodies[head(stored)][-3])

    found = await stored.found()

    assert {finding.code for finding in found} >= {Code.MANIFEST_OLDER}
    assert any("has the answer of commit" in finding.found for finding in found)


async def test_a_commit_on_head_without_further_evidence_is_only_a_warning(stored: StoredCatalog) -> None:
    await stored.put(head(stored), stored.bodies[head(stored)][-2])

    codes = await stored.codes()

    assert codes == {Code.COMMIT_UNCONFIRMED, Code.POINTER_STRAY}


async def test_head_of_another_catalog_names_commits_that_are_not_there(stored: StoredCatalog) -> None:
    other = CatalogFixture(MemoryStore(), FakeRuntime(), Settings("wh"))
    other.runtime.ms += 1  # type: ignore[attr-defined]  # ids of its own
    await other.namespace("theirs")
    found = await other.store.get(head(stored))
    assert isinstance(found, Found)
    await stored.put(head(stored), found.body)

    assert Code.COMMIT_MISSING in await stored.codes()


async def test_each_way_to_damage_the_history_is_reported(stored: StoredCatalog) -> None:
    key = commit(stored)
    kept = await stored.body(key)
    await stored.store.delete(key)
    assert await stored.codes() == {Code.COMMIT_MISSING}
    await stored.put(key, kept)
    await stored.cut(key)
    assert await stored.codes() == {Code.COMMIT_UNREADABLE}
    await stored.put(key, kept)
    await stored.swap(key, stored.keys("core/commits/")[4])
    assert await stored.codes() == {Code.COMMIT_FOREIGN}


async def test_a_copy_of_head_that_differs_is_reported(stored: StoredCatalog) -> None:
    document = loads(await stored.body(head(stored)))
    assert isinstance(document, dict)
    await stored.put(f"{STATE}core/commits/{document['id']}.json", dumps({**document, "at_ms": 1}))

    assert await stored.codes() == {Code.COMMIT_FOREIGN}


async def test_a_damaged_object_of_heads_commit_is_reported_once(stored: StoredCatalog) -> None:
    document = loads(await stored.body(head(stored)))
    assert isinstance(document, dict)
    key = f"{STATE}core/commits/{document['id']}.json"
    kept = await stored.body(key)
    await stored.cut(key)
    assert [each.code for each in await stored.found()] == [Code.COMMIT_UNREADABLE]
    await stored.put(key, kept)
    await stored.swap(key, commit(stored))
    assert [each.code for each in await stored.found()] == [Code.COMMIT_FOREIGN]


async def test_each_way_to_damage_the_index_is_reported(stored: StoredCatalog) -> None:
    keys = await segments(stored)
    kept = await stored.body(keys[0])
    await stored.store.delete(keys[0])
    assert Code.SEGMENT_MISSING in await stored.codes()
    await stored.put(keys[0], kept)
    await stored.cut(keys[0])
    assert Code.SEGMENT_UNREADABLE in await stored.codes()
    await stored.put(keys[0], kept)
    await stored.swap(keys[0], keys[1])
    assert Code.SEGMENT_FOREIGN in await stored.codes()


async def test_each_way_to_damage_properties_of_a_namespace_is_reported(stored: StoredCatalog) -> None:
    keys = values(stored)
    kept = await stored.body(keys[0])
    await stored.store.delete(keys[0])
    assert await stored.codes() == {Code.VALUE_MISSING}
    await stored.put(keys[0], kept)
    await stored.cut(keys[0])
    assert await stored.codes() == {Code.VALUE_UNREADABLE}
    await stored.swap(keys[0], keys[1])
    assert await stored.codes() == {Code.VALUE_FOREIGN}


@pytest.mark.parametrize("kind", ["generic-table", "semantic-model", "policy"])
async def test_described_relations_are_checked(stored: StoredCatalog, kind: str) -> None:
    keys = stored.keys(f"core/entities/{kind}/")
    assert len(keys) == (2 if kind == "generic-table" else 1)  # what was dropped can be restored
    for key in keys:
        kept = await stored.body(key)
        await stored.store.delete(key)
        assert await stored.codes() == {Code.VALUE_MISSING}
        await stored.put(key, kept[: len(kept) // 2])
        assert await stored.codes() == {Code.VALUE_UNREADABLE}
        await stored.put(key, kept)
    assert await stored.codes() == set()


async def test_each_way_to_damage_a_pointer_is_reported(stored: StoredCatalog) -> None:
    mine, other = await pointers(stored)
    kept = await stored.body(mine)
    await stored.store.delete(mine)
    assert await stored.codes() == {Code.POINTER_MISSING}
    await stored.put(mine, kept)
    await stored.cut(mine)
    assert await stored.codes() == {Code.POINTER_UNREADABLE}
    await stored.swap(mine, other)
    assert await stored.codes() == {Code.POINTER_FOREIGN}
    await stored.put(mine, stored.bodies[mine][0])
    assert Code.POINTER_OLDER in await stored.codes()


async def test_a_pointer_to_which_nothing_leads_is_a_note_once_it_is_old(stored: StoredCatalog) -> None:
    mine, _ = await pointers(stored)
    await stored.swap(f"{STATE}iceberg_pointers/01KAN0Y7Q2M3C4D5E6F7G8H9JK.json", mine)
    assert await stored.codes() == set()
    assert isinstance(stored.fixture.runtime, FakeRuntime)
    stored.fixture.runtime.ms += HOUR_MS

    assert await stored.codes() == {Code.POINTER_STRAY}


async def test_each_way_to_damage_a_metadata_file_is_reported(stored: StoredCatalog) -> None:
    mine, other = await metadata(stored)
    kept = await stored.body(mine)
    await stored.store.delete(mine)
    assert await stored.codes() == {Code.METADATA_MISSING}
    await stored.put(mine, kept)
    await stored.cut(mine)
    assert await stored.codes() == {Code.METADATA_UNREADABLE}
    await stored.swap(mine, other)
    assert await stored.codes() == {Code.METADATA_FOREIGN}
    await stored.put(mine, kept)
    older = next(key for key in stored.store.keys(mine.rpartition("/")[0]) if key.endswith(".json") and key != mine)
    await stored.swap(mine, older)
    assert await stored.codes() == {Code.METADATA_FOREIGN}


async def test_a_file_that_is_no_metadata_is_reported(stored: StoredCatalog) -> None:
    mine, _ = await metadata(stored)
    await stored.put(mine, b"[]")
    assert await stored.codes() == {Code.METADATA_UNREADABLE}
    await stored.put(mine, b"{}")
    assert await stored.codes() == {Code.METADATA_FOREIGN}


async def test_a_manifest_list_that_is_gone_is_reported_with_the_table(stored: StoredCatalog) -> None:
    await stored.store.delete(LIST)

    (finding,) = await stored.found()

    assert (finding.code, finding.where, finding.found) == (
        Code.MANIFEST_LIST_MISSING,
        f"memory:///{LIST}",
        "table db.t",
    )


async def test_each_way_to_damage_a_receipt_is_reported(stored: StoredCatalog) -> None:
    key = await current_receipt(stored)
    kept = await stored.body(key)
    await stored.store.delete(key)
    assert await stored.codes() == {Code.RECEIPT_MISSING}
    await stored.put(key, kept)
    await stored.cut(key)
    assert await stored.codes() == {Code.RECEIPT_UNREADABLE}
    await stored.swap(key, next(other for other in stored.keys("events/") if "/committed/" in other and other != key))
    assert await stored.codes() == {Code.RECEIPT_FOREIGN}


async def test_each_way_to_damage_a_marker_is_reported(stored: StoredCatalog) -> None:
    last = next(key for key in stored.keys("iceberg_idempotency/") if key.endswith("/1.json"))
    first = last.replace("/1.json", "/0.json")
    other = next(key for key in stored.keys("iceberg_idempotency/") if key.endswith("/1.json") and key != last)
    kept = await stored.body(first), await stored.body(last)
    await stored.store.delete(first)
    assert await stored.codes() == {Code.MARKER_GAP}
    await stored.put(first, kept[0])
    await stored.cut(first)
    assert await stored.codes() == {Code.MARKER_UNREADABLE}
    await stored.put(first, kept[0])
    await stored.swap(last, other)
    assert await stored.codes() == {Code.MARKER_FOREIGN}


@pytest.mark.parametrize("damage", [None, b"{"], ids=["gone", "cut"])
async def test_a_slot_after_a_damaged_one_is_not_compared_with_the_one_before(
    stored: StoredCatalog, damage: bytes | None
) -> None:
    last = next(key for key in stored.keys("iceberg_idempotency/") if key.endswith("/1.json"))
    first, later = last.replace("/1.json", "/0.json"), last.replace("/1.json", "/2.json")
    await stored.put(later, await stored.body(last))
    earlier = loads(await stored.body(first))
    assert isinstance(earlier, dict)
    await stored.put(first, dumps({**earlier, "attempt": "01KAN0Y7Q2M3C4D5E6F7G8H9JK"}))  # another took it over
    await stored.store.delete(last)
    if damage is not None:
        await stored.put(last, damage)

    assert await stored.codes() == {Code.MARKER_GAP if damage is None else Code.MARKER_UNREADABLE}


async def test_each_way_to_damage_a_transaction_is_reported(stored: StoredCatalog) -> None:
    (key,) = stored.keys("transactions/")
    kept = await stored.body(key)
    await stored.cut(key)
    assert await stored.codes() == {Code.TRANSACTION_UNREADABLE}
    await stored.put(key, kept)
    await stored.put(f"{STATE}transactions/01KAN0Y7Q2M3C4D5E6F7G8H9JK.json", kept)
    assert await stored.codes() == {Code.TRANSACTION_FOREIGN}
    await stored.store.delete(f"{STATE}transactions/01KAN0Y7Q2M3C4D5E6F7G8H9JK.json")
    await stored.put(key, stored.bodies[key][0])
    assert isinstance(stored.fixture.runtime, FakeRuntime)
    stored.fixture.runtime.ms += HOUR_MS
    assert await stored.codes() == {Code.TRANSACTION_UNDECIDED}


async def test_each_way_to_damage_a_claim_is_reported(stored: StoredCatalog) -> None:
    (key,) = stored.keys("metadata_claims/")
    kept = await stored.body(key)
    await stored.store.delete(key)
    assert await stored.codes() == {Code.CLAIM_MISSING}
    await stored.put(key, kept)
    await stored.cut(key)
    assert await stored.codes() == {Code.CLAIM_UNREADABLE}
    await stored.put(key, kept.replace(b'"registered"', b'"lost"'))
    assert await stored.codes() == {Code.CLAIM_UNREADABLE}
    await stored.put(key, kept.replace(b"memory:///wh/", b"memory:///xx/"))
    assert await stored.codes() == {Code.CLAIM_FOREIGN}


async def test_a_checkpoint_that_is_cut_is_a_note(stored: StoredCatalog) -> None:
    await stored.cut(stored.keys("operational/")[0])

    assert await stored.codes() == {Code.CHECKPOINT_UNREADABLE}


@pytest.mark.parametrize("name", ["stray", "events/2026-01-01/x.txt", "core/else.json", "iceberg_idempotency/ab/x"])
async def test_what_the_catalog_never_writes_is_reported(stored: StoredCatalog, name: str) -> None:
    await stored.put(STATE + name, b"x")

    assert await stored.codes() == {Code.OBJECT_UNKNOWN}


async def test_entries_that_do_not_fit_are_reported(stored: StoredCatalog) -> None:
    """What no request can bring about, a hand that edits HEAD can."""
    fixture = CatalogFixture(MemoryStore(), FakeRuntime(), Settings("wh"))
    await fixture.namespace("db")
    await fixture.table("t")
    bare = StoredCatalog(fixture, {})
    document = loads(await bare.body(head(bare)))
    assert isinstance(document, dict)
    edits = mapping(mapping(document, "index"), "embedded")
    hold = next(key for key in edits if key.startswith("location\n"))
    namespace = next(key for key in edits if key.startswith("namespace\n"))
    relation = next(key for key in edits if key.startswith("relation\n"))
    damaged: Sequence[tuple[JsonObject, Code]] = (
        ({key: entry for key, entry in edits.items() if key != hold}, Code.HOLD_MISSING),
        ({**edits, hold.replace("db", "elsewhere"): edits[hold]}, Code.HOLD_STRAY),
        ({key: entry for key, entry in edits.items() if key != namespace}, Code.PARENT_MISSING),
        ({**edits, "relation\ndb\nx": {"type": "table"}}, Code.ENTRY_UNREADABLE),
        ({**edits, relation: {**mapping(edits, relation), "entity": None}}, Code.ENTRY_UNREADABLE),
        ({**edits, namespace: {}}, Code.ENTRY_UNREADABLE),
        ({**edits, relation: {**mapping(edits, relation), "governance": "ada"}}, Code.ENTRY_UNREADABLE),
        ({**edits, relation: {**mapping(edits, relation), "governance": {"arco.owner": 1}}}, Code.ENTRY_UNREADABLE),
        ({**edits, "borrowed\ns3://b/x/\n01KAN0Y7Q2M3C4D5E6F7G8H9JK": {"entity": "01KAN0Y7Q2"}}, Code.LOAN_MISFIT),
        ({**edits, relation: {**mapping(edits, relation), "borrowed": ["s3://b/x"]}}, Code.LOAN_MISFIT),
    )
    for changed, code in damaged:
        body = dumps({**document, "index": {"embedded": changed}})
        await bare.put(head(bare), body)
        await bare.put(f"{STATE}core/commits/{document['id']}.json", body)
        assert await bare.codes() == {code}
