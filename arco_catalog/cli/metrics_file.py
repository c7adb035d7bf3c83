"""Writes the metrics of a job that ends, such as a run of the reconciler, to a file, which the textfile collector of
Prometheus's node_exporter reads."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, write_to_textfile

from arco_catalog.cli.errors import CliError
from arco_catalog.telemetry.collectors import Collectors, count_in_memory
from arco_catalog.telemetry.metrics import Metric


def write_metrics(path: Path, metrics: Sequence[Metric], values: Mapping[str, float]) -> None:
    """Replaces the file by one with these metrics, with their values by the names for Prometheus. A reader gets the old
    or the new one, and never a part. Raises `CliError` if it can't be written."""
    count_in_memory()
    registry = CollectorRegistry()
    collectors = Collectors(metrics, registry)
    for name, value in values.items():
        collectors.gauge(name).set(value)
    try:
        write_to_textfile(str(path), registry)
    except OSError as error:
        raise CliError(f"cannot write the metrics to {path}: {error.strerror}") from error
