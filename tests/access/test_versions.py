"""Versions of entities: a change that names one fits no other entity, not even a successor of the same name."""

import pytest

from arco_catalog.iceberg.json import JsonObject
from tests.support.realm_service import RealmApp

KINDS = [
    ("principals", "principal"),
    ("principal-roles", "principalRole"),
    ("catalogs/lake/catalog-roles", "catalogRole"),
]


async def realm() -> RealmApp:
    app = await RealmApp().start()
    await app.catalog("lake")
    return app


def change(entity: JsonObject) -> JsonObject:
    return {"currentEntityVersion": entity["entityVersion"], "properties": {"owner": "ann"}}


@pytest.mark.parametrize(("path", "kind"), KINDS)
async def test_a_change_made_for_a_dropped_entity_does_not_fit_its_successor(path: str, kind: str) -> None:
    app = await realm()
    await app.ok("POST", path, {kind: {"name": "some"}})
    first = await app.ok("GET", f"{path}/some")
    second = await app.ok("PUT", f"{path}/some", change(first))
    assert (await app.manage("DELETE", f"{path}/some")).status == 204
    await app.ok("POST", path, {kind: {"name": "some"}})

    stale = [await app.manage("PUT", f"{path}/some", change(entity)) for entity in (first, second)]
    successor = await app.ok("GET", f"{path}/some")

    assert [answer.error_type for answer in stale] == ["CommitFailedException"] * 2
    assert successor["properties"] == {}
    assert (first["entityVersion"], successor["entityVersion"]) == (1, 3)
    assert (await app.ok("PUT", f"{path}/some", change(successor)))["entityVersion"] == 4


@pytest.mark.parametrize(("path", "kind"), KINDS)
async def test_an_entity_whose_name_none_had_before_begins_at_version_1(path: str, kind: str) -> None:
    app = await realm()
    for name in ("a", "b"):
        await app.ok("POST", path, {kind: {"name": name}})
    assert (await app.manage("DELETE", f"{path}/a")).status == 204
    await app.ok("POST", path, {kind: {"name": "c"}})

    for name in ("b", "c"):
        assert (await app.ok("GET", f"{path}/{name}"))["entityVersion"] == 1


async def test_a_change_made_for_a_dropped_catalog_does_not_fit_its_successor() -> None:
    app = await realm()
    first = await app.ok("GET", "catalogs/lake")
    assert (await app.manage("DELETE", "catalogs/lake")).status == 204
    await app.catalog("lake")

    stale = await app.manage("PUT", "catalogs/lake", change(first))

    assert (stale.status, stale.error_type) == (409, "CommitFailedException")
    assert "owner" not in str((await app.ok("GET", "catalogs/lake"))["properties"])


async def test_versions_of_one_name_only_rise_however_often_it_is_made_again() -> None:
    app = await realm()
    seen: list[object] = []
    for _ in range(4):
        await app.ok("POST", "principal-roles", {"principalRole": {"name": "some"}})
        seen.append((await app.ok("GET", "principal-roles/some"))["entityVersion"])
        assert (await app.manage("DELETE", "principal-roles/some")).status == 204

    assert seen == [1, 2, 3, 4]
