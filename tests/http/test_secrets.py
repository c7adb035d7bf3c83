"""Secrets planted wherever a request, a table or the environment has room for one: none appears in logs, metrics or
traces."""

import io
from collections.abc import Iterator, Mapping
from typing import NoReturn

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from arco_catalog.http import tables
from arco_catalog.http.app import App
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.route import Route
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.telemetry.lines import JsonLines, TextLines
from arco_catalog.telemetry.logs import configure_logging
from arco_catalog.telemetry.spans import Spans
from arco_catalog.telemetry.telemetry import Telemetry
from storage_backends import Found, StoreUnavailable
from tests.http.logged_service import LoggedService
from tests.support import loggers
from tools.support.asgi_client import Client
from tools.support.request_bodies import scan_report, schema, set_property, view_request

PLANTED = "hunter2"
"""Part of every secret, so that none is missed."""

DB = "/v1/wh/namespaces/db"

HEADERS: Mapping[str, str] = {
    "authorization": f"Bearer {PLANTED}-token",
    "proxy-authorization": f"Basic {PLANTED}",
    "cookie": f"session={PLANTED}",
    "x-amz-security-token": PLANTED,
    "x-iceberg-access-delegation": f"vended-credentials,{PLANTED}",
    "x-arco-admin-user": f"{PLANTED}@example.com",
    "x-request-id": f"{{{PLANTED}}}",
    "user-agent": f"PyIceberg/0.12 (token {PLANTED})",
    "traceparent": f"00-{PLANTED}",
    "tracestate": f"{PLANTED}={PLANTED}",
    "baggage": f"{PLANTED}={PLANTED}",
    "accept": PLANTED,
    "if-none-match": f'"{PLANTED}"',
    "x-forwarded-for": PLANTED,
}


class Emissions:
    """All log lines, metrics and spans that the server emitted."""

    def __init__(self, exporter: InMemorySpanExporter, log: io.StringIO) -> None:
        self.exporter = exporter
        self.log = log
        self.json_lines: list[str] = []
        self.text_lines: list[str] = []

    @property
    def whole(self) -> str:
        """All of it."""
        spans = [span.to_json() for span in self.exporter.get_finished_spans()]
        return "\n".join([*self.json_lines, *self.text_lines, *spans, self.log.getvalue()])


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the process logs, down to `debug`."""
    with loggers.restored():
        stream = io.StringIO()
        configure_logging(stream, "debug", json=True)
        yield stream


@pytest.fixture
def emissions(log: io.StringIO) -> Emissions:
    return Emissions(InMemorySpanExporter(), log)


@pytest.fixture
def telemetry(emissions: Emissions) -> Telemetry:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(emissions.exporter))
    lines = JsonLines(emissions.json_lines.append, "ArcoCatalog"), TextLines(emissions.text_lines.append)
    return Telemetry([Spans(provider.get_tracer("test")), *lines], LoggedService().clock)


@pytest.fixture
def service(telemetry: Telemetry) -> LoggedService:
    return LoggedService(exporters=telemetry._exporters)


def secret_table(name: str) -> JsonObject:
    """A CreateTableRequest with a secret in every text."""
    return {
        "name": name,
        "schema": {
            "type": "struct",
            "fields": [
                {
                    "id": 1,
                    "name": PLANTED,
                    "type": "string",
                    "required": False,
                    "doc": PLANTED,
                    "initial-default": PLANTED,
                }
            ],
        },
        "properties": {"s3.secret-access-key": PLANTED, PLANTED: "x", "comment": PLANTED, "format-version": "3"},
    }


async def test_no_secret_in_a_request_is_emitted(service: LoggedService, emissions: Emissions) -> None:
    client = Client(service.client.app, HEADERS)
    key = service.key()
    view = view_request("v")
    version = view["view-version"]
    assert isinstance(version, dict)
    representation: JsonObject = {"type": "sql", "sql": f"select '{PLANTED}'", "dialect": "spark"}
    secret: JsonObject = {**version, "representations": [representation], "summary": {"by": PLANTED}}
    view |= {"view-version": secret, "properties": {"token": PLANTED}}

    answers = [
        await client.post("/v1/wh/namespaces", {"namespace": ["db"], "properties": {"password": PLANTED}}),
        await client.post(f"{DB}/properties", {"updates": {"token": PLANTED}, "removals": [PLANTED]}),
        await client.post(f"{DB}/tables", secret_table("t"), idempotency_key=key),
        await client.post(f"{DB}/tables/t", set_property("fs.s3a.secret.key", PLANTED)),
        await client.post(f"{DB}/tables/t", set_property("token", f"{PLANTED}!"), idempotency_key=service.key()),
        await client.post(f"{DB}/views", view),
        await client.get(f"{DB}/tables/t?snapshots=all&token={PLANTED}"),
        await client.get(f"{DB}/views/v"),
        await client.get(f"/v1/config?warehouse=wh&token={PLANTED}"),
        await client.post(
            f"{DB}/tables/t/metrics", scan_report(PLANTED) | {"filter": {"type": "eq", "term": "x", "value": PLANTED}}
        ),
    ]

    assert [answer.status for answer in answers] == [200] * 9 + [204]
    assert len(emissions.json_lines) == len(emissions.text_lines) == 10
    assert PLANTED in str([answer.body for answer in answers])
    assert PLANTED not in emissions.whole
    assert key not in emissions.whole


async def test_no_secret_in_a_header_is_kept(service: LoggedService) -> None:
    """Except the name of an administrator, which receipts must contain."""
    client = Client(service.client.app, {name: text for name, text in HEADERS.items() if name != "x-arco-admin-user"})
    await client.post("/v1/wh/namespaces", {"namespace": ["db"]})
    await client.post(f"{DB}/tables", {"name": "t", "schema": schema("x")}, idempotency_key=service.key())
    assert (await client.post(f"{DB}/tables/t", set_property("a", "b"), idempotency_key=service.key())).status == 200

    bodies = [
        answer.body for key in service.store.keys("") if isinstance(answer := await service.store.get(key), Found)
    ]
    assert b"PyIceberg/0.12" in b"".join(bodies)
    assert PLANTED.encode() not in b"".join(bodies)


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("POST", f"{DB}/tables", f'{{"name": "{PLANTED}'.encode()),
        ("POST", f"{DB}/tables", f'["{PLANTED}"]'.encode()),
        ("POST", f"{DB}/tables", dumps({"name": "t", "schema": PLANTED})),
        ("POST", f"{DB}/tables", dumps({"name": "t", "schema": schema("x"), "location": f"s3://{PLANTED}/x"})),
        ("POST", f"{DB}/tables/t", dumps({"requirements": [{"type": PLANTED}], "updates": []})),
        ("POST", f"{DB}/tables/t", dumps({"requirements": [], "updates": [{"action": PLANTED}]})),
        ("POST", f"{DB}/register", dumps({"name": "r", "metadata-location": f"memory:///wh/warehouse/{PLANTED}.json"})),
        ("GET", f"{DB}/tables?pageToken={PLANTED}", b""),
        ("GET", f"{DB}/tables/t?snapshots={PLANTED}", b""),
        ("GET", f"/v1/config?warehouse={PLANTED}", b""),
        ("POST", "/v1/oauth/tokens", f"grant_type=client_credentials&client_secret={PLANTED}".encode()),
        (PLANTED.upper(), DB, b""),
    ],
)
async def test_no_secret_in_a_refused_request_is_emitted(
    service: LoggedService, emissions: Emissions, method: str, target: str, body: bytes
) -> None:
    await service.namespace("db", "db")

    answer = await Client(service.client.app, HEADERS).send(method, target, body, {"idempotency-key": PLANTED})

    assert 400 <= answer.status < 500, answer.body
    assert PLANTED not in emissions.whole.lower()


async def test_no_name_is_in_json_lines_or_spans(service: LoggedService, emissions: Emissions) -> None:
    """Names are in the text that people read while they work; lines of JSON, metrics and traces have ids."""
    await service.namespace(PLANTED, PLANTED)
    await service.client.post(f"/v1/wh/namespaces/{PLANTED}/tables", {"name": PLANTED, "schema": schema(PLANTED)})
    for target in (f"/v1/wh/namespaces/{PLANTED}/tables/{PLANTED}", f"/v1/{PLANTED}/namespaces", f"/{PLANTED}"):
        await service.client.get(target)

    assert len(emissions.json_lines) == 6
    assert PLANTED in "".join(emissions.text_lines)
    emissions.text_lines.clear()
    assert PLANTED not in emissions.whole


async def test_no_secret_in_an_internal_failure_is_emitted(
    service: LoggedService, emissions: Emissions, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def explode(context: RequestContext) -> NoReturn:
        raise RuntimeError(f"{dict(context.headers)}") from KeyError(PLANTED)

    async def unavailable(*_: object) -> object:
        raise StoreUnavailable("the store is gone")

    table = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    routes = [Route("GET", "/v1/{prefix}/x", explode), Route("GET", table, tables.load)]
    client = Client(App({"wh": service.catalog()}, HttpOptions(), routes, telemetry), HEADERS)
    monkeypatch.setattr(service.store, "get", unavailable)

    answers = [await client.get("/v1/wh/x"), await client.get(f"{DB}/tables/t")]

    assert [answer.status for answer in answers] == [500, 503]
    assert "RuntimeError" in emissions.log.getvalue()
    assert "explode" in emissions.log.getvalue()
    assert PLANTED not in emissions.whole
