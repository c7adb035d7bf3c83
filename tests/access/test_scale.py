"""What grants cost does not grow with how many there are: counted as the index spills."""

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.spilling import Limits
from tests.access.many_grants import GRANTS, SET, TABLES, ManyGrants
from tests.support.realm_service import on_catalog, on_table

FINE = Limits(embedded=2_000, segment=4_000, least=2_000)
"""So small that a few hundred grants have as many segments as a hundred thousand have otherwise."""
SIZES = (100, 1_000)


async def spilled(tables: int, roles: int = 3) -> ManyGrants:
    return await ManyGrants(tables, roles, FINE).build()


@pytest.mark.parametrize("tables", SIZES)
async def test_a_load_reads_the_chain_of_its_table_however_many_are_granted(tables: int) -> None:
    realm = await spilled(tables)
    client = realm.client("reader")
    cold = await realm.cost(client, "GET", f"{TABLES}/{realm.table}")
    assert cold.answer.status == 200
    assert cold.store.calls <= 16
    warm = await realm.cost(client, "GET", f"{TABLES}/{realm.table}")
    assert (warm.store.depth, warm.store.calls) == (1, 3)


@pytest.mark.parametrize("tables", SIZES)
async def test_a_refusal_reads_little_more(tables: int) -> None:
    realm = await spilled(tables)
    client = realm.client("reader")
    cold = await realm.cost(client, "POST", f"{TABLES}/{realm.table}", SET)
    assert cold.answer.status == 403
    assert cold.store.calls <= 18


@pytest.mark.parametrize("tables", SIZES)
async def test_a_grant_and_a_revocation_read_and_write_little(tables: int) -> None:
    realm = await spilled(tables)
    grant: JsonObject = {"grant": on_table("TABLE_WRITE_DATA", "db", realm.table)}
    for method in ("PUT", "POST"):
        cost = await realm.cost(realm.client("root"), method, GRANTS, grant)
        assert cost.answer.status == 201
        assert cost.store.calls <= 24


async def test_a_warm_load_by_one_role_of_very_many_costs_no_more() -> None:
    realm = await spilled(tables=200, roles=500)
    client = realm.client("many")
    assert (await realm.cost(client, "GET", f"{TABLES}/{realm.table}")).answer.status == 200
    warm = await realm.cost(client, "GET", f"{TABLES}/{realm.table}")
    assert (warm.store.depth, warm.store.calls) == (1, 3)


async def test_a_list_of_a_roles_grants_reads_what_it_shows_once() -> None:
    realm = await spilled(1_000)
    client = realm.client("root")
    cold = await realm.cost(client, "GET", GRANTS)
    grants = cold.answer.json["grants"]
    assert isinstance(grants, list)
    assert len(grants) == 1_000 + 1
    assert cold.store.bytes_read < 20 * len(cold.answer.body)
    warm = await realm.cost(client, "GET", GRANTS)
    assert (warm.store.depth, warm.store.calls) == (1, 2)


@pytest.mark.parametrize("how", ["drop", "cascade"])
async def test_what_ends_very_many_grants_leaves_the_manifest_small(how: str) -> None:
    realm = await spilled(1_000)
    before = await realm.manifest_bytes()
    client = realm.client("root")
    if how == "drop":
        cost = await realm.cost(client, "DELETE", GRANTS.removesuffix("/grants"))
    else:
        wide: JsonObject = {"grant": on_catalog("TABLE_READ_DATA")}
        await realm.app.ok("PUT", GRANTS, wide)
        cost = await realm.cost(client, "POST", f"{GRANTS}?cascade=true", wide)
    assert cost.answer.status < 300
    assert (await realm.client("reader").get(f"{TABLES}/{realm.table}")).status in (403, 404)
    assert await realm.manifest_bytes() < 4 * before
