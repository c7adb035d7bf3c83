"""Names of any shape reach the catalog as they are meant, on every route."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast
from urllib.parse import quote

import pytest

from arco_catalog.http.app import create_app
from arco_catalog.http.names import MAX_LEVELS, MAX_NAME_BYTES
from arco_catalog.iceberg.json import JsonValue
from tests.support.http_service import HttpService
from tools.support.asgi_client import Client, scope_of
from tools.support.request_bodies import scan_report, schema, set_property, view_request

ODD_NAMES = [
    "a/b",
    "a.b",
    "100%",
    "%2F",
    "%252F",
    "two words",
    " ",
    "a+b",
    "+",
    "ünïcödé",
    "表",
    "🧊",
    "e\u0301",
    "?",
    "#",
    "a?b#c",
    "q\"u'o`te",
    "back\\slash",
    "...",
    "a:b",
    "a;b=c",
    "a&b",
    "tables",
    "namespaces",
    "register",
    "*",
    "~",
    "x" * MAX_NAME_BYTES,
    "ü" * (MAX_NAME_BYTES // 2),
    "\u200f",
    "\ufeff",
]


def encoded(name: str) -> str:
    return quote(name, safe="")


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_an_odd_name_works_on_every_route(empty_service: HttpService, name: str) -> None:
    client, segment = empty_service.client, encoded(name)
    nested = f"{segment}%1F{segment}"
    for levels, path in (([name], segment), ([name, name], nested)):
        made = await client.post("/v1/wh/namespaces", {"namespace": [*levels]})
        assert made.json["namespace"] == levels
        assert (await client.head(f"/v1/wh/namespaces/{path}")).status == 204
        assert (await client.get(f"/v1/wh/namespaces/{path}")).json["namespace"] == levels
    assert (await client.get("/v1/wh/namespaces")).json["namespaces"] == [[name]]
    assert (await client.get(f"/v1/wh/namespaces?parent={segment}")).json["namespaces"] == [[name, name]]
    updated = await client.post(f"/v1/wh/namespaces/{nested}/properties", {"updates": {name: name}})
    assert updated.json["updated"] == [name]

    tables = f"/v1/wh/namespaces/{nested}/tables"
    identifier = {"namespace": [name, name], "name": name}
    made = await client.post(tables, {"name": name, "schema": schema("x")})
    assert made.status == 200, made.body
    assert (await client.get(tables)).json["identifiers"] == [identifier]
    assert (await client.head(f"{tables}/{segment}")).status == 204
    assert (await client.get(f"{tables}/{segment}")).json["metadata-location"] == made.json["metadata-location"]
    committed = await client.post(f"{tables}/{segment}", {**set_property("k", "v"), "identifier": identifier})
    assert committed.status == 200, committed.body
    assert (await client.post(f"{tables}/{segment}/metrics", scan_report())).status == 204
    elsewhere = {"namespace": [name], "name": name}
    renamed = await client.post("/v1/wh/tables/rename", {"source": identifier, "destination": elsewhere})
    assert renamed.status == 204, renamed.body
    assert (await client.delete(f"/v1/wh/namespaces/{segment}/tables/{segment}")).status == 204
    again = {"name": name, "metadata-location": committed.json["metadata-location"]}
    registered = await client.post(f"/v1/wh/namespaces/{nested}/register", again)
    assert registered.status == 200, registered.body
    assert (await client.delete(f"{tables}/{segment}")).status == 204
    for path in (nested, segment):
        assert (await client.delete(f"/v1/wh/namespaces/{path}")).status == 204
    assert (await client.get("/v1/wh/namespaces")).json["namespaces"] == []


async def test_a_plus_is_a_space_in_a_path_as_in_a_query(empty_service: HttpService) -> None:
    client = empty_service.client
    for name in ("a+b", "a b"):
        await client.post("/v1/wh/namespaces", {"namespace": [name]})
        await client.post("/v1/wh/namespaces", {"namespace": [name, "inner"]})

    assert (await client.get("/v1/wh/namespaces/a+b")).json["namespace"] == ["a b"]
    assert (await client.get("/v1/wh/namespaces/a%2Bb")).json["namespace"] == ["a+b"]
    assert (await client.get("/v1/wh/namespaces?parent=a+b")).json["namespaces"] == [["a b", "inner"]]
    assert (await client.get("/v1/wh/namespaces?parent=a%2Bb")).json["namespaces"] == [["a+b", "inner"]]


async def test_a_slash_is_data_only_when_it_is_encoded(service: HttpService) -> None:
    await service.table("a/b")

    assert (await service.client.get("/v1/wh/namespaces/db/tables/a%2Fb")).status == 200
    assert (await service.client.get("/v1/wh/namespaces/db/tables/a%2fb")).status == 200
    assert (await service.client.get("/v1/wh/namespaces/db/tables/a/b")).error_type == "NotFoundException"


async def test_a_path_is_decoded_once(service: HttpService) -> None:
    await service.table("%41")

    assert (await service.client.head("/v1/wh/namespaces/db/tables/%2541")).status == 204
    assert (await service.client.head("/v1/wh/namespaces/db/tables/A")).status == 404


@pytest.mark.parametrize("segment", ["%", "%2", "%zz", "a%", "%ff", "%c3", "%c3%28", "%ed%a0%80", "%u0041"])
@pytest.mark.parametrize("where", ["namespaces/{}", "namespaces/db/tables/{}", "namespaces?parent={}", "{}"])
async def test_what_does_not_decode_is_refused(client: Client, where: str, segment: str) -> None:
    answer = await client.get(f"/v1/wh/{where.format(segment)}")

    assert (answer.status, answer.error_type) == (400, "BadRequestException")


REFUSED = [
    ("", "empty"),
    (".", "must not be '.'"),
    ("..", "must not be '..'"),
    ("a\nb", "control"),
    ("\x00", "control"),
    ("\x7f", "control"),
    ("\x85", "control"),
    ("x" * (MAX_NAME_BYTES + 1), "256 bytes"),
    ("ü" * 128, "256 bytes"),
]


@pytest.mark.parametrize(("name", "why"), REFUSED)
async def test_names_that_are_never_allowed_are_refused_in_paths_and_bodies(
    client: Client, name: str, why: str
) -> None:
    segment = encoded(name)
    identifier = {"namespace": ["db"], "name": name}
    body = {"name": name, "schema": schema("x")}
    answers = [
        await client.post("/v1/wh/namespaces", {"namespace": [name]}),
        await client.post("/v1/wh/namespaces", {"namespace": ["db", name]}),
        await client.delete(f"/v1/wh/namespaces/db%1F{segment}"),
        await client.get(f"/v1/wh/namespaces/{segment}/tables"),
        await client.get(f"/v1/wh/namespaces?parent=db%1F{segment}"),
        await client.post(f"/v1/wh/namespaces/{segment}/tables", body),
        await client.post("/v1/wh/namespaces/db/tables", body),
        await client.post(f"/v1/wh/namespaces/db/tables/{segment}/metrics", scan_report()),
        await client.post("/v1/wh/namespaces/db/register", {"name": name, "metadata-location": "s3://b/m.json"}),
        await client.post("/v1/wh/tables/rename", {"source": identifier, "destination": identifier}),
    ]
    if name:  # an empty last segment is the collection
        answers += [
            await client.get(f"/v1/wh/namespaces/{segment}"),
            await client.get(f"/v1/wh/namespaces/db/tables/{segment}"),
            await client.delete(f"/v1/wh/namespaces/db/tables/{segment}"),
            await client.post(f"/v1/wh/namespaces/db/tables/{segment}", set_property("k", "v")),
        ]
    for answer in answers:
        assert (answer.status, answer.error_type) == (400, "BadRequestException")
        assert why in answer.message


async def test_a_namespace_has_at_most_sixteen_levels(empty_service: HttpService) -> None:
    client = empty_service.client
    for depth in range(1, MAX_LEVELS + 1):
        assert (await client.post("/v1/wh/namespaces", {"namespace": ["n"] * depth})).status == 200

    too_deep = await client.post("/v1/wh/namespaces", {"namespace": ["n"] * (MAX_LEVELS + 1)})
    assert (too_deep.status, too_deep.error_type) == (400, "BadRequestException")
    assert "1 to 16 levels, not 17" in too_deep.message
    assert (await client.get("/v1/wh/namespaces/" + "%1F".join(["n"] * MAX_LEVELS))).status == 200
    assert (await client.get("/v1/wh/namespaces/" + "%1F".join(["n"] * (MAX_LEVELS + 1)))).status == 400
    assert (await client.post("/v1/wh/namespaces", {"namespace": []})).status == 400


async def test_the_advertised_separator_and_the_unit_separator_both_work(
    service_with: Callable[..., HttpService],
) -> None:
    service = service_with(namespace_separator=".")
    await service.namespace("a", "a")
    await service.namespace("a.b", "a", "b")
    client = service.client

    config = (await client.get("/v1/config")).json
    assert config["overrides"] == {"prefix": "wh", "namespace-separator": "."}
    for path in ("a.b", "a%1Fb", "a%2Eb"):
        assert (await client.get(f"/v1/wh/namespaces/{path}")).json["namespace"] == ["a", "b"]
        assert (await client.get(f"/v1/wh/namespaces?parent={path}")).status == 200
    refused = await client.post("/v1/wh/namespaces", {"namespace": ["x.y"]})
    assert "namespace separator '.'" in refused.message


async def test_a_separator_with_a_meaning_in_paths_is_advertised_encoded(
    service_with: Callable[..., HttpService],
) -> None:
    service = service_with(namespace_separator="/")
    await service.namespace("a", "a")
    await service.namespace("a%2Fb", "a", "b")

    overrides = (await service.client.get("/v1/config")).json["overrides"]
    assert overrides == {"prefix": "wh", "namespace-separator": "%2F"}


async def test_a_server_without_raw_paths_is_served_as_well_as_can_be(service: HttpService) -> None:
    await service.table("two words%")
    scope = {**scope_of("GET", "/v1/wh/namespaces/db/tables/two%20words%25", {}), "raw_path": None}

    answer = await service.client.exchange(scope, [])

    assert answer.status == 200


@pytest.mark.parametrize(
    "path",
    ["", "*", "/", "//", "/v1", "/v1/", "/v1/wh", "/v1/config//", "/v1/wh/namespaces//", "/v1/wh/namespaces/db/"],
)
async def test_only_the_paths_of_the_table_exist(client: Client, path: str) -> None:
    answer = await client.get(path)

    assert (answer.status, answer.error_type) == (404, "NotFoundException")


@pytest.mark.parametrize(
    "collection",
    [
        "/v1/config",
        "/v1/namespaces",
        "/v1/wh/namespaces",
        "/v1/wh/namespaces/db/tables",
        "/v1/wh/namespaces/db/views",
        "/polaris/v1/wh/namespaces/db/generic-tables",
        "/polaris/v1/wh/namespaces/db/policies",
    ],
)
async def test_one_slash_behind_a_collection_is_passed_over(client: Client, collection: str) -> None:
    with_slash, without = await client.get(f"{collection}/"), await client.get(collection)

    assert (with_slash.status, with_slash.body) == (without.status, without.body) == (200, without.body)


async def test_a_generic_table_is_made_at_the_path_with_a_slash(client: Client) -> None:
    path = "/polaris/v1/wh/namespaces/db/generic-tables"

    assert (await client.post(f"{path}/", {"name": "g", "format": "delta"})).status == 200
    assert (await client.get(f"{path}/g")).status == 200


async def test_nothing_is_deleted_by_a_name_that_is_empty(client: Client) -> None:
    for path in ("/v1/wh/namespaces/", "/v1/wh/namespaces/db/tables/", "/v1/wh/namespaces/db/views/"):
        assert (await client.send("DELETE", path)).status == 405
    assert (await client.head("/v1/wh/namespaces/db/tables/t")).status == 204


UNROUTABLE = ["a/b", "?", "x#", "100%", "%2F"]


def creating_requests(name: str) -> list[tuple[str, object]]:
    """Every request that would give something this name."""
    new: dict[str, object] = {"name": name, "schema": schema("x")}
    elsewhere = {
        "source": {"namespace": ["db"], "name": "t"},
        "destination": {"namespace": ["db"], "name": name},
    }
    assert_create = {"requirements": [{"type": "assert-create"}], "updates": []}
    staged = {"identifier": {"namespace": ["db"], "name": name}, **assert_create}
    return [
        ("/v1/wh/namespaces", {"namespace": [name]}),
        ("/v1/wh/namespaces", {"namespace": ["db", name]}),
        ("/v1/wh/namespaces/db/tables", new),
        ("/v1/wh/namespaces/db/tables", {**new, "stage-create": True}),
        ("/v1/wh/namespaces/db/register", {"name": name, "metadata-location": "memory:///wh/1.metadata.json"}),
        ("/v1/wh/namespaces/db/views", view_request(name)),
        ("/v1/wh/namespaces/db/register-view", {"name": name, "metadata-location": "memory:///wh/1.metadata.json"}),
        ("/v1/wh/tables/rename", elsewhere),
        ("/v1/wh/views/rename", elsewhere),
        (f"/v1/wh/namespaces/db/tables/{encoded(name)}", assert_create),
        ("/v1/wh/transactions/commit", {"table-changes": [staged]}),
    ]


@pytest.mark.parametrize("name", UNROUTABLE)
async def test_behind_an_endpoint_that_decodes_paths_nothing_new_gets_a_name_that_is_lost(
    service_with: Callable[..., HttpService], name: str
) -> None:
    service = service_with(unroutable="/?#%")
    await service.namespace("db", "db")
    await service.table("t")

    for target, body in creating_requests(name):
        answer = await service.client.post(target, body)
        assert (answer.status, answer.error_type) == (400, "BadRequestException"), target
        assert "must not contain" in answer.message
        assert "REST API or a function URL" in answer.message
    assert (await service.client.get("/v1/wh/namespaces")).json["namespaces"] == [["db"]]
    assert (await service.client.get("/v1/wh/namespaces?parent=db")).json["namespaces"] == []
    assert (await service.client.get("/v1/wh/namespaces/db/tables")).json["identifiers"] == [
        {"namespace": ["db"], "name": "t"}
    ]


@pytest.mark.parametrize("name", UNROUTABLE)
async def test_what_has_such_a_name_already_keeps_it(service: HttpService, name: str) -> None:
    await service.table(name)
    service.options = replace(service.options, unroutable="/?#%")
    client = service.serve()
    identifier, renamed = {"namespace": ["db"], "name": name}, {"namespace": ["db"], "name": "plain"}

    assert identifier in cast(list[JsonValue], (await client.get("/v1/wh/namespaces/db/tables")).json["identifiers"])
    assert (await client.get(f"/v1/wh/namespaces/db/tables/{encoded(name)}")).status == 200
    committed = await client.post(f"/v1/wh/namespaces/db/tables/{encoded(name)}", set_property("k", "v"))
    assert committed.status == 200
    answer = await client.post("/v1/wh/tables/rename", {"source": identifier, "destination": renamed})
    assert answer.status == 204


@pytest.mark.parametrize("name", ["\u2028", "\u202edb", "a\u2066b", "a\u202c"])
async def test_nothing_new_gets_a_name_that_turns_the_direction_of_writing(service: HttpService, name: str) -> None:
    for target, body in creating_requests(name):
        answer = await service.client.post(target, body)
        assert (answer.status, answer.error_type) == (400, "BadRequestException"), target
        assert "must not contain the character U+20" in answer.message
    # A name that an earlier version allowed is still found.
    assert (await service.client.get(f"/v1/wh/namespaces/db/tables/{encoded(name)}")).status == 404


async def test_a_path_may_lack_the_prefix_where_there_is_one_warehouse(service: HttpService) -> None:
    key = service.key()
    created = await service.client.post(
        "/v1/namespaces/db/tables", {"name": "u", "schema": schema("x")}, idempotency_key=key
    )
    again = await service.client.post(
        "/v1/wh/namespaces/db/tables", {"name": "u", "schema": schema("x")}, idempotency_key=key
    )

    assert created.status == 200
    assert again.json["metadata-location"] == created.json["metadata-location"]
    assert (await service.client.get("/v1/namespaces")).json["namespaces"] == [["db"]]
    assert (await service.client.delete("/v1/namespaces/db/tables/u?purgeRequested=False")).status == 204
    assert (await service.client.get("/v1/wh/namespaces/db/tables/u")).status == 404


async def test_a_path_without_a_prefix_is_a_bad_request_where_there_are_several_warehouses(
    service: HttpService,
) -> None:
    client = Client(create_app({"wh": service.catalog(), "other": service.catalog()}))

    answer = await client.get("/v1/namespaces/db")

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
