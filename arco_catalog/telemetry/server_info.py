"""The metrics of a server as a whole. This module is imported only by a server with a port for metrics."""

from importlib.metadata import version

from prometheus_client import CollectorRegistry

from arco_catalog.telemetry.collectors import Collectors
from arco_catalog.telemetry.metrics import OF_SERVERS


class ServerInfo:
    """The version of a server, the number of its processes that serve, and of its workers that died, in a Prometheus
    registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        collectors = Collectors(OF_SERVERS, registry)
        collectors.gauge("arco_build_info").labels(version("arco-catalog")).set(1)
        self.workers = collectors.gauge("arco_workers")
        self.deaths = collectors.counter("arco_worker_deaths_total")
