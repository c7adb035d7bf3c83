"""Properties of namespaces: where their values are kept, what is rebuilt from them, and how long they may be."""

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.operations.answers import Document
from arco_catalog.operations.history import history
from arco_catalog.operations.namespaces import (
    MAX_KEY_BYTES,
    MAX_PROPERTIES_BYTES,
    MAX_REMOVALS,
    MAX_VALUE_BYTES,
    create_namespace,
    load_namespace,
    update_properties,
)
from storage_backends import ANY, Found
from storage_backends.memory import MemoryStore
from tests.operations.desk import Desk

SECRET = "correct horse battery staple"


async def holders(desk: Desk, text: str) -> set[str]:
    """Folders of the objects that hold a text."""
    store = desk.store
    assert isinstance(store, MemoryStore)
    found: set[str] = set()
    for key in store.keys(""):
        answer = await store.get(key)
        if isinstance(answer, Found) and text.encode() in answer.body:
            found.add(key.rpartition("/")[0])
    return found


async def test_values_of_properties_are_in_objects_of_their_own_and_nowhere_else(desk: Desk) -> None:
    created, changed = desk.key(), desk.key()
    await create_namespace(desk.session(key=created), ("a",), {"password": SECRET})
    await update_properties(desk.session(key=changed), ("a",), ["never"], {"token": SECRET})
    assert await holders(desk, SECRET) == {"wh/_catalog/core/entities/namespace"}
    told = [dumps(operation) async for operation in history(desk.session(), own=True)]
    assert SECRET.encode() not in b"".join(told)


async def test_a_replay_is_answered_with_the_values_of_then(desk: Desk) -> None:
    created, changed = desk.key(), desk.key()
    first = await create_namespace(desk.session(key=created), ("a",), {"owner": "me"})
    second = await update_properties(desk.session(key=changed), ("a",), ["never"], {"owner": "you"})
    assert await create_namespace(desk.another().session(key=created), ("a",), {"owner": "me"}) == first
    assert await update_properties(desk.another().session(key=changed), ("a",), ["never"], {"owner": "you"}) == second
    assert second == Document(200, {"updated": ["owner"], "removed": [], "missing": ["never"]})


async def test_evidence_alone_rebuilds_the_answer_from_the_value(desk: Desk) -> None:
    key = desk.key()
    first = await create_namespace(desk.session(key=key), ("a",), {"owner": "me"})
    finals = [slot for slot in desk_slots(desk) if slot.endswith("/1.json")]
    for slot in finals:
        await desk.store.delete(slot)
    assert await create_namespace(desk.another().session(key=key), ("a",), {"owner": "me"}) == first


def desk_slots(desk: Desk) -> list[str]:
    assert isinstance(desk.store, MemoryStore)
    return [key for key in desk.store.keys("") if "/iceberg_idempotency/" in key]


async def test_a_head_that_keeps_properties_itself_is_read_and_loses_them_with_the_next_change(desk: Desk) -> None:
    """As versions before this one wrote it."""
    await create_namespace(desk.session(), ("a",), {"password": SECRET})
    manifest = "wh/_catalog/core/manifest.json"
    found = await desk.store.get(manifest)
    assert isinstance(found, Found)
    document = loads(found.body)
    assert isinstance(document, dict)
    body: JsonValue = {"namespace": ["a"], "properties": {"password": SECRET}}
    operations: JsonValue = document["operations"]
    assert isinstance(operations, list)
    assert isinstance(operations[0], dict)
    document["operations"] = [{**operations[0], "answer": {"status": 200, "body": body}}]
    await desk.store.put(manifest, dumps(document, sort_keys=True), ANY)

    other = desk.another()
    assert (await load_namespace(other.session(), ("a",)))["namespace"] == ["a"]
    await create_namespace(other.session(), ("b",), {})
    assert "wh/_catalog/core" not in await holders(desk, SECRET)


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"k" * (MAX_KEY_BYTES + 1): "v"}, f"its name is {MAX_KEY_BYTES + 1} bytes long, more than {MAX_KEY_BYTES}"),
        ({"k": "\u00e9" * (MAX_VALUE_BYTES // 2 + 1)}, "'k' of namespace a: its value is 65,538 bytes long"),
        ({f"k{n}": "v" * MAX_VALUE_BYTES for n in range(4)}, f"more than {MAX_PROPERTIES_BYTES:,}; the longest of"),
    ],
)
async def test_properties_that_are_too_long_are_refused_by_name(
    desk: Desk, properties: dict[str, str], told: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        await create_namespace(desk.session(), ("a",), properties)
    assert told in refused.value.message
    await create_namespace(desk.session(), ("a",), {})
    before = await desk.session().state.head()
    with pytest.raises(BadRequest) as refused:
        await update_properties(desk.session(), ("a",), [], properties)
    assert told in refused.value.message
    assert (await desk.session().state.head()).version == before.version


async def test_properties_that_were_too_long_before_may_become_fewer(desk: Desk) -> None:
    await create_namespace(desk.session(), ("a",), {"a": "1", "b": "2"})
    entities = "wh/_catalog/core/entities/namespace/"
    assert isinstance(desk.store, MemoryStore)
    (value,) = [key for key in desk.store.keys(entities) if (await content(desk, key)).get("a") == "1"]
    large: JsonObject = {"a": "1" * MAX_PROPERTIES_BYTES, "b": "2" * MAX_PROPERTIES_BYTES}
    await desk.store.put(value, dumps({"version": 1, "properties": large}), ANY)

    other = desk.another()
    await update_properties(other.session(), ("a",), ["a"], {})
    with pytest.raises(BadRequest, match="would be"):
        await update_properties(other.session(), ("a",), [], {"c": "3"})


async def content(desk: Desk, key: str) -> JsonObject:
    found = await desk.store.get(key)
    assert isinstance(found, Found)
    document = loads(found.body)
    assert isinstance(document, dict)
    properties = document["properties"]
    assert isinstance(properties, dict)
    return properties


async def test_one_request_removes_so_many_properties_and_no_more(desk: Desk) -> None:
    await create_namespace(desk.session(), ("a",), {})
    names = [str(number) for number in range(MAX_REMOVALS + 1)]
    with pytest.raises(BadRequest, match="One request may remove 1,000 properties at most, not 1,001"):
        await update_properties(desk.session(), ("a",), names, {})
