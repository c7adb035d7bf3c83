"""A server without authentication refuses every request if the store has a realm."""

import pytest

from arco_catalog.http.app import create_app
from arco_catalog.http.middleware.realm_guard import CHECK_INTERVAL_MS, RealmGuard
from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.paths import REALM_FOLDER, Paths
from storage_backends import ObjectStore, StoreUnavailable, Version
from storage_backends.base import Found, Missing, Unchanged
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import RealmApp
from tools.support.asgi_client import Client
from tools.support.request_bodies import schema
from tools.support.wrapped_stores import CountingStore

URL = "memory:///"
TABLES = "/v1/wh/namespaces/db/tables"
READS = ("/v1/config", "/v1/wh/namespaces", f"{TABLES}/t", f"{TABLES}/no", "/v1/nowhere")


def guarded(store: ObjectStore, clock: FakeRuntime, *realms: str) -> Client:
    catalog = build_catalog(Settings("wh"), store, URL, (), clock)
    return Client(create_app({"wh": catalog}, guard=lambda inner: RealmGuard(inner, catalog, realms).handle))


async def with_a_table(clock: FakeRuntime) -> MemoryStore:
    store = MemoryStore(now_ms=clock.now_ms)
    client = guarded(store, clock)
    assert (await client.post("/v1/wh/namespaces", {"namespace": ["db"]})).status == 200
    assert (await client.post(TABLES, {"name": "t", "schema": schema("a")})).status == 200
    return store


async def bootstrap(store: ObjectStore, clock: FakeRuntime, *realms: str) -> None:
    await RealmApp(realms or ("default",), clock=clock, store=store).start()


async def test_every_request_to_a_store_with_a_realm_is_refused_without_information(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeRuntime()
    store = await with_a_table(clock)
    await bootstrap(store, clock)
    client = guarded(store, clock)

    answers = [await client.get(target) for target in READS]

    assert {(answer.status, answer.message) for answer in answers} == {
        (
            403,
            "The store has a realm, but this server has no authentication to check its grants, so it refuses every "
            "request: the operator has to set ARCO_AUTH, or ARCO_AUTHORIZATION=off to ignore the grants",
        )
    }
    assert "set ARCO_AUTH, or ARCO_AUTHORIZATION=off to ignore the grants" in caplog.text


async def test_nothing_is_changed_in_a_store_with_a_realm() -> None:
    clock = FakeRuntime()
    store = await with_a_table(clock)
    await bootstrap(store, clock)
    client, before = guarded(store, clock), [entry.key for entry in (await store.list("")).entries]

    assert (await client.post(TABLES, {"name": "u", "schema": schema("a")})).status == 403
    assert (await client.send("DELETE", f"{TABLES}/t")).status == 403
    assert [entry.key for entry in (await store.list("")).entries] == before


async def test_a_realm_under_a_name_is_found_as_well() -> None:
    clock = FakeRuntime()
    store = await with_a_table(clock)
    await bootstrap(store, clock, "a", "b")

    assert (await guarded(store, clock, "a", "c").get("/v1/config")).status == 403
    assert (await guarded(store, clock, "c").get("/v1/config")).status == 200


async def test_a_realm_whose_head_is_lost_is_found_as_well() -> None:
    clock = FakeRuntime()
    store = await with_a_table(clock)
    await bootstrap(store, clock, "a")
    await store.delete(Paths("a", REALM_FOLDER).manifest)

    answers = [await guarded(store, clock, "a").get(target) for target in READS]

    assert {answer.status for answer in answers} == {403}


async def test_it_costs_two_calls_beside_the_others_and_none_when_warm() -> None:
    clock = FakeRuntime()
    counting = CountingStore(await with_a_table(clock))
    catalog = build_catalog(Settings("wh"), counting, URL, (), clock)
    plain = Client(create_app({"wh": catalog}))
    with counting.measure() as usual:
        assert (await plain.get(f"{TABLES}/t")).status == 200
    client = guarded(counting, clock)
    with counting.measure() as cold:
        assert (await client.get(f"{TABLES}/t")).status == 200
    with counting.measure() as warm:
        assert (await client.get(f"{TABLES}/t")).status == 200
    with counting.measure() as usual_warm:
        assert (await plain.get(f"{TABLES}/t")).status == 200

    assert cold.calls == usual.calls + 2
    assert warm.calls == usual_warm.calls


async def test_a_realm_that_is_made_meanwhile_is_noticed() -> None:
    clock = FakeRuntime()
    store = await with_a_table(clock)
    client = guarded(store, clock)
    assert (await client.get(f"{TABLES}/t")).status == 200
    await bootstrap(store, clock)

    await clock.sleep(CHECK_INTERVAL_MS / 1000)

    assert (await client.get(f"{TABLES}/t")).status == 403


async def test_no_request_is_served_while_the_store_fails() -> None:
    class Silent(MemoryStore):
        async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
            if "_realm" in key:
                raise StoreUnavailable("no answer")
            return await super().get(key, if_changed_from)

    client = guarded(Silent(), FakeRuntime())

    assert (await client.get("/v1/config")).status == 503
    assert (await client.post("/v1/wh/namespaces", {"namespace": ["db"]})).status == 503
