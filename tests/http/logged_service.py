"""Services that log their requests, and what they logged."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from arco_catalog.http.app import create_app
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.telemetry.lines import JsonLines
from arco_catalog.telemetry.telemetry import Exporter, Telemetry
from tests.support.http_service import HttpService
from tools.support.asgi_client import Client

NAMESPACE = "ArcoCatalog"


@dataclass
class LoggedService(HttpService):
    """A service that keeps the log line of each request."""

    exporters: Sequence[Exporter] = ()
    lines: list[str] = field(default_factory=list)

    def serve(self, **settings: object) -> Client:
        telemetry = Telemetry([*self.exporters, JsonLines(self.lines.append, NAMESPACE)], self.clock)
        return Client(create_app({"wh": self.catalog(**settings)}, self.options, telemetry))

    @property
    def parsed_lines(self) -> list[JsonObject]:
        """Each line, parsed."""
        parsed = [loads(line.encode()) for line in self.lines]
        return [line for line in parsed if isinstance(line, dict)]

    @property
    def last(self) -> JsonObject:
        """The line of the last request."""
        return self.parsed_lines[-1]

    def cost(self) -> tuple[object, object]:
        """(depth, calls) of the last request."""
        return self.last["StoreDepth"], self.last["StoreCalls"]
