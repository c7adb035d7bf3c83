"""Servers of one catalog that disagree on idempotency keys, and changes of how the catalog reads them."""

import logging
from dataclasses import dataclass

import pytest

from arco_catalog.http.app import create_app
from arco_catalog.http.options import HttpOptions
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.init import init_catalog
from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.protocol.key_resolution import set_key_policy
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.key_settings import SEARCH_MS, Dialect, KeyPolicy
from arco_catalog.state.store_clock import PRECISION_MS
from storage_backends.memory import MemoryStore
from tests.simulation.rule_mutations_for_keys import (
    a_change_that_requests_under_way_do_not_notice,
    a_refusal_in_a_new_catalog_that_leaves_no_record,
)
from tests.support.fake_runtime import FakeRuntime, WrongClock
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import schema, uuid7

ICEBERG, POLARIS, OFF = KeyPolicy(), KeyPolicy(Dialect.POLARIS), KeyPolicy(enabled=False)
TABLE: JsonObject = {"name": "t", "schema": schema("x")}
NEW_SCHEMA: JsonObject = {
    "requirements": [{"type": "assert-current-schema-id", "current-schema-id": 0}],
    "updates": [
        {"action": "add-schema", "schema": {**schema("x", "y"), "schema-id": 1}},
        {"action": "set-current-schema", "schema-id": -1},
    ],
}


@dataclass(frozen=True)
class Server:
    """One server's process."""

    catalog: Catalog
    client: Client

    async def create(self, key: str) -> Answer:
        """Creates the table."""
        return await self.client.post("/v1/wh/namespaces/db/tables", TABLE, **{"idempotency-key": key})

    async def commit(self, key: str) -> Answer:
        """A commit that can succeed once."""
        return await self.client.post("/v1/wh/namespaces/db/tables/t", NEW_SCHEMA, **{"idempotency-key": key})

    async def change(self, policy: KeyPolicy) -> None:
        """Changes how the catalog reads keys, as `arco settings` does."""
        runtime = self.catalog.runtime
        request = OperationRequest("CLI", "keys", "", None, "operator", {}, runtime.now_ms() + 60_000)
        await set_key_policy(self.catalog.session(request, ALLOW_ALL), policy)


class Servers:
    """Servers over one store."""

    def __init__(self) -> None:
        self.clock = FakeRuntime()
        self.store = MemoryStore(now_ms=self.clock.now_ms)

    def start(self, policy: KeyPolicy) -> Server:
        """A server whose variables set this policy."""
        catalog = build_catalog(Settings("wh"), self.store, "memory:///", (), self.clock)
        options = HttpOptions(dialect=policy.dialect, keys_enabled=policy.enabled)
        return Server(catalog, Client(create_app({"wh": catalog}, options)))

    async def start_with_namespace(self, policy: KeyPolicy) -> Server:
        """The first server of a catalog."""
        server = self.start(policy)
        made = await server.client.post("/v1/wh/namespaces", {"namespace": ["db"]})
        assert made.status == 200
        return server

    def key(self) -> str:
        """A fresh key."""
        return uuid7(self.clock.now_ms(), self.clock)


def error_type(answer: Answer) -> JsonValue:
    """The type of an error."""
    error = answer.json["error"]
    assert isinstance(error, dict)
    return error["type"]


@pytest.fixture
def servers() -> Servers:
    return Servers()


@pytest.mark.parametrize(("first", "second"), [(ICEBERG, POLARIS), (POLARIS, ICEBERG), (ICEBERG, OFF)])
async def test_a_retry_through_a_server_with_other_variables_gets_the_first_answer(
    first: KeyPolicy, second: KeyPolicy, servers: Servers
) -> None:
    one, other = await servers.start_with_namespace(first), servers.start(second)
    key = servers.key()
    assert [(await server.create(key)).status for server in (one, other, servers.start(second))] == [200, 200, 200]
    key = servers.key()
    assert [(await server.commit(key)).status for server in (one, other, servers.start(second))] == [200, 200, 200]


@pytest.mark.parametrize("variables", [ICEBERG, POLARIS, OFF])
async def test_config_advertises_what_the_catalog_has(variables: KeyPolicy, servers: Servers) -> None:
    await servers.start_with_namespace(POLARIS)
    config = (await servers.start(variables).client.get("/v1/config?warehouse=wh")).json
    assert config["idempotency-key-lifetime"] == "PT30M"
    assert config["properties"] == {"idempotency-key-supported": "true", "idempotency-key-lifetime": "PT30M"}


async def test_errors_have_the_types_of_the_dialect_of_the_catalog(servers: Servers) -> None:
    await servers.start_with_namespace(POLARIS)
    server, key = servers.start(ICEBERG), servers.key()
    assert (await server.create(key)).status == 200
    path, head = "/v1/wh/namespaces/db/tables", {"idempotency-key": key}
    answer = await server.client.post(path, {**TABLE, "name": "u"}, **head)
    assert (answer.status, error_type(answer)) == (422, "idempotency_key_conflict")


async def test_a_server_logs_once_that_its_variables_do_not_count(
    servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    await servers.start_with_namespace(POLARIS)
    server = servers.start(ICEBERG)
    with caplog.at_level(logging.WARNING):
        await server.create(servers.key())
        await server.commit(servers.key())
    logged = [record.message for record in caplog.records if "arco settings" in record.message]
    assert logged == [
        "catalog 'wh' reads idempotency keys by its settings, the polaris dialect: this server's variables, "
        "which set the iceberg dialect, have no effect. `arco settings` changes the catalog's"
    ]


@pytest.mark.parametrize(("before", "after"), [(ICEBERG, POLARIS), (POLARIS, ICEBERG), (ICEBERG, OFF), (POLARIS, OFF)])
@pytest.mark.parametrize("cached", [True, False])
async def test_after_a_change_the_answers_to_earlier_keys_are_found(
    before: KeyPolicy, after: KeyPolicy, cached: bool, servers: Servers
) -> None:
    server = await servers.start_with_namespace(before)
    await server.create(servers.key())
    retrying = servers.start(before)
    if cached:
        await retrying.client.get("/v1/config?warehouse=wh")
    key = servers.key()
    assert (await server.commit(key)).status == 200
    await server.change(after)
    assert (await retrying.commit(key)).status == 200
    assert (await retrying.commit(key)).status == 200


@pytest.mark.parametrize(("before", "after"), [(ICEBERG, POLARIS), (POLARIS, ICEBERG), (OFF, ICEBERG)])
async def test_a_server_that_has_not_read_of_a_change_resolves_its_keys_anew(
    before: KeyPolicy, after: KeyPolicy, servers: Servers
) -> None:
    server, unaware = await servers.start_with_namespace(before), servers.start(before)
    await server.create(servers.key())
    await unaware.client.get("/v1/wh/namespaces/db/tables/t")
    await server.change(after)
    servers.clock.ms += 1
    key = servers.key()
    assert (await unaware.commit(key)).status == 200
    assert (await server.commit(key)).status == 200
    assert (await servers.start(before).commit(key)).status == 200


async def retry_after_an_idle_server(servers: Servers) -> list[int]:
    """The answers to a commit by a server that was idle since before a change of two days ago, and to its retry."""
    server, idle = await servers.start_with_namespace(ICEBERG), servers.start(ICEBERG)
    await server.create(servers.key())
    await idle.client.get("/v1/wh/namespaces/db/tables/t")
    await server.change(POLARIS)
    servers.clock.ms += SEARCH_MS
    key = servers.key()
    return [(await each.commit(key)).status for each in (idle, server)]


async def test_a_server_that_was_idle_since_before_a_change_notices_it(servers: Servers) -> None:
    assert await retry_after_an_idle_server(servers) == [200, 200]


async def test_a_change_that_requests_under_way_do_not_notice_is_found(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_change_that_requests_under_way_do_not_notice(monkeypatch)
    assert await retry_after_an_idle_server(servers) == [200, 409]


async def test_a_refusal_in_a_new_catalog_that_leaves_no_record_is_found(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_refusal_in_a_new_catalog_that_leaves_no_record(monkeypatch)
    one, other, key = servers.start(ICEBERG), servers.start(POLARIS), servers.key()
    assert (await one.create(key)).status == 404
    await other.client.post("/v1/wh/namespaces", {"namespace": ["db"]})
    assert (await other.create(key)).status == 200


async def test_a_marker_that_was_closed_after_a_change_admits_no_server_that_has_not_read_of_it(
    servers: Servers,
) -> None:
    server, unaware = await servers.start_with_namespace(ICEBERG), servers.start(ICEBERG)
    await server.create(servers.key())
    await unaware.client.get("/v1/wh/namespaces/db/tables/t")
    await server.change(POLARIS)
    key = servers.key()
    assert (await server.commit(key)).status == 200
    assert (await unaware.commit(key)).status == 200


async def test_a_key_that_only_the_earlier_dialect_takes_is_searched_and_then_refused(servers: Servers) -> None:
    server = await servers.start_with_namespace(POLARIS)
    assert (await server.create("made-before")).status == 200
    await server.change(ICEBERG)
    assert (await server.create("made-before")).status == 200
    assert (await server.commit("made-after")).status == 400
    servers.clock.ms += SEARCH_MS
    assert (await server.create("made-before")).status == 400


async def test_the_outcome_of_a_key_that_was_made_while_none_was_read_is_open(servers: Servers) -> None:
    server = await servers.start_with_namespace(OFF)
    await server.create(servers.key())
    key = servers.key()
    assert (await server.commit(key)).status == 200
    servers.clock.ms += 1
    await server.change(ICEBERG)
    answer = await server.commit(key)
    assert (answer.status, error_type(answer)) == (500, "CommitStateUnknownException")
    assert (await server.commit(servers.key())).status == 409


@pytest.mark.parametrize("back", [ICEBERG, POLARIS])
async def test_a_request_that_was_carried_out_while_keys_were_off_leaves_its_outcome_open_whatever_its_key_s_time(
    back: KeyPolicy, servers: Servers
) -> None:
    """The client's clock is ahead of the server that enabled keys, so the key's time does not show it."""
    server = await servers.start_with_namespace(ICEBERG)
    await server.change(OFF)
    key = servers.key()
    assert (await server.create(key)).status == 200
    await server.change(back)
    for retrying in (server, server, servers.start(back)):
        answer = await retrying.create(key)
        assert (answer.status, error_type(answer)) == (500, "CommitStateUnknownException")
    assert (await server.create(servers.key())).status == 409


async def test_a_server_that_has_not_read_that_keys_are_on_again_carries_a_request_out(servers: Servers) -> None:
    server = await servers.start_with_namespace(ICEBERG)
    await server.change(OFF)
    await server.create(servers.key())
    unaware = servers.start(OFF)
    await unaware.client.get("/v1/wh/namespaces/db/tables/t")
    await server.change(ICEBERG)
    servers.clock.ms += 1
    key = servers.key()
    assert [(await each.commit(key)).status for each in (unaware, server)] == [200, 200]


async def test_a_catalog_of_earlier_versions_takes_the_setting_of_the_first_server_that_uses_a_key(
    servers: Servers,
) -> None:
    """Before there was a record, each server used its own variables."""
    catalog = build_catalog(Settings("wh"), servers.store, "memory:///", (), servers.clock)
    request = OperationRequest("CLI", "", "", None, "operator", {}, servers.clock.now_ms() + 60_000)
    await init_catalog(catalog.session(request, ALLOW_ALL))
    first = await servers.start_with_namespace(POLARIS)
    other, key = servers.start(ICEBERG), servers.key()
    assert (await first.create(key)).status == 200
    assert (await other.create(key)).status == 200
    settings = (await catalog.session(request, ALLOW_ALL).state.head()).key_settings
    assert settings is not None
    assert settings.policy == POLARIS
    assert settings.previous_policies(servers.clock.now_ms()) == [ICEBERG]


@pytest.mark.parametrize("ahead_ms", [-3_600_000, 3_600_000])
async def test_the_first_settings_have_the_time_of_the_store(servers: Servers, ahead_ms: int) -> None:
    right = servers.clock
    catalog = build_catalog(Settings("wh"), servers.store, "memory:///", (), right)
    request = OperationRequest("CLI", "", "", None, "operator", {}, right.now_ms() + 60_000)
    await init_catalog(catalog.session(request, ALLOW_ALL))
    servers.clock = WrongClock(right, ahead_ms)

    await servers.start_with_namespace(POLARIS)

    settings = (await catalog.session(request, ALLOW_ALL).state.head()).key_settings
    assert settings is not None
    [replaced] = settings.replaced
    assert abs(replaced.until_ms - right.ms) <= PRECISION_MS


async def test_a_refusal_in_a_new_catalog_binds_servers_of_every_dialect(servers: Servers) -> None:
    one, other, key = servers.start(ICEBERG), servers.start(POLARIS), servers.key()
    assert (await one.create(key)).status == 404
    await other.client.post("/v1/wh/namespaces", {"namespace": ["db"]})
    assert (await other.create(key)).status == 404
