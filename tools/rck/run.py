"""Runs a release of the REST Compatibility Kit against a new `arco serve`, or against the deployed zip."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from arco_catalog.http.lambda_adapter import Endpoint
from tools import package
from tools.demo.engines import jars_of_store, spark_properties
from tools.demo.java import java_home
from tools.demo.server import WAREHOUSE, serving
from tools.gateway.running import running
from tools.rck import report
from tools.rck.kits import CANNOT_PASS, Kit, Server, Store
from tools.support.emulators import store_server
from tools.support.environment import exported

HERE = Path(__file__).parent
JARS = HERE.parents[1] / ".jars"
LIMIT_S = 300
CLOUD_URLS = {
    Store.S3: "s3://arco-rck/catalog",
    Store.GCS: "gs://arco-rck/catalog",
    Store.AZURE: "az://arco-rck/catalog",
}

# The strictest options that a correct server satisfies. The kit reads `rck.local` from JUnit's configuration, too.
OPTIONS = {
    "rck.local": "false",
    "rck.requires-namespace-create": "true",
    "rck.supports-names-with-dot": "true",
    "rck.supports-serverside-retry": "true",
    "rck.overrides-requested-location": "false",
}


@dataclass(frozen=True)
class Run:
    """The result of a run of the kit: the outcomes of its tests, a line for each fault, and how long it took."""

    outcomes: list[report.Outcome]
    faults: list[str]
    seconds: float


def run(kit: Kit, store: Store, scratch: Path, server: Server = Server.SERVE) -> Run:
    """Run the kit's tests of tables and views over a new store, with logs in `scratch`.

    Raises `LookupError` if the kit's jars or a JDK are missing, `RuntimeError` if the kit ends without a report, and
    `subprocess.TimeoutExpired` if it does not end within `LIMIT_S`.
    """
    temporary = scratch / "tmp"
    temporary.mkdir()
    # Tests of the kit choose locations by themselves: below /tmp, and in JUnit's temporary folders.
    allowed = exported({"ARCO_ALLOWED_LOCATIONS": f"file:///tmp,{temporary.as_uri()}"})
    with _store(store, scratch) as url, allowed, _served(server, kit.endpoint, url, scratch) as uri:
        properties = {"uri": uri, "warehouse": WAREHOUSE, "java.io.tmpdir": str(temporary)}
        # Without io-impl the client chooses by scheme. The store's own cannot write the `file:/tmp/...` of six tests.
        properties |= {name: value for name, value in spark_properties(url).items() if name != "io-impl"}
        began = time.perf_counter()
        outcomes = _execute(_jars(kit, url), OPTIONS | properties, scratch)
        seconds = time.perf_counter() - began
    return Run(outcomes, report.faults(kit, CANNOT_PASS[store], outcomes), seconds)


@contextmanager
def _served(server: Server, endpoint: Endpoint, store: str, scratch: Path) -> Iterator[str]:
    """Start a server for the catalog in a store, and yield its URI."""
    log = scratch / "server.log"
    if server is Server.SERVE:
        with serving(store, log) as running_server:
            yield running_server.uri
        return
    archive = scratch / "lambda.zip"
    package.build(archive)
    with running(archive, endpoint, log, {"ARCO_STORE": store, "ARCO_WAREHOUSE": WAREHOUSE}) as uri:
        yield uri


@contextmanager
def _store(store: Store, scratch: Path) -> Iterator[str]:
    """Yield the URL of an empty store. A store of a cloud is in an emulator that is started for it."""
    url = f"file:{scratch / 'store'}" if store is Store.LOCAL else CLOUD_URLS[store]
    with store_server(url):
        yield url


def _execute(jars: Sequence[Path], properties: Mapping[str, str], scratch: Path) -> list[report.Outcome]:
    """Run the kit in a JVM, and return the outcomes. Every system property becomes a property of the client."""
    command = [
        str(java_home() / "bin" / "java"),
        "-Xmx1g",
        *(f"-D{name}={value}" for name, value in properties.items()),
        "-cp",
        os.pathsep.join([str(HERE), *map(str, jars)]),
        "org.junit.platform.console.ConsoleLauncher",
        "execute",
        "--config=rck.local=false",
        *(f"--select-class={name}" for name in report.CLASSES),
        f"--reports-dir={scratch}",
        "--details=verbose",
        "--disable-banner",
        "--disable-ansi-colors",
    ]
    with (scratch / "kit.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            process.wait(LIMIT_S)  # the exit code is ignored, since the report has more
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)  # the JVM writes the stacks of its threads to the log
            time.sleep(2)
            raise
        finally:
            process.kill()
    found = scratch / "TEST-junit-jupiter.xml"
    if not found.exists():
        raise RuntimeError(f"the kit ended without a report:\n{(scratch / 'kit.log').read_text()[-4000:]}")
    return report.read(found)


def _jars(kit: Kit, store: str) -> list[Path]:
    """The kit's jars, whose hashes `make` has checked, and those of the store. Raises `LookupError` if they are not
    there."""
    folder = JARS / f"rck-{kit.version}"
    if not (folder / "complete").exists():
        raise LookupError(f"the kit {kit.version} is not in .jars: run `make rck`")
    hashes = (HERE / f"{kit.version}.sha256").read_text()
    return [*(folder / line.split()[1] for line in hashes.splitlines()), *jars_of_store(store)]
