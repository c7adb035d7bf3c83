"""The rows of `readers` about a principal equal the answers to its requests."""

import random
from collections.abc import Iterator, Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.catalogs import catalogs_of_realm
from arco_catalog.operations.load import load_table
from arco_catalog.planning.names import dotted
from arco_catalog.planning.privileges import GRANTABLE
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import relation_entry
from arco_catalog.protocol.operation_request import OperationRequest
from reconciler.compact.readers import ReaderRow, readers
from tests.support.realm_service import RealmApp, on_catalog, on_namespace, on_table, table_request
from tools.support.request_bodies import view_request

NAMESPACES = "/v1/lake/namespaces"
TREE = (("a",), ("a", "b"), ("a", "b", "c"), ("ab",), ("d",))
READING = (
    *("TABLE_READ_PROPERTIES", "TABLE_READ_DATA", "TABLE_WRITE_DATA", "TABLE_FULL_METADATA"),
    *("VIEW_READ_PROPERTIES", "VIEW_FULL_METADATA", "CATALOG_MANAGE_CONTENT"),
)
"""Privileges that let read something; of all that there are, few do."""


def path(namespace: Sequence[str]) -> str:
    return f"{NAMESPACES}/{'%1F'.join(namespace)}"


async def lake() -> RealmApp:
    """In each namespace a table `t` and a view `v`."""
    app = await RealmApp().start()
    await app.catalog()
    owner = await app.principal("owner", on_catalog("CATALOG_MANAGE_CONTENT"))
    for namespace in TREE:
        assert (await owner.post(NAMESPACES, {"namespace": [*namespace]})).status == 200
        assert (await owner.post(f"{path(namespace)}/tables", table_request("t"))).status == 200
        assert (await owner.post(f"{path(namespace)}/views", view_request("v"))).status == 200
    return app


async def sessions(app: RealmApp) -> tuple[Session, Session]:
    """With the registries of the realm and the catalog, as another process opens them."""
    [realm] = app.realms().values()
    [deployed] = await catalogs_of_realm(realm) or ()
    deadline = app.clock.now_ms() + 20_000
    return app.session(realm), deployed.open().session(
        OperationRequest("POST", "", "", None, "job", {}, deadline), ALLOW_ALL
    )


async def rows(app: RealmApp) -> Sequence[ReaderRow]:
    return await readers(*await sessions(app))


async def entities(app: RealmApp) -> dict[tuple[str, str, str], str]:
    """The entity of each table and view that is there, by its kind, namespace and name."""
    _, session = await sessions(app)
    head = await session.state.head()
    found: dict[tuple[str, str, str], str] = {}
    for namespace in TREE:
        for name in ("t", "v", "moved-t", "moved-v"):
            entry = await relation_entry(session.state, head.index, namespace, name)
            if entry is not None:
                found[entry.kind, "\x1f".join(namespace), name] = entry.entity
    return found


def allows(row: ReaderRow, kind: str, namespace: Sequence[str], entity: str) -> bool:
    """Whether a row allows the load of an entity."""
    if row["entity_type"] != kind:
        return False
    if row["entity"] is not None:
        return row["entity"] == entity
    return row["namespace"] is None or f"{dotted(tuple(namespace))}.".startswith(f"{row['namespace']}.")


def drawn(chance: random.Random) -> Iterator[JsonObject]:
    """Some grants."""
    for _ in range(chance.randrange(3)):
        kind = chance.choice(["catalog", "namespace", "namespace", "table", "table", "view", "view"])
        grantable = sorted(GRANTABLE[kind])
        reading = [each for each in READING if each in GRANTABLE[kind]]
        privilege = chance.choice(reading if chance.random() < 0.6 else grantable)
        namespace = chance.choice(TREE)
        where: JsonObject = {} if kind == "catalog" else {"namespace": [*namespace]}
        named: dict[str, dict[str, JsonValue]] = {"table": {"tableName": "t"}, "view": {"viewName": "v"}}
        yield {"type": kind, "privilege": str(privilege), **where, **named.get(kind, {})}


async def grant_at_random(app: RealmApp, chance: random.Random) -> Sequence[str]:
    """Principals that share principal roles, which share catalog roles with some grants each."""
    for number in range(8):
        role: JsonObject = {"catalogRole": {"name": f"may-{number}"}}
        await app.ok("POST", "catalogs/lake/catalog-roles", role)
        for grant in drawn(chance):
            await app.ok("PUT", f"catalogs/lake/catalog-roles/may-{number}/grants", {"grant": grant})
    for number in range(6):
        people: JsonObject = {"principalRole": {"name": f"people-{number}"}}
        await app.ok("POST", "principal-roles", people)
        for held in chance.sample(range(8), chance.randrange(3)):
            doing: JsonObject = {"catalogRole": {"name": f"may-{held}"}}
            await app.ok("PUT", f"principal-roles/people-{number}/catalog-roles/lake", doing)
    names = [f"principal-{number}" for number in range(10)]
    for name in names:
        await app.ok("POST", "principals", {"principal": {"name": name}})
        await app.adopt(name)
        for member in chance.sample(range(6), chance.randrange(3)):
            await app.ok("PUT", f"principals/{name}/principal-roles", {"principalRole": {"name": f"people-{member}"}})
    return names


async def reshape(app: RealmApp) -> None:
    """Moves a table, drops another, and makes one anew under the name of a third, that was dropped; so with views."""
    owner = app.client("owner")
    for kind, name in (("tables", "t"), ("views", "v")):
        moved: JsonObject = {
            "source": {"namespace": ["a", "b"], "name": name},
            "destination": {"namespace": ["d"], "name": f"moved-{name}"},
        }
        assert (await owner.post(f"/v1/lake/{kind}/rename", moved)).status == 204
        assert (await owner.delete(f"{path(('a',))}/{kind}/{name}")).status == 204
        assert (await owner.delete(f"{path(('ab',))}/{kind}/{name}")).status == 204
        body = table_request(name) if kind == "tables" else view_request(name)
        assert (await owner.post(f"{path(('ab',))}/{kind}", body)).status == 200


@pytest.mark.parametrize("seed", range(4))
async def test_the_rows_say_readable_where_a_load_is_answered_and_nowhere_else(seed: int) -> None:
    app, chance = await lake(), random.Random(seed)
    names = [*await grant_at_random(app, chance), "owner", "root"]
    if seed % 2:
        await reshape(app)

    found = await rows(app)

    seen = 0
    for name in names:
        own = [row for row in found if row["principal"] == name]
        client = app.client(name)
        for (kind, levels, relation), entity in (await entities(app)).items():
            namespace = levels.split("\x1f")
            answer = await client.get(f"{path(namespace)}/{kind}s/{relation}")
            is_listed = any(allows(row, kind, namespace, entity) for row in own)
            assert is_listed is (answer.status == 200), (seed, name, kind, namespace, relation, own, answer.body)
            seen += is_listed
    assert seen > 10


async def test_one_grant_is_one_row_however_many_tables_it_covers() -> None:
    app = await lake()
    await app.principal("reader", on_namespace("TABLE_READ_DATA", "a"))

    found = [row for row in await rows(app) if row["principal"] == "reader"]

    assert found == [{"principal": "reader", "entity_type": "table", "namespace": "a", "entity": None}]


async def test_who_reads_all_tables_keeps_the_views_that_it_was_granted() -> None:
    app = await lake()
    grants = (
        on_catalog("TABLE_READ_DATA"),
        on_namespace("TABLE_READ_DATA", "a"),
        on_namespace("VIEW_FULL_METADATA", "d"),
    )
    await app.principal("reader", *grants)

    found = [tuple(row.values())[1:] for row in await rows(app) if row["principal"] == "reader"]

    assert found == [("table", None, None), ("view", "d", None)]


async def test_a_principal_that_must_rotate_or_has_no_role_reads_nothing() -> None:
    app = await lake()
    body: JsonObject = {"principal": {"name": "fresh"}, "credentialRotationRequired": True}
    await app.ok("POST", "principals", body)
    await app.adopt("fresh")
    role: JsonObject = {"principalRole": {"name": "fresh-role"}}
    await app.ok("POST", "principal-roles", role)
    await app.ok("PUT", "principals/fresh/principal-roles", role)
    await app.grant("fresh", on_catalog("TABLE_READ_DATA"))
    assert (await app.client("fresh").get(f"{path(('a',))}/tables/t")).status == 403
    await app.ok("POST", "principals", {"principal": {"name": "idle"}})

    assert {row["principal"] for row in await rows(app)}.isdisjoint({"fresh", "idle"})


async def test_what_was_dropped_is_readable_again_when_it_is_back() -> None:
    app = await lake()
    await app.principal("reader", on_table("TABLE_READ_DATA", "a", "t"))
    _, session = await sessions(app)
    entity = (await load_table(session, ("a",), "t")).entity

    async def readable() -> set[str | None]:
        return {row["entity"] for row in await rows(app) if row["principal"] == "reader"}

    assert await readable() == {entity}
    owner = app.client("owner")
    assert (await owner.delete(f"{path(('a',))}/tables/t")).status == 204
    assert await readable() == set()
    assert (await owner.post(f"{path(('a',))}/tables/t/undrop", {})).status in (200, 204)
    assert await readable() == {entity}

    assert (await owner.delete(f"{path(('a',))}/tables/t")).status == 204
    assert (await owner.post(f"{path(('a',))}/tables", table_request("t"))).status == 200
    assert await readable() == set(), "under that name is another table"


async def test_a_dropped_principal_has_no_rows() -> None:
    app = await lake()
    await app.principal("reader", on_namespace("TABLE_READ_DATA", "a"))
    assert "reader" in {row["principal"] for row in await rows(app)}

    await app.ok("DELETE", "principals/reader")

    assert "reader" not in {row["principal"] for row in await rows(app)}
