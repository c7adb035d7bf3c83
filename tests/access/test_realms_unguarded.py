"""Attempts to reach a realm by a function whose variables do not fit its store: in all combinations, no caller gets
more than they say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from arco_catalog.http.app import create_app
from arco_catalog.http.asgi import Asgi, Receive, Scope, Send
from arco_catalog.http.function_app import function_app
from arco_catalog.http.middleware.realm_guard import CHECK_INTERVAL_MS, RealmGuard
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.routes import ROUTES
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.memory import MemoryStore
from tests.access.test_callers_of_gateways import CONTEXT, OWNER
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import MANAGEMENT, RealmApp
from tools.support.asgi_client import Client

URL = "memory:///"
ISSUER = "https://id.example.org/pool"
AUTH: Mapping[str, Mapping[str, str]] = {
    "": {},
    "internal": {"ARCO_TOKEN_KEY": "an-example-0123456789-abcdefghijklmnopqrstuvwxyz"},
    "gateway": {"ARCO_GATEWAY_APIS": "apia"},
    "oidc": {"ARCO_OIDC_ISSUERS": ISSUER, "ARCO_OIDC_AUDIENCES": "arco"},
}
KINDS = ("", "internal", "gateway", "oidc", "gateway,internal", "internal,oidc", "gateway,oidc,internal", "none")
AUTHORIZATIONS = (None, "on", "off")
NAMED = (None, "a", "a,b", "b,a", "c")
STORES: Sequence[Sequence[str]] = ((), ("default",), ("a",), ("a", "b"))
"""Realms in the store: none, one at its root, or of these names."""
TARGETS = (
    "/v1/config?warehouse=wh",
    "/v1/config?warehouse=lake",
    "/v1/wh/namespaces",
    "/v1/lake/namespaces",
    "/v1/namespaces",
    f"{MANAGEMENT}/principals",
)
BODY = b'{"namespace": ["n"], "principal": {"name": "n"}}'
HEADERS: Sequence[Mapping[str, str]] = (
    {},
    {"authorization": "Bearer a.b.c"},
    {"authorization": "Basic cm9vdDpyb290"},
    {"polaris-realm": "a", "x-amzn-request-context": CONTEXT},
    {"polaris-realm": "default", "x-ms-client-principal": OWNER},
)


@dataclass(frozen=True)
class Behind:
    """A gateway that verified the owner of a token that belongs to no registered principal."""

    app: Asgi

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        claims = {"iss": ISSUER, "sub": "stranger"}
        event = {"requestContext": {"apiId": "apia", "authorizer": {"jwt": {"claims": claims}}}}
        await self.app({**scope, "aws.event": event}, receive, send)


async def store_with(realms: Sequence[str]) -> MemoryStore:
    store = MemoryStore(now_ms=SystemRuntime().now_ms)
    if realms == ("a",):  # one of several: below its name
        await RealmApp(("a", "unused"), store=store).start()
    elif realms:
        await RealmApp(tuple(realms), store=store).start()
    return store


async def served(store: MemoryStore, environment: Mapping[str, str]) -> Asgi | None:
    """A function over the store, None if it refuses to start."""
    catalog = build_catalog(Settings("wh"), store, URL, (), SystemRuntime())
    try:
        return await function_app({"ARCO_STORE": URL, **environment}, catalog, HttpOptions(), None, SystemRuntime())
    except ValueError:
        return None


async def keys(store: MemoryStore) -> dict[str, Any]:
    return {entry.key: entry.version for entry in (await store.list("")).entries}


def variables(kinds: str, authorization: str | None, named: str | None) -> dict[str, str]:
    configured = {name: value for kind in kinds.split(",") for name, value in AUTH.get(kind, {}).items()}
    given = {"ARCO_AUTH": kinds or None, "ARCO_AUTHORIZATION": authorization, "ARCO_REALM": named}
    return {**configured, **{name: value for name, value in given.items() if value}}


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("realms", STORES, ids=lambda realms: "+".join(realms) or "none")
async def test_no_combination_of_variables_lets_a_stranger_at_a_realm(kinds: str, realms: Sequence[str]) -> None:
    store, tries = await store_with(realms), 0
    before = await keys(store)
    for authorization, named in product(AUTHORIZATIONS, NAMED):
        app = await served(store, variables(kinds, authorization, named))
        is_open = kinds == "" and (authorization == "off" or not touches(realms, named))
        for target, headers in product(TARGETS, HEADERS):
            tries += 1
            if app is None:
                continue
            client = Client(app, headers)
            if not is_open:
                for method in ("GET", "POST", "DELETE"):
                    answer = await client.send(method, target)
                    assert answer.status in (401, 403), (authorization, named, method, target, answer.body)
            elif target == TARGETS[0]:
                assert (await client.get(target)).status == 200, (authorization, named)
            elif MANAGEMENT in target:
                assert (await client.get(target)).status == 404, (authorization, named)
        if app is None:
            assert kinds == "none" or authorization == "off", (authorization, named)
    assert await keys(store) == before
    assert tries == 450


def touches(realms: Sequence[str], named: str | None) -> bool:
    """Whether a function that serves no realm would see one: at the root, or under a name in its variables."""
    return "default" in realms or any(name in realms for name in (named or "").split(","))


@pytest.mark.parametrize("kinds", ["gateway", "gateway,internal", "gateway,oidc"])
@pytest.mark.parametrize("realms", STORES, ids=lambda realms: "+".join(realms) or "none")
async def test_a_caller_that_is_not_registered_gets_in_only_if_grants_are_off(
    kinds: str, realms: Sequence[str]
) -> None:
    store = await store_with(realms)
    before = await keys(store)
    for authorization, named in product(AUTHORIZATIONS, NAMED):
        app = await served(store, variables(kinds, authorization, named))
        if app is None or authorization == "off":
            continue
        client = Client(Behind(app))
        for target, headers in product(TARGETS, HEADERS):
            read = await client.send("GET", target, headers=headers)
            written = await client.send("POST", target, BODY, headers)
            for answer in (read, written):
                nameless = target == "/v1/namespaces" and answer.status == 400  # no catalog was named
                no_method = "config" in target and answer.status == 405
                assert nameless or no_method or answer.status in (401, 403, 404), (named, target, answer.body)
    assert await keys(store) == before


async def test_grants_are_off_for_realms_that_were_named_only_where_all_of_them_are_there() -> None:
    store = await store_with(("a",))
    for kinds, named in product(("gateway", "oidc", "internal", "gateway,oidc"), ("c", "a,c", "c,a", "b", "A")):
        assert await served(store, variables(kinds, "off", named)) is None, (kinds, named)
    assert await served(store, variables("gateway", "off", "a")) is not None


@pytest.mark.parametrize(
    "text", ["OFF", "Off", " off", "off ", "oFF", "no", "0", "false", "none", "off,on", "o\u017ff"]
)
async def test_nothing_but_the_word_itself_takes_grants_off(text: str) -> None:
    store = await store_with(("default",))
    for kinds in KINDS:
        assert await served(store, variables(kinds, text, None)) is None


async def test_a_realm_is_guarded_on_every_route_and_by_every_method() -> None:
    clock, tries = FakeRuntime(), 0
    store = MemoryStore(now_ms=clock.now_ms)
    await RealmApp(clock=clock, store=store).start()
    before = await keys(store)
    catalog = build_catalog(Settings("wh"), store, URL, (), clock)
    body: JsonObject = {"namespace": ["db"], "name": "t", "metadata-location": "memory:///wh/t/1.metadata.json"}
    for realms in ((), ("a",), ("a", "b"), ("wh",)):
        app = create_app({"wh": catalog}, guard=lambda inner, realms=realms: RealmGuard(inner, catalog, realms).handle)  # type: ignore[misc]
        client = Client(app)
        for template in sorted({route.template for route in ROUTES}):
            target = template.replace("{prefix}", "wh").replace("{namespace}", "db").replace("{table}", "t")
            for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "get", "TRACE"):
                for _ in range(2):
                    answer = await (client.post(target, body) if method == "POST" else client.send(method, target))
                    assert answer.status == 403, (realms, method, target, answer.status, answer.body)
                    tries += 1
    assert await keys(store) == before
    assert tries > 1_000


async def test_a_realm_that_is_made_meanwhile_is_seen_at_the_latest_when_belief_ends() -> None:
    for age_ms in (CHECK_INTERVAL_MS, CHECK_INTERVAL_MS + 1, 2 * CHECK_INTERVAL_MS):
        clock = FakeRuntime()
        store = MemoryStore(now_ms=clock.now_ms)
        catalog = build_catalog(Settings("wh"), store, URL, (), clock)
        clients = [
            Client(create_app({"wh": catalog}, guard=lambda inner: RealmGuard(inner, catalog).handle))  # noqa: B023
            for _ in range(2)
        ]
        assert (await clients[0].get("/v1/config")).status == 200
        await RealmApp(clock=clock, store=store).start()
        waited_ms = 0
        while waited_ms + 1_000 < age_ms:  # further requests do not prolong the result of a check
            await clock.sleep(30)
            waited_ms += 30_000
            if waited_ms < CHECK_INTERVAL_MS:
                assert (await clients[0].get("/v1/config")).status == 200
        await clock.sleep(max(0, age_ms - waited_ms) / 1_000)
        for client in clients:
            assert (await client.get("/v1/config")).status == 403
            assert (await client.post("/v1/wh/namespaces", {"namespace": ["n"]})).status == 403
