"""Denials are logged and counted, by ids alone."""

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.telemetry.lines import JsonLines
from arco_catalog.telemetry.spans import Spans
from arco_catalog.telemetry.telemetry import Exporter, Telemetry
from tests.access.lake import DB, NAMESPACES, Lake, T
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import RealmApp, on_catalog, on_table
from tools.support.asgi_client import Client

SET: JsonObject = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}


class LoggedLake:
    """A catalog whose requests are logged to both sinks."""

    async def start(self) -> "LoggedLake":
        clock = FakeRuntime()
        self.lines: list[str] = []
        self.spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.spans))
        exporters: list[Exporter] = [Spans(provider.get_tracer("test")), JsonLines(self.lines.append, "ArcoCatalog")]
        self.app = RealmApp(clock=clock, telemetry=Telemetry(exporters, clock))
        self.lake = await Lake(self.app).start()
        loaded = await self.lake.manager.post(T, SET)
        location = str(loaded.json["metadata-location"])
        self.table = location.split("/t-")[1].split("/")[0]
        return self

    def denial(self) -> tuple[object, object, object]:
        """The denial in the line of the last request, which its span must equal: the privilege, the securable, the
        number."""
        line = loads(self.lines[-1].encode())
        assert isinstance(line, dict)
        span = next(span for span in reversed(self.spans.get_finished_spans()) if span.parent is None)
        attributes = span.attributes or {}
        denial = line.get("denied"), line.get("denied_on"), line["Denials"]
        assert (attributes.get("arco.denied"), attributes.get("arco.denied_on"), attributes["arco.denials"]) == denial
        assert line["principal"] != "anonymous"
        assert str(line["route"]).startswith(("/v1/{prefix}", "/api/management/v1"))
        return denial

    def client(self, name: str) -> Client:
        return self.app.client(name)


async def test_a_denial_names_the_privilege_and_the_securable() -> None:
    lake = await LoggedLake().start()
    reader = await lake.app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))

    assert (await reader.post(T, SET)).status == 403
    assert lake.denial() == ("TABLE_SET_PROPERTIES", f"table {lake.table}", 1)
    assert (await reader.get(f"{DB}/tables/missing")).status == 404
    assert lake.denial() == ("TABLE_READ_PROPERTIES", "table", 1)
    assert (await reader.post(NAMESPACES, {"namespace": ["n"]})).status == 403
    assert lake.denial() == ("NAMESPACE_CREATE", "catalog", 1)
    assert (await reader.get("/api/management/v1/principals")).status == 403
    assert lake.denial() == ("PRINCIPAL_LIST", "realm", 1)
    assert (await reader.get("/api/management/v1/catalogs/lake/catalog-roles")).status == 403
    assert lake.denial() == ("CATALOG_ROLE_LIST", "catalog", 1)
    stranger = await lake.app.principal("stranger")
    assert (await stranger.get(T)).status == 404
    assert lake.denial() == ("TABLE_READ_PROPERTIES", "catalog", 1)


async def test_what_is_allowed_is_no_denial_nor_is_what_does_not_exist() -> None:
    lake = await LoggedLake().start()
    assert (await lake.lake.manager.get(T)).status == 200
    assert lake.denial() == (None, None, 0)
    assert (await lake.lake.manager.get(f"{DB}/tables/absent")).status == 404
    assert lake.denial() == (None, None, 0)


async def test_a_denial_that_is_replayed_counts_once() -> None:
    lake = await LoggedLake().start()
    reader = await lake.app.principal("reader", on_catalog("TABLE_READ_DATA"))
    key = lake.app.key()
    assert (await reader.post(T, SET, idempotency_key=key)).status == 403
    assert lake.denial()[2] == 1
    assert (await reader.post(T, SET, idempotency_key=key)).status == 403


async def test_no_token_and_no_name_is_in_the_lines_and_spans_of_a_denial() -> None:
    lake = await LoggedLake().start()
    await lake.app.principal("hunter2", on_table("TABLE_READ_DATA", "db", "t"))
    token = "r/" + lake.app.ids["r", "hunter2"] + "/hunter2-role"
    client = Client(lake.app.app, {"authorization": f"Bearer {token}"})
    began = len(lake.lines)
    lake.spans.clear()

    assert (await client.post(T, SET)).status == 403
    assert (await client.get(f"{DB}/tables/hunter2")).status == 404
    assert (await client.get("/v1/hunter2/namespaces")).status == 404

    emitted = "\n".join([*lake.lines[began:], *(span.to_json() for span in lake.spans.get_finished_spans())])
    assert "hunter2" not in emitted
    assert "Bearer" not in emitted
