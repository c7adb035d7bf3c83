"""The releases of Spark that tests run, each in an environment of its own, and the releases of Iceberg for them."""

import sys
from dataclasses import dataclass

from arco_catalog.cli.client_config import ICEBERG, SCALA_OF_SPARK, SPARK
from tools.support.environment import PROJECT


@dataclass(frozen=True)
class Spark:
    """A Spark in an environment, by its two numbers, and the release of Iceberg that it uses."""

    version: str
    iceberg: str = ICEBERG

    @property
    def environment(self) -> str:
        """The folder of the environment, in the project: the newest Spark is in the one that runs the tests."""
        return ".venv" if self.version == SPARK else f".venv-spark-{self.version}"

    @property
    def jar(self) -> str:
        """Iceberg for it, in the folder `.jars`."""
        return f"iceberg-spark-runtime-{self.version}_{SCALA_OF_SPARK[self.version]}-{self.iceberg}.jar"

    @property
    def python(self) -> str:
        """Its Python."""
        return sys.executable if self.version == SPARK else str(PROJECT / self.environment / "bin" / "python")

    @property
    def files(self) -> tuple[str, str]:
        """What must have been fetched for it, as paths in the project."""
        return f"{self.environment}/bin/python", f".jars/{self.jar}"
