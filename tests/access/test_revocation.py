"""A revocation holds for every request that begins after it, on every server."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject
from tests.access.lake import DB, NAMESPACES, Lake, T, is_denied, send
from tests.support.realm_service import on_catalog, table_request
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import commit_report, transaction

GRANT = on_catalog("CATALOG_MANAGE_CONTENT")
SET: JsonObject = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}

Revoke = Callable[[Lake], Awaitable[object]]


async def grant(lake: Lake) -> None:
    await lake.app.revoke("worker", GRANT)


async def catalog_role_of_principal_role(lake: Lake) -> None:
    await lake.app.ok("DELETE", "principal-roles/worker-role/catalog-roles/lake/worker-in-lake")


async def principal_role_of_principal(lake: Lake) -> None:
    await lake.app.ok("DELETE", "principals/worker/principal-roles/worker-role")


async def catalog_role(lake: Lake) -> None:
    await lake.app.ok("DELETE", "catalogs/lake/catalog-roles/worker-in-lake")


async def principal_role(lake: Lake) -> None:
    await lake.app.ok("DELETE", "principal-roles/worker-role")


async def principal(lake: Lake) -> None:
    await lake.app.ok("DELETE", "principals/worker")


async def principal_made_again(lake: Lake) -> None:
    await lake.app.ok("DELETE", "principals/worker")
    before = lake.app.ids["r", "worker"]
    await lake.app.ok("POST", "principals", {"principal": {"name": "worker"}})
    await lake.app.ok("PUT", "principals/worker/principal-roles", {"principalRole": {"name": "worker-role"}})
    assert lake.app.ids["r", "worker"] == before


REVOCATIONS: Sequence[Revoke] = (
    grant,
    catalog_role_of_principal_role,
    principal_role_of_principal,
    catalog_role,
    principal_role,
    principal,
    principal_made_again,
)
each_revocation = pytest.mark.parametrize("revoke", REVOCATIONS, ids=lambda revoke: revoke.__name__)

TRANSACTION = transaction(SET, "t", "u")
REQUESTS: Sequence[tuple[str, str, JsonObject | None]] = (
    ("GET", "/v1/config?warehouse=lake", None),
    ("GET", NAMESPACES, None),
    ("GET", f"{DB}/tables", None),
    ("GET", T, None),
    ("HEAD", T, None),
    ("POST", T, SET),
    ("POST", f"{DB}/tables", table_request("new")),
    ("POST", NAMESPACES, {"namespace": ["new"]}),
    ("POST", "/v1/lake/transactions/commit", TRANSACTION),
    ("DELETE", f"{DB}/tables/u", None),
    ("GET", f"{DB}/views/v", None),
    ("POST", f"{T}/metrics", commit_report()),
)


def is_refused(answer: Answer) -> bool:
    """By the grants, or because the principal is gone."""
    return answer.status == 401 or is_denied(answer)


async def worker(lake: Lake) -> tuple[Client, Client]:
    """A client of another server, which has everything cached, and one of a third, which has nothing."""
    await lake.app.principal("worker", GRANT)
    warm = lake.app.client("worker", app=lake.app.serve())
    for name in ("t", "u"):
        assert (await warm.get(f"{DB}/tables/{name}")).status == 200
        assert (await warm.post(f"{DB}/tables/{name}", SET)).status == 200
    assert (await warm.get(NAMESPACES)).status == 200
    return warm, lake.app.client("worker", app=lake.app.serve())


async def state(lake: Lake) -> list[bytes]:
    """All that requests could have changed."""
    targets = (NAMESPACES, f"{DB}/tables", T, f"{DB}/tables/u", DB)
    return [(await lake.manager.get(target)).body for target in targets]


@each_revocation
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: f"{request[0]}-{request[1]}")
async def test_it_holds_for_the_next_request_on_other_servers(
    first: Lake, revoke: Revoke, request_: tuple[str, str, JsonObject | None]
) -> None:
    lake = first.copy()
    clients = await worker(lake)
    before = await state(lake)

    await revoke(lake)

    for client in clients:
        answer = await send(client, *request_)
        assert is_refused(answer), (answer.status, answer.body)
    assert await state(lake) == before


@each_revocation
async def test_it_holds_for_a_retry_that_never_landed(first: Lake, revoke: Revoke) -> None:
    lake = first.copy()
    warm, cold = await worker(lake)
    before = await state(lake)

    await revoke(lake)

    key = lake.app.key()
    for client in (warm, cold, warm):
        assert is_refused(await client.post(T, SET, idempotency_key=key))
    assert await state(lake) == before


@each_revocation
async def test_a_retry_of_what_landed_is_answered_as_before(first: Lake, revoke: Revoke) -> None:
    lake = first.copy()
    clients = await worker(lake)
    key = lake.app.key()
    committed = await clients[0].post(T, SET, idempotency_key=key)
    assert committed.status == 200

    await revoke(lake)

    for client in clients:
        again = await client.post(T, SET, idempotency_key=key)
        assert again.status == 200, again.body
        assert again.json["metadata-location"] == committed.json["metadata-location"]
    assert is_refused(
        await lake.app.client("worker", app=lake.app.serve()).post(T, SET, idempotency_key=lake.app.key())
    )


@each_revocation
async def test_a_key_is_of_no_use_to_another_principal(first: Lake, revoke: Revoke) -> None:
    lake = first.copy()
    warm, _ = await worker(lake)
    key = lake.app.key()
    assert (await warm.post(T, SET, idempotency_key=key)).status == 200
    await revoke(lake)
    thief = await lake.app.principal("thief")

    answer = await thief.post(T, SET, idempotency_key=key)

    assert answer.status in (404, 409), answer.body
    assert b"metadata-location" not in answer.body


@each_revocation
async def test_it_holds_for_later_pages_of_a_list(first: Lake, revoke: Revoke) -> None:
    lake = first.copy()
    warm, cold = await worker(lake)
    token = (await warm.get(f"{DB}/tables?pageSize=1&pageToken=")).json["next-page-token"]
    assert (await warm.get(f"{DB}/tables?pageSize=1&pageToken={token}")).status == 200

    await revoke(lake)

    for client in (warm, cold):
        assert is_refused(await client.get(f"{DB}/tables?pageSize=1&pageToken={token}"))


@each_revocation
async def test_it_holds_for_each_of_many_that_share_a_commit(first: Lake, revoke: Revoke) -> None:
    lake = first.copy()
    warm, _ = await worker(lake)
    another = await lake.app.principal("another", GRANT)
    others = lake.app.client("another", app=warm.app)
    assert (await another.get(T)).status == 200

    await revoke(lake)

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task((warm if place % 2 else others).post(NAMESPACES, {"namespace": [f"n{place}"]}))
            for place in range(20)
        ]
    answers = [task.result() for task in tasks]
    assert all(is_refused(answer) for answer in answers[1::2])
    assert [answer.status for answer in answers[::2]] == [200] * 10
    listed = (await lake.manager.get(NAMESPACES)).json["namespaces"]
    assert isinstance(listed, list)
    assert {f"n{place}" for place in range(20)} & {str(each[0]) for each in listed if isinstance(each, list)} == {
        f"n{place}" for place in range(0, 20, 2)
    }


async def test_a_catalog_that_was_dropped_lets_nothing_more_in(first: Lake) -> None:
    lake = first.copy()
    await lake.app.catalog("empty")
    await lake.app.principal("worker", GRANT, catalog="empty")
    warm = lake.app.client("worker", app=lake.app.serve())
    assert (await warm.get("/v1/empty/namespaces")).status == 200
    key = lake.app.key()

    await lake.app.ok("DELETE", "catalogs/empty")

    assert (await warm.get("/v1/empty/namespaces")).status == 404
    assert (await warm.post("/v1/empty/namespaces", {"namespace": ["n"]})).status == 404
    assert (await warm.post("/v1/empty/namespaces", {"namespace": ["n"]}, idempotency_key=key)).status == 404


async def test_a_catalog_that_was_changed_elsewhere_takes_the_next_commit(first: Lake) -> None:
    lake = first.copy()
    warm, another = await worker(lake)
    key = lake.app.key()
    await change_catalog(lake)

    assert (await warm.post(T, SET)).status == 200

    await change_catalog(lake)
    committed = await warm.post(T, SET, idempotency_key=key)
    assert committed.status == 200
    again = [await client.post(T, SET, idempotency_key=key) for client in (warm, another)]
    assert [answer.json["metadata-location"] for answer in again] == [committed.json["metadata-location"]] * 2


async def change_catalog(lake: Lake) -> None:
    """Changes nothing but the version of the catalog's entry."""
    found = await lake.app.ok("GET", "catalogs/lake")
    change: JsonObject = {"currentEntityVersion": found["entityVersion"], "properties": found["properties"]}
    await lake.app.ok("PUT", "catalogs/lake", change)
