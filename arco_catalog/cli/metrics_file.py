"""Writes the metrics of a job that ends, such as a run of the reconciler, to a file, which the textfile collector of
Prometheus's node_exporter reads."""

import errno
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

from arco_catalog.cli.errors import CliError
from arco_catalog.cli.small_files import replace_file
from arco_catalog.telemetry.collectors import Collectors, count_in_memory
from arco_catalog.telemetry.metrics import Metric

MODE = 0o644
"""The permissions of the file: node_exporter runs as another user."""


@dataclass(frozen=True, slots=True)
class MetricsFile:
    """The file for the metrics of a job. `store` is the label of all of them."""

    path: Path
    store: str

    def check(self) -> None:
        """Raises `CliError` if no file can be written in the folder of the file, or its path is that of a folder.
        Leaves nothing there."""
        try:
            if self.path.is_dir():
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
            with tempfile.TemporaryFile(dir=self.path.parent):
                pass
        except OSError as error:
            raise self._not_written(error) from error

    def write(self, metrics: Sequence[Metric], values: Mapping[str, float]) -> None:
        """Replaces the file by one with these metrics, with their values by the names for Prometheus, which every user
        may read. A reader gets the old or the new one, and never a part. All later collectors of this process count in
        memory. Raises `CliError` if the file can't be written."""
        count_in_memory()
        registry = CollectorRegistry()
        collectors = Collectors(metrics, registry)
        for name, value in values.items():
            collectors.gauge(name).labels(self.store).set(value)
        try:
            replace_file(self.path, generate_latest(registry), MODE)
        except OSError as error:
            raise self._not_written(error) from error

    def _not_written(self, error: OSError) -> CliError:
        """Returns the error for a file that can't be written."""
        return CliError(f"cannot write the metrics to {self.path}: {error.strerror}")
