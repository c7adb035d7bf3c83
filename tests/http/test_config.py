"""The configuration that a client requests first."""

from collections.abc import Callable, Mapping

import pytest

from arco_catalog.http.app import create_app
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.route import Effect, Route
from arco_catalog.http.routes import GOVERNANCE, INSPECTION, PROPOSED, ROUTES
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.key_settings import Dialect
from tests.http.specification import Endpoint, polaris_endpoints, sources
from tests.http.templates import path_of
from tests.support.http_service import HttpService
from tests.support.realm_service import RealmApp
from tools.support.asgi_client import Answer, Client

KEYED_ALL_THE_SAME = {"POST /v1/{prefix}/namespaces/{namespace}/views"}
"""Changes that the specification forgot to give a key; its reference implementation takes one."""
KEY_NOT_RECORDED = {
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan",
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks",
}
"""Requests that change nothing, to which the specification gives a key: it is accepted, and has no effect."""
SPELT_BY_POLARIS = [
    "GET polaris/v1/{prefix}/namespaces/{namespace}/generic-tables",
    "POST polaris/v1/{prefix}/namespaces/{namespace}/generic-tables",
    "GET polaris/v1/{prefix}/namespaces/{namespace}/generic-tables/{generic-table}",
    "DELETE polaris/v1/{prefix}/namespaces/{namespace}/generic-tables/{generic-table}",
]
"""The endpoints in the spelling of Polaris's own server, which its plugin for Spark expects."""
ADVERTISED = [route for route in ROUTES if route.advertised]
OURS = (*GOVERNANCE, *INSPECTION, *PROPOSED)
OF_ICEBERG = [route for route in ADVERTISED if route.endpoint not in polaris_endpoints() and route not in OURS]


def prefix(answer: Answer) -> JsonValue:
    """The path prefix that a configuration names."""
    overrides = answer.json["overrides"]
    assert isinstance(overrides, dict)
    return overrides["prefix"]


async def test_the_whole_configuration_is_pinned(client: Client) -> None:
    answer = await client.get("/v1/config?warehouse=wh")

    assert answer.status == 200
    assert answer.json == {
        "defaults": {},
        "overrides": {"prefix": "wh", "namespace-separator": "%1F"},
        "endpoints": [
            "GET /v1/config",
            "GET /v1/{prefix}/namespaces",
            "POST /v1/{prefix}/namespaces",
            "GET /v1/{prefix}/namespaces/{namespace}",
            "HEAD /v1/{prefix}/namespaces/{namespace}",
            "DELETE /v1/{prefix}/namespaces/{namespace}",
            "POST /v1/{prefix}/namespaces/{namespace}/properties",
            "GET /v1/{prefix}/namespaces/{namespace}/tables",
            "POST /v1/{prefix}/namespaces/{namespace}/tables",
            "POST /v1/{prefix}/namespaces/{namespace}/register",
            "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
            "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
            "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
            "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}",
            "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
            "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan",
            "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}",
            "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}",
            "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks",
            "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister",
            "POST /v1/{prefix}/tables/rename",
            "POST /v1/{prefix}/transactions/commit",
            "GET /v1/{prefix}/namespaces/{namespace}/views",
            "POST /v1/{prefix}/namespaces/{namespace}/views",
            "POST /v1/{prefix}/namespaces/{namespace}/register-view",
            "GET /v1/{prefix}/namespaces/{namespace}/views/{view}",
            "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}",
            "POST /v1/{prefix}/namespaces/{namespace}/views/{view}",
            "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}",
            "POST /v1/{prefix}/views/rename",
            "GET /v1/{prefix}/namespaces/{namespace}/functions",
            "GET /v1/{prefix}/namespaces/{namespace}/functions/{function}",
            "GET /v1/{prefix}/namespaces/{namespace}/governance",
            "POST /v1/{prefix}/namespaces/{namespace}/governance",
            "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/governance",
            "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/governance",
            "GET /v1/{prefix}/namespaces/{namespace}/views/{view}/governance",
            "POST /v1/{prefix}/namespaces/{namespace}/views/{view}/governance",
            "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/timeline",
            "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/timeline/{version}",
            "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/compare",
            "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/lineage",
            "GET /v1/{prefix}/namespaces/{namespace}/views/{view}/timeline",
            "GET /v1/{prefix}/namespaces/{namespace}/views/{view}/timeline/{version}",
            "GET /v1/{prefix}/namespaces/{namespace}/views/{view}/compare",
            "POST /v1/{prefix}/resolve",
            "POST /v1/{prefix}/events",
            "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/notifications",
            "GET /polaris/v1/{prefix}/namespaces/{namespace}/generic-tables",
            "POST /polaris/v1/{prefix}/namespaces/{namespace}/generic-tables",
            "GET /polaris/v1/{prefix}/namespaces/{namespace}/generic-tables/{generic-table}",
            "DELETE /polaris/v1/{prefix}/namespaces/{namespace}/generic-tables/{generic-table}",
            "GET /polaris/v1/{prefix}/namespaces/{namespace}/semantic-models",
            "POST /polaris/v1/{prefix}/namespaces/{namespace}/semantic-models",
            "GET /polaris/v1/{prefix}/namespaces/{namespace}/semantic-models/{semantic-model-name}",
            "PUT /polaris/v1/{prefix}/namespaces/{namespace}/semantic-models/{semantic-model-name}",
            "DELETE /polaris/v1/{prefix}/namespaces/{namespace}/semantic-models/{semantic-model-name}",
            "GET /polaris/v1/{prefix}/namespaces/{namespace}/policies",
            "POST /polaris/v1/{prefix}/namespaces/{namespace}/policies",
            "GET /polaris/v1/{prefix}/namespaces/{namespace}/policies/{policy-name}",
            "PUT /polaris/v1/{prefix}/namespaces/{namespace}/policies/{policy-name}",
            "DELETE /polaris/v1/{prefix}/namespaces/{namespace}/policies/{policy-name}",
            "PUT /polaris/v1/{prefix}/namespaces/{namespace}/policies/{policy-name}/mappings",
            "POST /polaris/v1/{prefix}/namespaces/{namespace}/policies/{policy-name}/mappings",
            "GET /polaris/v1/{prefix}/applicable-policies",
            *SPELT_BY_POLARIS,
        ],
        "resolve-max-items": 100,
        "idempotency-key-lifetime": "PT30M",
    }


async def test_the_polaris_dialect_has_a_property_for_the_support_of_keys(
    service_with: Callable[..., HttpService],
) -> None:
    config = (await service_with(dialect=Dialect.POLARIS).client.get("/v1/config?warehouse=wh")).json

    assert config["properties"] == {"idempotency-key-supported": "true", "idempotency-key-lifetime": "PT30M"}
    assert config["idempotency-key-lifetime"] == "PT30M"


@pytest.mark.parametrize(("milliseconds", "lifetime"), [(1_000, "PT1S"), (5_400_000, "PT1H30M"), (86_400_000, "PT24H")])
async def test_the_lifetime_of_keys_is_the_operators(
    milliseconds: int, lifetime: str, service_with: Callable[..., HttpService]
) -> None:
    client = service_with(dialect=Dialect.POLARIS, key_lifetime_ms=milliseconds).client
    answer = (await client.get("/v1/config?warehouse=wh")).json

    assert answer["idempotency-key-lifetime"] == lifetime
    assert answer["properties"] == {"idempotency-key-supported": "true", "idempotency-key-lifetime": lifetime}


async def test_a_server_without_keys_advertises_no_lifetime(service_with: Callable[..., HttpService]) -> None:
    for dialect in Dialect:
        answer = (await service_with(dialect=dialect, keys_enabled=False).client.get("/v1/config?warehouse=wh")).json

        assert "idempotency-key-lifetime" not in answer
        of_polaris = {"properties": {"idempotency-key-supported": "false"}} if dialect is Dialect.POLARIS else {}
        assert {name: answer[name] for name in ("properties",) if name in answer} == of_polaris


async def test_the_endpoints_listed_are_the_routes_served(client: Client) -> None:
    listed = (await client.get("/v1/config")).json["endpoints"]

    assert listed == [*(f"{route.method} {route.template}" for route in ADVERTISED), *SPELT_BY_POLARIS]


@pytest.mark.parametrize("specified", sources().values(), ids=sources().keys())
class TestAgainstTheSpecification:
    def test_every_advertised_route_is_in_it(self, specified: Mapping[str, Endpoint]) -> None:
        assert {route.endpoint for route in OF_ICEBERG} <= set(specified)

    def test_the_stored_extract_equals_the_specification(self, specified: Mapping[str, Endpoint]) -> None:
        assert specified == sources()["extract"]

    @pytest.mark.parametrize("route", OF_ICEBERG, ids=lambda route: route.endpoint)
    def test_a_route_takes_a_key_if_the_specification_has_one(
        self, route: Route, specified: Mapping[str, Endpoint]
    ) -> None:
        takes_key = specified[route.endpoint].takes_key or route.endpoint in KEYED_ALL_THE_SAME
        assert (route.effect is not Effect.READS) == (takes_key and route.endpoint not in KEY_NOT_RECORDED)

    @pytest.mark.parametrize("route", OF_ICEBERG, ids=lambda route: route.endpoint)
    def test_an_outcome_may_be_unknown_if_the_specification_has_that_error(
        self, route: Route, specified: Mapping[str, Endpoint]
    ) -> None:
        assert route.commits == specified[route.endpoint].may_be_unknown

    async def test_what_is_not_advertised_is_not_served(
        self, specified: Mapping[str, Endpoint], client: Client
    ) -> None:
        absent = set(specified) - {route.endpoint for route in ADVERTISED}
        assert absent
        for endpoint in sorted(absent):
            method, template = endpoint.split(" ")
            answer = await client.send(method, path_of(template), b"{}")
            assert answer.status in (400, 404, 405, 406), endpoint


def test_polaris_routes_are_those_of_its_specifications() -> None:
    of_polaris = {route.endpoint: route for route in ADVERTISED if route not in (*OF_ICEBERG, *OURS)}

    assert of_polaris.keys() == polaris_endpoints().keys()
    assert all((route.effect is Effect.READS) == (route.method == "GET") for route in of_polaris.values())


@pytest.mark.parametrize("query", ["", "?warehouse=", "?warehouse=wh"])
async def test_the_only_warehouse_is_the_default(client: Client, query: str) -> None:
    assert prefix(await client.get(f"/v1/config{query}")) == "wh"


async def test_an_unknown_warehouse_is_not_found(client: Client) -> None:
    answer = await client.get("/v1/config?warehouse=s3%3A%2F%2Fbucket%2Fother")

    assert (answer.status, answer.error_type) == (404, "NoSuchWarehouseException")
    assert answer.message == "Warehouse does not exist: s3://bucket/other"


async def test_several_warehouses_have_different_prefixes(empty_service: HttpService) -> None:
    client = Client(create_app({"one": HttpService().catalog(), "two/%": HttpService().catalog()}))

    answer = await client.get("/v1/config?warehouse=two%2F%25")
    assert prefix(answer) == "two%2F%25"
    await client.post("/v1/two%2F%25/namespaces", {"namespace": ["db"]})

    assert (await client.get("/v1/two%2F%25/namespaces")).json["namespaces"] == [["db"]]
    assert (await client.get("/v1/one/namespaces")).json["namespaces"] == []
    assert (await client.get("/v1/config")).error_type == "BadRequestException"


async def test_the_default_among_several_is_the_operators_choice() -> None:
    warehouses = {"one": HttpService().catalog(), "two": HttpService().catalog()}
    client = Client(create_app(warehouses, HttpOptions(default_warehouse="two")))

    assert prefix(await client.get("/v1/config")) == "two"


async def test_an_unknown_prefix_is_an_unknown_warehouse(client: Client) -> None:
    answer = await client.get("/v1/other/namespaces")

    assert (answer.status, answer.error_type) == (404, "NoSuchWarehouseException")


async def test_health_sends_no_request_to_the_store(service_with: Callable[..., HttpService]) -> None:
    service = service_with(health=True)
    service.store.get = None  # type: ignore[method-assign,assignment]  # a request to the store would fail
    client = service.serve(read_only_because="the store ignores If-Match")

    answer, head = await client.get("/health"), await client.head("/health")

    warehouses = [{"name": "wh", "read_only_because": "the store ignores If-Match"}]
    assert (answer.status, answer.json) == (200, {"status": "ok", "warehouses": warehouses})
    assert (head.status, head.body) == (200, b"")


async def test_health_is_served_only_if_the_option_is_set(client: Client) -> None:
    assert (await client.get("/health")).status == 404


async def test_the_properties_of_files_are_for_people_and_no_defaults_of_clients() -> None:
    service = HttpService(options=HttpOptions(file_io={"s3.region": "eu-central-1"}))

    answer = (await service.client.get("/v1/config?warehouse=wh")).json

    assert (answer["file-io"], answer["defaults"]) == ({"s3.region": "eu-central-1"}, {})


@pytest.mark.parametrize(
    ("storage", "properties"),
    [
        ({"region": "eu-west-3"}, {"client.region": "eu-west-3", "s3.region": "eu-west-3"}),
        ({}, {"s3.region": "us-east-1"}),
    ],
)
async def test_a_catalog_with_a_region_of_its_own_names_that(storage: JsonObject, properties: JsonObject) -> None:
    options = HttpOptions(file_io={"s3.region": "us-east-1"})
    app = await RealmApp(options=options, url="s3://lake").start()
    await app.catalog("lake", storage={"storageType": "S3", **storage})

    assert (await app.root.get("/v1/config?warehouse=lake")).json["file-io"] == properties
