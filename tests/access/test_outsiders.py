"""A client with the documentation and a reader's account learns no more than a reader may."""

import base64
from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from tests.access.lake import DB, NAMESPACES, Lake, T, is_denied, send
from tests.access.test_routes import SET
from tests.support.realm_service import on_catalog, on_namespace, on_table, table_request
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import commit_report, scan_report, view_request
from tools.support.wrapped_stores import CountingStore

MINE = f"{NAMESPACES}/mine"


async def attacked() -> tuple[Lake, Client]:
    """A catalog in which an outsider has a namespace of its own, and reads one table of another one."""
    lake = await Lake().start()
    await lake.ok(await lake.manager.post(NAMESPACES, {"namespace": ["mine"]}))
    own = ("TABLE_FULL_METADATA", "TABLE_WRITE_DATA", "VIEW_FULL_METADATA", "NAMESPACE_FULL_METADATA")
    outsider = await lake.app.principal(
        "outsider", *(on_namespace(each, "mine") for each in own), on_table("TABLE_READ_DATA", "db", "u")
    )
    return lake, outsider


def rename(kind: str, name: str) -> tuple[str, str, JsonObject]:
    """Into a namespace of one's own."""
    source: JsonObject = {"namespace": ["db"], "name": name}
    return "POST", f"/v1/lake/{kind}s/rename", {"source": source, "destination": {"namespace": ["mine"], "name": "n"}}


def transaction(*names: str) -> tuple[str, str, JsonObject]:
    """Changes of tables of another namespace."""
    changes: list[JsonValue] = [
        {"identifier": {"namespace": ["db"], "name": name}, "requirements": [], "updates": [SET]} for name in names
    ]
    return "POST", "/v1/lake/transactions/commit", {"table-changes": changes}


def looks(at: str) -> Sequence[tuple[str, str, JsonObject | None]]:
    """Requests by which one looks at a table or view."""
    parts = (
        "timeline",
        "timeline?at=1",
        "timeline/1",
        f"timeline/1-{'0' * 64}",
        "compare?from=0",
        "governance",
        "access",
    )
    return [("GET", f"{at}/{part}", None) for part in parts]


def probes(name: str, namespace: str = "db") -> Sequence[tuple[str, str, JsonObject | None]]:
    """Requests by which one could find out whether there is something of a name."""
    there = f"{NAMESPACES}/{namespace}"
    table, view = f"{there}/tables/{name}", f"{there}/views/{name}"
    commit: JsonObject = {"requirements": [], "updates": [SET]}
    onwards: JsonObject = {"namespace": ["other"], "name": "n"}
    return (
        ("GET", table, None),
        ("HEAD", table, None),
        ("POST", table, commit),
        ("POST", table, {"requirements": [{"type": "assert-create"}], "updates": [SET]}),
        ("DELETE", table, None),
        ("DELETE", f"{table}?purgeRequested=true", None),
        ("POST", f"{table}/metrics", scan_report()),
        ("POST", f"{table}/metrics", commit_report()),
        ("POST", f"{table}/unregister", {}),
        ("GET", f"{table}/credentials", None),
        ("POST", f"{table}/sign", {}),
        *looks(table),
        *looks(view),
        ("GET", f"{table}/lineage?depth=5", None),
        ("GET", view, None),
        ("HEAD", view, None),
        ("POST", view, commit),
        ("DELETE", view, None),
        ("POST", f"{there}/tables", table_request(name)),
        ("POST", f"{there}/tables", {**table_request(name), "stage-create": True}),
        ("POST", f"{there}/views", view_request(name)),
        ("POST", f"{there}/register", {"name": name, "metadata-location": f"memory:///lake/db/{name}/m.json"}),
        ("POST", f"{there}/register", {"name": name, "metadata-location": "memory:///lake/x.json", "overwrite": True}),
        ("POST", f"{there}/register-view", {"name": name, "metadata-location": f"memory:///lake/db/{name}/m.json"}),
        rename("table", name),
        rename("view", name),
        ("POST", "/v1/lake/tables/rename", {"source": {"namespace": ["db"], "name": name}, "destination": onwards}),
        ("POST", "/v1/lake/views/rename", {"source": {"namespace": ["db"], "name": name}, "destination": onwards}),
        transaction(name, "u"),
        transaction("u", name),
        transaction(name, "x"),
        transaction("nowhere", name),
    )


def shown(answer: Answer, name: str) -> tuple[int, bytes]:
    """An answer without the requested name."""
    return answer.status, answer.body.replace(name.encode(), b"NAME")


@pytest.mark.parametrize("there", ["t", "v"])
@pytest.mark.parametrize("keyed", [False, True])
async def test_a_hidden_object_is_answered_like_a_missing_one(there: str, keyed: bool) -> None:
    lake, outsider = await attacked()
    missing = "q"
    for found, lost in zip(probes(there), probes(missing), strict=True):
        answers = []
        for method, target, body in (found, lost):
            headers = {"idempotency_key": lake.app.key()} if keyed and method == "POST" else {}
            answers.append(
                await outsider.post(target, body, **headers)
                if method == "POST"
                else await send(outsider, method, target, body)
            )
        assert is_denied(answers[0]), (found, answers[0].status, answers[0].body)
        assert shown(answers[0], f"db.{there}") == shown(answers[1], f"db.{missing}"), found


@pytest.mark.parametrize("there", ["t", "v"])
async def test_a_look_at_a_hidden_object_waits_for_the_store_as_often_as_at_a_missing_one(there: str) -> None:
    """Calls at once take the time of one."""
    lake, outsider = await attacked()
    assert lake.app.store is not None
    counted = lake.app.store = CountingStore(lake.app.store)
    outsider = lake.app.client("outsider", app=lake.app.serve())
    assert (await outsider.get(f"{DB}/tables/u")).status == 200  # from here on, all that both need is in memory
    for found, lost in zip(probes(there), probes("q"), strict=True):
        if found[0] in ("GET", "HEAD"):
            depths = []
            for request in (found, lost):
                with counted.measure() as measured:
                    await send(outsider, *request)
                depths.append(measured.depth)
            assert depths[0] == depths[1], (found, depths)


async def test_a_hidden_namespace_is_answered_like_a_missing_one() -> None:
    _, outsider = await attacked()
    for path in ("", "/tables", "/views", "/functions", "/functions/f"):
        answers = [await outsider.get(f"{NAMESPACES}/{name}{path}") for name in ("other", "wrong")]
        assert shown(answers[0], "other") == shown(answers[1], "wrong")
        assert is_denied(answers[0])
    for there, missing in zip(probes("t", "other"), probes("t", "wrong"), strict=True):
        if "other" in there[1]:
            answers = [await send(outsider, *there), await send(outsider, *missing)]
            assert shown(answers[0], "other") == shown(answers[1], "wrong"), there
    children = [await outsider.get(f"{NAMESPACES}?parent={name}") for name in ("other", "wrong")]
    assert shown(children[0], "other") == shown(children[1], "wrong")


MALFORMED: Sequence[tuple[str, str, bytes]] = (
    ("POST", "namespaces", b"{"),
    ("POST", "namespaces", b"[]"),
    ("POST", "namespaces", b'{"namespace": []}'),
    ("POST", "namespaces/db/tables", b"{}"),
    ("POST", "namespaces/db/tables", b'{"name": 1}'),
    ("POST", "namespaces/db/tables/t", b'{"requirements": 1}'),
    ("POST", "namespaces/db/tables/t", b'{"updates": [{"action": 1}]}'),
    ("POST", "namespaces/db/register", b'{"name": "x"}'),
    ("POST", "tables/rename", b"{}"),
    ("POST", "transactions/commit", b'{"table-changes": {}}'),
    ("POST", "transactions/commit", b'{"table-changes": [1]}'),
    ("GET", "namespaces?pageSize=x", b""),
    ("GET", "namespaces?pageToken=x", b""),
    ("GET", "namespaces?parent=%1F", b""),
    ("GET", "namespaces/db/tables/t?snapshots=x", b""),
    ("GET", "namespaces/%1F/tables", b""),
    ("DELETE", "namespaces/db/tables/t?purgeRequested=x", b""),
    ("POST", "namespaces/db/tables/t/metrics", b"{}"),
)


@pytest.mark.parametrize("request_", MALFORMED, ids=range(len(MALFORMED)))
async def test_a_malformed_request_does_not_tell_which_catalogs_there_are(request_: tuple[str, str, bytes]) -> None:
    lake = await Lake().start()
    stranger = await lake.app.principal("stranger")
    method, path, body = request_

    answers = [await stranger.send(method, f"/v1/{name}/{path}", body) for name in ("lake", "none")]

    assert shown(answers[0], "lake") == shown(answers[1], "none")
    assert answers[0].status == 404


# Locations.

FOREIGN = (
    "memory:///lake/db",
    "memory:///lake/db/t",
    "memory:///lake/db/new",
    "memory:///lake",
    "memory:///lake/elsewhere",
    "memory:///lake/mine/../db",
    "memory:///lake/mine2",
    "memory:///lake/%6dine/x",
    "memory:///lake/MINE/x",
    "memory:///lake/_catalog",
    "memory:///_realm",
    "memory:///_realm/core",
    "memory:///elsewhere",
    "memory:///",
    "file:///etc",
    "s3://lake/mine",
)


@pytest.mark.parametrize("location", FOREIGN)
async def test_no_table_gets_a_location_among_those_of_others(location: str) -> None:
    lake, outsider = await attacked()
    theirs = str((await lake.manager.get(T)).json["metadata-location"])
    await lake.ok(await outsider.post(f"{MINE}/tables", table_request("own")))
    written: JsonObject = {"write.data.path": location}
    tries: Sequence[tuple[str, JsonObject]] = (
        (f"{MINE}/tables", {**table_request("n"), "location": location}),
        (f"{MINE}/tables", {**table_request("n"), "location": location, "stage-create": True}),
        (f"{MINE}/tables", {**table_request("n"), "properties": {"write.metadata.path": location}}),
        (f"{MINE}/tables", {**table_request("n"), "properties": written}),
        (f"{MINE}/tables/own", {"requirements": [], "updates": [{"action": "set-location", "location": location}]}),
        (f"{MINE}/tables/own", {"requirements": [], "updates": [{"action": "set-properties", "updates": written}]}),
        (f"{MINE}/views", {**view_request("n"), "location": location}),
        (f"{MINE}/register", {"name": "n", "metadata-location": f"{location}/metadata/1.metadata.json"}),
        (f"{MINE}/register", {"name": "n", "metadata-location": theirs}),
        (f"{MINE}/register", {"name": "own", "metadata-location": theirs, "overwrite": True}),
        (f"{MINE}/register-view", {"name": "n", "metadata-location": lake.view_file}),
        (NAMESPACES, {"namespace": ["mine", "n"], "properties": {"location": location}}),
        (f"{MINE}/properties", {"updates": {"location": location}}),
    )
    for target, body in tries:
        answer = await outsider.post(target, body)
        assert answer.status in (400, 403), (target, body, answer.status, answer.body)
        assert b"db.t" not in answer.body


async def test_only_a_caller_that_may_list_a_table_learns_its_name() -> None:
    lake, _ = await attacked()
    theirs = str((await lake.manager.get(T)).json["metadata"]["location"])  # type: ignore[index, call-overload]
    content = await lake.app.principal("blind", on_catalog("CATALOG_MANAGE_CONTENT"))

    answer = await content.post(f"{MINE}/tables", {**table_request("n"), "location": theirs})
    assert "table db.t" in answer.message


async def test_the_folder_of_a_namespace_may_be_chosen_by_who_manages_the_catalog() -> None:
    lake, outsider = await attacked()
    inside: JsonObject = {**table_request("n"), "location": "memory:///lake/mine/chosen"}
    assert (await outsider.post(f"{MINE}/tables", inside)).status == 200
    elsewhere: JsonObject = {**table_request("n"), "location": "memory:///lake/elsewhere"}
    assert (await lake.manager.post(f"{MINE}/tables", {**elsewhere, "name": "m"})).status == 200
    # Who did not choose it may change whatever else there is.
    assert (await outsider.post(f"{MINE}/tables/m", {"requirements": [], "updates": [SET]})).status == 200


# Pages.


def tokens_like(token: str, foreign: Sequence[str]) -> Sequence[str]:
    """Forged page tokens."""
    inside, _, seal = token.rpartition(".")
    encrypted = base64.urlsafe_b64decode(inside + "=" * (-len(inside) % 4))

    def coded(*parts: JsonValue) -> str:
        return encoded(dumps([*parts]))

    def encoded(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    commit, start = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "relation\nmine\nb"
    moved = coded(commit, start.replace("mine", "db"))
    flipped = [encrypted[:at] + bytes([encrypted[at] ^ 1]) + encrypted[at + 1 :] for at in range(len(encrypted))]
    return (
        inside,
        f"{inside}.",
        f".{seal}",
        f"{inside}.{seal[:-1]}",
        f"{inside}.{seal[:-1]}x",
        f"{inside}.{'0' * len(seal)}",
        f"{inside}={'.'}{seal}",
        f"{moved}.{seal}",
        moved,
        f"{coded(commit, start[:-1])}.{seal}",
        f"{coded(commit, start, '1')}.{seal}",
        f"{coded('0' * 26, start)}.{seal}",
        *(f"{encoded(each)}.{seal}" for each in flipped),
        *foreign,
        "%00",
        "%F0%9F%92%A9.%C3%A9",
        "a" * 2_000,
    )


async def test_a_page_token_is_valid_only_for_its_principal_and_listing() -> None:
    lake, outsider = await attacked()
    for name in ("a", "b", "c"):
        await lake.ok(await outsider.post(f"{MINE}/tables", table_request(name)))
        await lake.ok(await outsider.post(f"{MINE}/views", view_request(f"v{name}")))
    page = "?pageSize=1&pageToken="

    async def token(client: Client, target: str) -> str:
        return str((await client.get(f"{target}{page}")).json["next-page-token"])

    own = await token(outsider, f"{MINE}/tables")
    another = lake.app.client("outsider", app=lake.app.serve())
    assert (await another.get(f"{MINE}/tables{page}{own}")).json["identifiers"] == [
        {"namespace": ["mine"], "name": "b"}
    ]
    foreign = [
        await token(lake.manager, f"{MINE}/tables"),
        await token(lake.manager, f"{DB}/tables"),
        await token(outsider, f"{MINE}/views"),
    ]
    for made in tokens_like(own, foreign):
        answer = await outsider.get(f"{MINE}/tables{page}{made}")
        assert answer.status == 400, (made, answer.body)
    for theirs in foreign:
        assert (await outsider.get(f"{DB}/tables{page}{theirs}")).status in (400, 404)


async def test_servers_that_begin_together_seal_with_one_key() -> None:
    lake, _ = await attacked()
    clients = [lake.app.client("manager", app=lake.app.serve()) for _ in range(3)]
    tokens = [(await each.get(f"{DB}/tables?pageSize=1&pageToken=")).json["next-page-token"] for each in clients]
    assert len({*tokens}) == 1


async def test_a_dropped_principal_does_not_learn_which_catalogs_exist() -> None:
    lake = await Lake().start()
    gone = await lake.app.principal("gone", on_catalog("CATALOG_MANAGE_CONTENT"))
    await lake.app.ok("DELETE", "principals/gone")
    for client in (gone, lake.app.client("never-there")):
        for target in ("/v1/config?warehouse=lake", NAMESPACES, f"{DB}/tables", T):
            there, absent = await client.get(target), await client.get(target.replace("lake", "absent"))
            assert (there.status, there.body) == (absent.status, absent.body) == (401, there.body)
