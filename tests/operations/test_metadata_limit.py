"""Metadata never grows beyond what can be read again."""

import gzip
from collections.abc import Callable, Coroutine

import orjson
import pytest

from arco_catalog.iceberg.errors import MetadataTooLarge
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.register import register_table
from arco_catalog.planning.answers import TableState
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state import files, memory
from storage_backends import ABSENT
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property

LIMIT = 100_000


@pytest.fixture
async def fixture() -> CatalogFixture:
    """A catalog that accepts small metadata only, with the table `db.t`."""
    fixture = CatalogFixture(settings=Settings("wh", max_metadata_bytes=LIMIT))
    await fixture.namespace()
    await fixture.table()
    return fixture


async def test_a_commit_that_would_outgrow_the_limit_changes_nothing(fixture: CatalogFixture) -> None:
    before = await load_table(fixture.session(), NS, "t")

    with pytest.raises(MetadataTooLarge, match=r"The metadata of db\.t would be .* more than this catalog accepts"):
        await commit_table(fixture.session(), NS, "t", set_property("a", "x" * LIMIT))

    assert await load_table(fixture.another().session(), NS, "t") == before


async def test_a_table_that_another_setting_let_grow_is_refused_with_file_and_limit(fixture: CatalogFixture) -> None:
    roomy = CatalogFixture(store=fixture.store)
    grown = await commit_table(roomy.session(), NS, "t", set_property("a", "x" * LIMIT))
    assert isinstance(grown, TableState)

    for attempt in (
        load_table(fixture.session(), NS, "t"),
        commit_table(fixture.session(), NS, "t", set_property("b", "c")),
    ):
        with pytest.raises(MetadataTooLarge) as refused:
            await attempt
        assert grown.metadata_location in refused.value.message
        assert f"{LIMIT:,}" in refused.value.message


@pytest.mark.parametrize("packed", [False, True])
async def test_a_file_beyond_the_limit_is_not_registered(fixture: CatalogFixture, packed: bool) -> None:
    table = await load_table(fixture.session(), NS, "t")
    document = loads(table.metadata)
    assert isinstance(document, dict)
    wanted: JsonObject = {**document, "location": "memory:///wh/warehouse/u", "properties": {"a": "x" * LIMIT}}
    body = dumps(wanted)
    await fixture.store.put("wh/warehouse/u/1.metadata.json", gzip.compress(body) if packed else body, ABSENT)

    with pytest.raises(MetadataTooLarge, match=r"1\.metadata\.json is larger than 100,000 bytes"):
        await register_table(fixture.session(), NS, "u", "memory:///wh/warehouse/u/1.metadata.json", overwrite=False)


TINY: JsonObject = {"x": [[] for _ in range(LIMIT // memory.BYTES_A_VALUE)]}
"""More values than go with the limit, in a tenth of its bytes."""


async def test_a_commit_that_would_have_too_many_values_changes_nothing(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "MIN_METADATA_VALUES", 0)
    before = await load_table(fixture.session(), NS, "t")
    columns: list[JsonValue] = [
        {"id": number, "name": f"c{number}", "type": "int", "required": False} for number in range(1, 900)
    ]
    schema: JsonObject = {"type": "struct", "fields": columns}
    commit: JsonObject = {"requirements": [], "updates": [{"action": "add-schema", "schema": schema}]}

    with pytest.raises(MetadataTooLarge, match=r"The metadata of db\.t would have more JSON values .* \(3,125\)"):
        await commit_table(fixture.session(), NS, "t", commit)

    assert await load_table(fixture.another().session(), NS, "t") == before


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("at", ["t", "u"])
async def test_a_file_of_too_many_values_is_refused_before_it_is_parsed(
    fixture: CatalogFixture, packed: bool, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may write below a table can replace its file, and any client can try to register one."""
    monkeypatch.setattr(memory, "MIN_METADATA_VALUES", 0)
    monkeypatch.setattr(memory, "VALUES_COUNTED_FROM_BYTES", 0)
    monkeypatch.setattr(files, "VALUES_COUNTED_FROM_BYTES", 0)
    table = await load_table(fixture.session(), NS, "t")
    document = loads(table.metadata)
    assert isinstance(document, dict)
    body = dumps({**document, "location": f"memory:///wh/warehouse/{at}", **TINY})
    assert len(body) < LIMIT
    location = table.metadata_location if at == "t" else "memory:///wh/warehouse/u/1.metadata.json"
    key = location.removeprefix("memory:///")
    await fixture.store.delete(key)
    await fixture.store.put(key, gzip.compress(body) if packed else body, ABSENT)
    session = fixture.another().session()
    monkeypatch.setattr(orjson, "loads", refuse_tiny(orjson.loads))

    attempt: Coroutine[object, object, object] = (
        commit_table(session, NS, "t", set_property("a", "b"))
        if at == "t"
        else register_table(session, NS, "u", location, overwrite=False)
    )
    with pytest.raises(MetadataTooLarge, match=r"metadata\.json has more than 3,125 values: expire snapshots"):
        await attempt


def refuse_tiny(parse: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """A parser that the document of many values must not reach."""

    def parsed(data: bytes) -> object:
        assert b"[],[]" not in data
        return parse(data)

    return parsed
