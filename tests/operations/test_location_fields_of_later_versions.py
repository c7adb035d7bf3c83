"""Locations whose fields this version does not know: a change of the table leaves them there."""

from collections.abc import Iterable, Sequence

import pytest

from arco_catalog.operations import rename
from arco_catalog.operations.rename import rename_table
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.state.entries import find_relation
from arco_catalog.state.holds import location_holds
from arco_catalog.state.index import Edits, Index, location_key
from arco_catalog.state.needs import Steps
from arco_catalog.state.registry import RegistryState
from tools.support.catalog_fixture import NS, CatalogFixture


async def test_a_rename_leaves_the_fields_of_a_later_version_on_its_locations() -> None:
    fixture = CatalogFixture()
    await fixture.namespace(*NS)
    await fixture.table()
    session = fixture.session()
    entry = find_relation((await session.state.head()).index, NS, "t")
    assert entry is not None
    key = location_key(entry.locations[0], entry.entity)

    def add_field(head: RegistryState) -> Steps[Edits | None]:
        yield from ()
        return {key: {**(head.index.get(key) or {}), "later": 1}}

    await change_registry(session, "test", {}, add_field)
    await rename_table(fixture.session(), (NS, "t"), (NS, "u"))
    found = (await fixture.session().state.head()).index.get(key)
    assert found is not None
    assert (found["later"], found["name"]) == (1, [*NS, "u"])


async def test_a_rename_that_writes_the_holds_anew_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def write_anew(index: Index, entity: str, locations: Iterable[str], *, name: Sequence[str]) -> Steps[Edits]:
        yield from ()
        return location_holds(entity, locations, name=name)

    monkeypatch.setattr(rename, "renewed_holds", write_anew)
    with pytest.raises(KeyError, match="later"):
        await test_a_rename_leaves_the_fields_of_a_later_version_on_its_locations()
