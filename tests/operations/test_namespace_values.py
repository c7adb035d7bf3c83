"""Properties of namespaces: where their values are kept, what is rebuilt from them, and how long they may be."""

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.operations.history import history
from arco_catalog.operations.namespaces import MAX_REMOVALS, create_namespace, load_namespace, update_properties
from arco_catalog.operations.properties import MAX_KEY_BYTES, MAX_PROPERTIES_BYTES, MAX_VALUE_BYTES
from arco_catalog.planning.answers import Document
from storage_backends import ANY, Found
from storage_backends.memory import MemoryStore
from tools.support.catalog_fixture import CatalogFixture

SECRET = "correct horse battery staple"


async def holders(fixture: CatalogFixture, text: str) -> set[str]:
    """Folders of the objects that hold a text."""
    store = fixture.store
    assert isinstance(store, MemoryStore)
    found: set[str] = set()
    for key in store.keys(""):
        answer = await store.get(key)
        if isinstance(answer, Found) and text.encode() in answer.body:
            found.add(key.rpartition("/")[0])
    return found


async def test_values_of_properties_are_in_objects_of_their_own_and_nowhere_else(fixture: CatalogFixture) -> None:
    created, changed = fixture.key(), fixture.key()
    await create_namespace(fixture.session(key=created), ("a",), {"password": SECRET})
    await update_properties(fixture.session(key=changed), ("a",), ["never"], {"token": SECRET})
    assert await holders(fixture, SECRET) == {"wh/_catalog/core/entities/namespace"}
    report = [dumps(operation) async for operation in history(fixture.session(), own=True)]
    assert SECRET.encode() not in b"".join(report)


async def test_a_replay_is_answered_with_the_values_of_then(fixture: CatalogFixture) -> None:
    created, changed = fixture.key(), fixture.key()
    first = await create_namespace(fixture.session(key=created), ("a",), {"owner": "me"})
    second = await update_properties(fixture.session(key=changed), ("a",), ["never"], {"owner": "you"})
    assert await create_namespace(fixture.another().session(key=created), ("a",), {"owner": "me"}) == first
    assert (
        await update_properties(fixture.another().session(key=changed), ("a",), ["never"], {"owner": "you"}) == second
    )
    assert second == Document(200, {"updated": ["owner"], "removed": [], "missing": ["never"]})


async def test_evidence_alone_rebuilds_the_answer_from_the_value(fixture: CatalogFixture) -> None:
    key = fixture.key()
    first = await create_namespace(fixture.session(key=key), ("a",), {"owner": "me"})
    finals = [slot for slot in desk_slots(fixture) if slot.endswith("/1.json")]
    for slot in finals:
        await fixture.store.delete(slot)
    assert await create_namespace(fixture.another().session(key=key), ("a",), {"owner": "me"}) == first


def desk_slots(fixture: CatalogFixture) -> list[str]:
    assert isinstance(fixture.store, MemoryStore)
    return [key for key in fixture.store.keys("") if "/iceberg_idempotency/" in key]


async def test_a_head_that_keeps_properties_itself_is_read_and_loses_them_with_the_next_change(
    fixture: CatalogFixture,
) -> None:
    """As versions before this one wrote it."""
    await create_namespace(fixture.session(), ("a",), {"password": SECRET})
    manifest = "wh/_catalog/core/manifest.json"
    found = await fixture.store.get(manifest)
    assert isinstance(found, Found)
    document = loads(found.body)
    assert isinstance(document, dict)
    body: JsonValue = {"namespace": ["a"], "properties": {"password": SECRET}}
    operations: JsonValue = document["operations"]
    assert isinstance(operations, list)
    assert isinstance(operations[0], dict)
    document["operations"] = [{**operations[0], "answer": {"status": 200, "body": body}}]
    await fixture.store.put(manifest, dumps(document, sort_keys=True), ANY)

    other = fixture.another()
    assert (await load_namespace(other.session(), ("a",)))["namespace"] == ["a"]
    await create_namespace(other.session(), ("b",), {})
    assert "wh/_catalog/core" not in await holders(fixture, SECRET)


@pytest.mark.parametrize(
    ("properties", "report"),
    [
        ({"k" * (MAX_KEY_BYTES + 1): "v"}, f"its name is {MAX_KEY_BYTES + 1} bytes long, more than {MAX_KEY_BYTES}"),
        ({"k": "\u00e9" * (MAX_VALUE_BYTES // 2 + 1)}, "'k' of namespace a: its value is 65,538 bytes long"),
        ({f"k{n}": "v" * MAX_VALUE_BYTES for n in range(4)}, f"more than {MAX_PROPERTIES_BYTES:,}; the longest of"),
    ],
)
async def test_properties_that_are_too_long_are_refused_by_name(
    fixture: CatalogFixture, properties: dict[str, str], report: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        await create_namespace(fixture.session(), ("a",), properties)
    assert report in refused.value.message
    await create_namespace(fixture.session(), ("a",), {})
    before = await fixture.session().state.head()
    with pytest.raises(BadRequest) as refused:
        await update_properties(fixture.session(), ("a",), [], properties)
    assert report in refused.value.message
    assert (await fixture.session().state.head()).version == before.version


async def test_properties_that_were_too_long_before_may_become_fewer(fixture: CatalogFixture) -> None:
    await create_namespace(fixture.session(), ("a",), {"a": "1", "b": "2"})
    entities = "wh/_catalog/core/entities/namespace/"
    assert isinstance(fixture.store, MemoryStore)
    (value,) = [key for key in fixture.store.keys(entities) if (await content(fixture, key)).get("a") == "1"]
    large: JsonObject = {"a": "1" * MAX_PROPERTIES_BYTES, "b": "2" * MAX_PROPERTIES_BYTES}
    await fixture.store.put(value, dumps({"version": 1, "properties": large}), ANY)

    other = fixture.another()
    await update_properties(other.session(), ("a",), ["a"], {})
    with pytest.raises(BadRequest, match="would be"):
        await update_properties(other.session(), ("a",), [], {"c": "3"})


async def content(fixture: CatalogFixture, key: str) -> JsonObject:
    found = await fixture.store.get(key)
    assert isinstance(found, Found)
    document = loads(found.body)
    assert isinstance(document, dict)
    properties = document["properties"]
    assert isinstance(properties, dict)
    return properties


async def test_one_request_removes_so_many_properties_and_no_more(fixture: CatalogFixture) -> None:
    await create_namespace(fixture.session(), ("a",), {})
    names = [str(number) for number in range(MAX_REMOVALS + 1)]
    with pytest.raises(BadRequest, match="One request may remove at most 1,000 properties, not 1,001"):
        await update_properties(fixture.session(), ("a",), names, {})
