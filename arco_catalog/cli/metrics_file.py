"""Writes the metrics of a job that ends, such as a run of the reconciler, to a file, which the textfile collector of
Prometheus's node_exporter reads."""

import errno
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from arco_catalog.cli.errors import CliError
from arco_catalog.cli.small_files import replace_file
from arco_catalog.telemetry.collectors import Collectors, count_in_memory
from arco_catalog.telemetry.metrics import Metric

MODE = 0o644
"""The permissions of the file: node_exporter runs as another user."""


def check_metrics_file(path: Path) -> None:
    """Raises `CliError` if no file can be written in the folder of `path`, or `path` is a folder. Leaves nothing
    there."""
    try:
        if path.is_dir():
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise _not_written(path, error) from error


def write_metrics(path: Path, metrics: Sequence[Metric], values: Mapping[str, float]) -> None:
    """Replaces the file by one with these metrics, with their values by the names for Prometheus, which every user may
    read. A reader gets the old or the new one, and never a part. Raises `CliError` if it can't be written."""
    count_in_memory()
    registry = CollectorRegistry()
    collectors = Collectors(metrics, registry)
    for name, value in values.items():
        collectors.gauge(name).set(value)
    try:
        replace_file(path, generate_latest(registry), MODE)
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> CliError:
    return CliError(f"cannot write the metrics to {path}: {error.strerror}")
