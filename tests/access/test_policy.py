"""Open Policy Agent must allow each request, besides the grants: denied is 403, no answer is 503."""

import asyncio
from dataclasses import replace

import pytest

from arco_catalog.iceberg.json import JsonObject, dumps
from storage_backends.wire.http1 import Response
from tests.access.lake import DB, NAMESPACES, Lake, T
from tests.support.http_service import HttpService
from tests.support.policy_stub import PolicyStub
from tests.support.realm_service import MANAGEMENT, on_catalog, table_request
from tools.support.asgi_client import Client

COMMIT: JsonObject = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}


class PolicyServer:
    """A copy of a lake, and a server of it that queries a policy."""

    def __init__(self, first: Lake, *, cache_ms: int = 0, batch: bool = True, judged: bool = True) -> None:
        self.lake = first.copy()
        self.app, self.stub = self.lake.app, PolicyStub()
        self.policy = self.stub.agent(self.app.clock.now_ms, cache_ms=cache_ms, batch=batch)
        self.served = replace(self.app, policy=self.policy, judged=judged)
        self.served.ids, self.served.clear = self.app.ids, self.app.clear
        self.asgi = self.served.serve()

    def client(self, name: str, roles: str = "") -> Client:
        return self.app.client(name, roles=roles, app=self.asgi)

    @property
    def manager(self) -> Client:
        return self.client("manager")


async def test_a_load_that_grants_and_policy_allow_is_answered(first: Lake) -> None:
    policed = PolicyServer(first)

    assert (await policed.manager.get(T)).status == 200

    [(url, given)] = policed.stub.calls
    assert url.endswith("/allow")
    assert given == {
        "actor": {"principal": "manager", "id": policed.app.ids["r", "manager"], "roles": ["manager-role"]},
        "context": {"realm": "r"},
        "action": "TABLE_READ_PROPERTIES",
        "resource": {
            "targets": [
                {
                    "type": "TABLE",
                    "name": "t",
                    "parents": [{"type": "CATALOG", "name": "lake"}, {"type": "NAMESPACE", "name": "db"}],
                }
            ]
        },
    }


async def test_a_load_that_the_policy_denies_is_forbidden(first: Lake) -> None:
    policed = PolicyServer(first)
    policed.stub.allows = lambda principal, action, kind, name: name != "db.t"

    denied = await policed.manager.get(T)

    assert denied.status == 403
    assert denied.message == "The policy does not allow principal manager TABLE_READ_PROPERTIES on table db.t"
    assert (await policed.manager.get(f"{DB}/tables/u")).status == 200


async def test_a_policy_cannot_give_what_grants_do_not(first: Lake) -> None:
    policed = PolicyServer(first)
    await policed.app.principal("stranger")

    assert (await policed.client("stranger").get(T)).status == 404
    assert not policed.stub.calls


@pytest.mark.parametrize(
    "answer",
    [
        Response(500, {}, b"{}"),
        Response(401, {}, b"{}"),
        Response(403, {}, b'{"result": true}'),
        Response(302, {"location": "/"}, b""),
        Response(200, {}, b"{}"),
        Response(200, {}, b"true"),
        Response(200, {}, b'{"result": "true"}'),
        Response(200, {}, b'{"result": 1}'),
        Response(200, {}, b'{"result": null}'),
        Response(200, {}, b'{"result": {"allow": true}}'),
        Response(200, {}, b'{"result": tru'),
        Response(200, {}, b"[" * 5_000),
        Response(200, {}, b""),
        None,
    ],
)
async def test_no_readable_answer_is_no_refusal(first: Lake, answer: Response | None) -> None:
    policed = PolicyServer(first)
    policed.stub.answer, policed.stub.silent = answer, answer is None

    for sent in (await policed.manager.get(T), await policed.manager.post(T, COMMIT)):
        assert sent.status == 503
        assert int(sent.headers["Retry-After"]) >= 1


@pytest.mark.parametrize("result", [b"true", b"{}", b"[true]", b'["0"]', b"[0.0]", b"[-1]", b"[2]", b"[null]"])
async def test_an_unreadable_answer_to_a_batch_is_no_refusal(first: Lake, result: bytes) -> None:
    policed = PolicyServer(first)
    policed.stub.answer = Response(200, {}, b'{"result": ' + result + b"}")

    dropped = await policed.manager.delete(f"{T}?purgeRequested=true")

    assert dropped.status == 503


async def test_no_answer_of_the_policy_becomes_the_answer_of_a_key(first: Lake) -> None:
    policed = PolicyServer(first)
    key = {"idempotency_key": policed.app.key()}
    policed.stub.silent = True

    assert (await policed.manager.post(T, COMMIT, **key)).status == 503

    policed.stub.silent = False
    policed.app.clock.ms += 30_000  # type: ignore[attr-defined]
    assert (await policed.manager.post(T, COMMIT, **key)).status == 200


async def test_a_retry_of_a_commit_is_answered_by_its_marker_alone(first: Lake) -> None:
    policed = PolicyServer(first)
    key = {"idempotency_key": policed.app.key()}
    committed = await policed.manager.post(T, COMMIT, **key)
    assert committed.status == 200
    policed.stub.allows = lambda *_: False

    again = await policed.manager.post(T, COMMIT, **key)

    assert again.status == 200
    assert again.json["metadata-location"] == committed.json["metadata-location"]
    assert (await policed.manager.post(T, COMMIT, idempotency_key=policed.app.key())).status == 403


async def test_only_what_is_allowed_is_remembered_and_for_seconds(first: Lake) -> None:
    policed = PolicyServer(first, cache_ms=5_000)
    assert (await policed.manager.get(T)).status == 200
    policed.stub.allows = lambda *_: False
    policed.app.clock.ms += 4_999  # type: ignore[attr-defined]
    assert (await policed.manager.get(T)).status == 200
    assert len(policed.stub.calls) == 1

    policed.app.clock.ms += 1  # type: ignore[attr-defined]
    assert (await policed.manager.get(T)).status == 403

    policed.stub.allows = lambda *_: True
    assert (await policed.manager.get(T)).status == 200


async def test_what_one_principal_may_do_is_not_remembered_of_another(first: Lake) -> None:
    policed = PolicyServer(first, cache_ms=5_000)
    policed.stub.allows = lambda principal, action, kind, name: principal == "manager"
    await policed.app.principal("reader", on_catalog("TABLE_READ_PROPERTIES"))
    assert (await policed.manager.get(T)).status == 200

    assert (await policed.client("reader").get(T)).status == 403


async def test_a_list_shows_what_the_policy_lets_be_listed(first: Lake) -> None:
    policed = PolicyServer(first)
    policed.stub.allows = lambda principal, action, kind, name: name not in ("db.u", "other")

    tables = await policed.manager.get(f"{DB}/tables")
    namespaces = await policed.manager.get(NAMESPACES)

    assert [each["name"] for each in tables.json["identifiers"]] == ["t"]  # type: ignore[union-attr, index, call-overload]
    assert namespaces.json["namespaces"] == [["db"]]
    assert len(policed.stub.calls) == 4  # the parent, and all items at once


async def test_without_a_rule_for_batches_lists_are_shown_as_by_grants(first: Lake) -> None:
    policed = PolicyServer(first, batch=False)
    policed.stub.allows = lambda principal, action, kind, name: name != "db.u"

    tables = await policed.manager.get(f"{DB}/tables")

    assert len(tables.json["identifiers"]) == 2  # type: ignore[arg-type]
    assert len(policed.stub.calls) == 1


async def test_a_search_queries_at_once(first: Lake) -> None:
    policed = PolicyServer(first)
    policed.stub.allows = lambda principal, action, kind, name: name in ("db.t", "db.v")

    found = await policed.manager.get("/v1/lake/search?q=v")

    assert found.status == 200
    assert [each["name"] for each in found.json["results"]] == ["v"]  # type: ignore[union-attr, index, call-overload]
    assert len(policed.stub.calls) == 1


async def test_the_namespace_of_the_pipeline_takes_an_action_of_its_own(first: Lake) -> None:
    policed = PolicyServer(first)
    made = await policed.lake.manager.post(NAMESPACES, {"namespace": ["plain"]})
    assert made.status == 200
    policed.stub.allows = lambda principal, action, kind, name: action != "SYSTEM_ACCESS"

    denied = await policed.manager.get(f"{NAMESPACES}/system")

    assert denied.status == 403
    assert denied.message == "The policy does not allow principal manager SYSTEM_ACCESS on the catalog"
    policed.stub.allows = lambda *_: True
    assert (await policed.manager.get(f"{NAMESPACES}/system")).status == 404


async def test_without_a_rule_for_batches_the_namespace_of_the_pipeline_is_closed(first: Lake) -> None:
    policed = PolicyServer(first, batch=False)

    assert (await policed.manager.get(f"{NAMESPACES}/system")).status == 403


async def test_management_is_queried_about_too(first: Lake) -> None:
    policed = PolicyServer(first)
    policed.stub.allows = lambda principal, action, kind, name: kind != "ROOT"

    denied = await policed.app.client("root", app=policed.asgi).get(f"{MANAGEMENT}/principals")

    assert denied.status == 403
    assert denied.message == "The policy does not allow principal root PRINCIPAL_LIST on the realm"


async def test_checks_are_answered_with_the_policy_in_mind(first: Lake) -> None:
    policed = PolicyServer(first)
    await policed.app.principal("reader", on_catalog("TABLE_READ_PROPERTIES"))
    policed.stub.allows = lambda principal, action, kind, name: (principal, name) != ("reader", "db.t")
    grant = {"type": "table", "privilege": "TABLE_READ_PROPERTIES", "namespace": ["db"]}
    checks = [
        {**grant, "tableName": "t", "principal": "reader"},
        {**grant, "tableName": "u", "principal": "reader"},
        {**grant, "tableName": "t"},
    ]

    answer = await policed.app.client("root", app=policed.asgi).post(
        f"{MANAGEMENT}/catalogs/lake/check",
        {"checks": checks},
    )

    assert answer.status == 200, answer.body
    results = answer.json["results"]
    assert [each["allowed"] for each in results] == [False, True, True]  # type: ignore[union-attr, index, call-overload]
    assert results[0]["reason"] == (  # type: ignore[index, call-overload]
        "The policy does not allow principal reader TABLE_READ_PROPERTIES on table db.t"
    )


async def test_what_a_plan_finds_out_is_queried_about(first: Lake) -> None:
    policed = PolicyServer(first)
    policed.stub.allows = lambda principal, action, kind, name: action != "CATALOG_MANAGE_CONTENT"
    elsewhere = {**table_request("far"), "location": f"{policed.app.base('lake')}/elsewhere"}

    denied = await policed.manager.post(f"{DB}/tables", elsewhere)

    assert denied.status == 403
    assert "CATALOG_MANAGE_CONTENT" in denied.message
    policed.stub.silent = False
    policed.stub.allows = lambda *_: True
    assert (await policed.manager.post(f"{DB}/tables", elsewhere)).status == 200


async def test_a_plan_that_gets_no_answer_fails_for_now(first: Lake) -> None:
    policed = PolicyServer(first)
    elsewhere = {**table_request("far"), "location": f"{policed.app.base('lake')}/elsewhere"}

    def only_the_route(principal: str, action: str, kind: str, name: str) -> bool:
        policed.stub.silent = True
        return True

    policed.stub.allows = only_the_route

    assert (await policed.manager.post(f"{DB}/tables", elsewhere)).status == 503


async def test_without_grants_the_policy_alone_decides(first: Lake) -> None:
    policed = PolicyServer(first, judged=False)
    await policed.app.principal("stranger")
    stranger = policed.client("stranger", roles="analyst")

    assert (await stranger.get(T)).status == 200
    assert policed.stub.calls[-1][1]["actor"]["roles"] == ["analyst"]
    policed.stub.allows = lambda principal, action, kind, name: name != "db.t"
    assert (await stranger.get(T)).status == 403
    assert (await stranger.get(f"{DB}/tables/u")).status == 200


async def test_a_store_without_a_realm_can_have_a_policy() -> None:
    service, stub = HttpService(), PolicyStub()
    client = service.serve_with(stub.agent(service.clock.now_ms))

    assert (await client.post("/v1/wh/namespaces", {"namespace": ["db"]})).status == 200
    stub.allows = lambda *_: False

    assert (await client.post("/v1/wh/namespaces", {"namespace": ["other"]})).status == 403
    assert stub.calls[0][1]["actor"] == {"principal": "anonymous", "id": "anonymous", "roles": []}
    assert stub.calls[0][1]["context"] == {"realm": None}


async def test_tokens_of_pages_do_not_show_hidden_names_without_a_realm() -> None:
    service, stub = HttpService(), PolicyStub()
    client = service.serve_with(stub.agent(service.clock.now_ms))
    for name in ("a", "hidden", "z"):
        assert (await client.post("/v1/wh/namespaces", {"namespace": [name]})).status == 200
    stub.allows = lambda principal, action, kind, name: name != "hidden"

    first = await client.get("/v1/wh/namespaces?pageToken=&pageSize=1")
    second = await client.get(f"/v1/wh/namespaces?pageToken={first.json['next-page-token']}&pageSize=1")

    assert first.json["namespaces"] == [["a"]]
    assert second.json["namespaces"] == []
    assert "." in str(first.json["next-page-token"])
    unsealed = dumps([{"forged": True}]).decode()
    assert (await client.get(f"/v1/wh/namespaces?pageToken={unsealed}")).status == 400


async def test_a_server_without_a_policy_queries_nothing(first: Lake) -> None:
    lake = first.copy()

    assert (await lake.manager.get(T)).status == 200


async def test_a_policy_is_awaited_no_longer_than_the_request_has(first: Lake) -> None:
    policed = PolicyServer(first)
    policed.stub.hangs = True
    hasty = replace(policed.served, settings=replace(policed.app.settings, request_ms=50))
    hasty.ids, hasty.clear = policed.app.ids, policed.app.clear
    client = policed.app.client("manager", app=hasty.serve())

    async with asyncio.timeout(60):
        answers = [await client.get(T), await client.post(T, COMMIT), await client.get("/v1/lake/search?q=t")]

    assert [each.status for each in answers] == [503, 503, 503]
