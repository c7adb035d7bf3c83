"""Whatever a foreign server answers, an import of a realm ends: with what could be read, or with one error; it sends a
bounded number of requests, and keeps a bounded part of the answers."""

import json
from collections.abc import Mapping, Sequence

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.cli import foreign_server, realm_objects, rest_source
from arco_catalog.cli.counterparts import counterpart, differences
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.foreign_server import open_foreign_server
from arco_catalog.cli.management import ApiClient
from arco_catalog.cli.realm_objects import Kind, RealmObject, read_catalogs, read_realm
from arco_catalog.cli.rest_source import RestSource
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.upkeep.source_tables import SourceTable
from tests.support.stub_server import stub_server

MAX_REQUESTS = 5_000
FIELDS = (
    *("catalogs", "principals", "roles", "grants", "name", "type", "namespace", "tableName", "privilege", "properties"),
    *(
        "defaults",
        "overrides",
        "prefix",
        "namespaces",
        "identifiers",
        "next-page-token",
        "metadata",
        "metadata-location",
    ),
    *("storageConfigInfo", "storageType", "allowedLocations", "default-base-location", "table-uuid", "federated"),
    "metadata-location",
)
TEXTS = st.one_of(
    st.sampled_from(
        ["a", "b", "table", "namespace", "TABLE_LIST", "S3", "FILE", "INTERNAL", "file:///x", "s3://b/../c"]
    ),
    st.text(max_size=5),
    st.sampled_from(["\x1b[2J", "..", "/", "\x1f", "a" * 300, "é\u202e"]),
)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.sampled_from(FIELDS), TEXTS), inner, max_size=4)
    ),
    max_leaves=12,
)
BODIES = st.one_of(VALUES.map(lambda value: json.dumps(value).encode()), st.binary(max_size=20))
ANSWERS = st.lists(
    st.tuples(st.sampled_from([200, 200, 200, 200, 404, 500, 307, 204]), BODIES), min_size=1, max_size=12
)


class Answers:
    """An exchange that gives these answers, one after the other, again and again."""

    def __init__(self, answers: Sequence[tuple[int, bytes]]) -> None:
        self.answers, self.count = answers, 0

    async def __call__(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        assert method == "GET"
        assert target.isascii()
        assert " " not in target
        self.count += 1
        assert self.count < MAX_REQUESTS
        return self.answers[(self.count - 1) % len(self.answers)]


async def found_in(source: RestSource) -> list[SourceTable]:
    found = []
    async for table in source.tables():
        found.append(table)
    return found


@given(ANSWERS)
async def test_any_answers_of_management_are_read_or_refused(answers: Sequence[tuple[int, bytes]]) -> None:
    api = ApiClient(Answers(answers))
    try:
        objects = await read_realm(api, await read_catalogs(api, ()))
    except CliError:
        return
    for each in objects:
        found = counterpart(each)
        assert found.object is not None or found.left_out
        if found.object is not None and each.kind in (Kind.CATALOG, Kind.PRINCIPAL):
            assert [*differences(found.object, counterpart(found.object).object or found.object)] == []


@given(ANSWERS, st.lists(VALUES, max_size=4))
async def test_any_answers_of_icebergs_api_are_read_or_refused(
    answers: Sequence[tuple[int, bytes]], tokens: Sequence[JsonValue]
) -> None:
    listing: JsonObject = {"namespaces": [["a"]], "identifiers": [{"namespace": ["a"], "name": "t"}], "defaults": {}}
    pages = [(200, json.dumps({**listing, "next-page-token": token}).encode()) for token in tokens]
    for given_answers in (answers, [*pages, *answers]):
        try:
            tables = await found_in(RestSource(Answers(given_answers), "w"))
        except CliError:
            continue
        assert all(isinstance(table.name, str) and all(table.namespace) for table in tables)


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6), st.sampled_from([*Kind]))
def test_any_object_has_a_counterpart_or_a_reason(document: JsonObject, kind: Kind) -> None:
    found = counterpart(RealmObject(kind, ("a", "b", "table", "TABLE_LIST", "c"), document))
    assert found.object is not None or all(reason for _, reason in found.left_out)


def _page(number: int, **more: JsonValue) -> bytes:
    return json.dumps({"namespaces": [[f"n{number}"]], **more}).encode()


class Endless:
    """A server whose list of namespaces has no end, with a new token on each page, or the same."""

    def __init__(self, *, repeated: bool) -> None:
        self.repeated, self.count = repeated, 0

    async def __call__(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        self.count += 1
        if "/config" in target:
            return 200, b'{"defaults": {}, "overrides": {}}'
        return 200, _page(self.count, **{"next-page-token": "same" if self.repeated else str(self.count)})


async def test_an_answer_that_is_too_large_is_requested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_server, "MAX_ANSWER_BYTES", 1_000)
    requested: list[str] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        requested.append(request.path)
        return web.Response(body=b"x" * 10_000)

    async with stub_server(handle) as stub, open_foreign_server(stub.uri, None, {}) as server:
        with pytest.raises(CliError, match="no complete answer"):
            await server.exchange("GET", "/big", {}, b"")

    assert requested == ["/big"]


async def test_pages_without_end_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_source, "MAX_PAGES", 50)
    endless = Endless(repeated=False)
    with pytest.raises(CliError, match="more than 50 pages"):
        await found_in(RestSource(endless, "w"))
    assert endless.count == 51
    repeating = Endless(repeated=True)
    with pytest.raises(CliError, match="repeats a page token"):
        await found_in(RestSource(repeating, "w"))
    assert repeating.count == 3


async def test_names_without_end_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_source, "MAX_NAMES", 20)
    with pytest.raises(CliError, match="more than 20 names"):
        await found_in(RestSource(Endless(repeated=False), "w"))


async def test_a_server_that_nests_namespaces_for_ever_ends() -> None:
    async def deeper(method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        if "/config" in target:
            return 200, b'{"defaults": {}, "overrides": {}}'
        depth = target.count("%1F") + 1 if "parent=" in target else 0
        listed: JsonValue = [["n"] * (depth + 1), ["n"] * depth, ["m"] * (depth + 2)]
        return 200, json.dumps({"namespaces": listed, "identifiers": []}).encode()

    source = RestSource(deeper, "w")
    namespaces = [namespace async for namespace in source.namespaces()]
    assert max(map(len, namespaces)) == rest_source.MAX_LEVELS
    assert len(namespaces) == rest_source.MAX_LEVELS


async def test_a_realm_with_too_many_objects_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realm_objects, "MAX_OBJECTS", 5)

    async def many(method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        names: JsonValue = [{"name": f"n{place}"} for place in range(9)]
        return 200, json.dumps({"principals": names, "roles": names, "catalogs": [], "grants": []}).encode()

    with pytest.raises(CliError, match="more than 5 objects"):
        await read_realm(ApiClient(many), [])
