"""Starts Nessie, which has its names in memory and its metadata files on S3."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.demo.java import java_home
from tools.support.environment import PROJECT
from tools.support.s3_servers import S3Server
from tools.support.server_process import listening

RELEASE = "0.99.0"
"""The last release whose server is a file on Maven Central."""
RUNNER = PROJECT / ".jars" / f"nessie-quarkus-{RELEASE}-runner.jar"
JDKS = (21, 25)
OBJECT_STORES = "nessie.catalog.service.s3.default-options"


@contextmanager
def nessie(store: S3Server, bucket: str) -> Iterator[str]:
    """Yields the URI of the catalog of a server whose warehouse is this bucket. Raises `LookupError` without the server
    or a JDK for it."""
    if not RUNNER.exists():
        raise LookupError(f"Nessie is not in .jars: run 'make .jars/{RUNNER.name}'")
    java = java_home(JDKS, "Nessie") / "bin" / "java"
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": "0",
        "quarkus.log.level": "WARN",
        "quarkus.http.access-log.enabled": "false",
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "main",
        "nessie.catalog.warehouses.main.location": f"s3://{bucket}/",
        f"{OBJECT_STORES}.endpoint": store.endpoint,
        f"{OBJECT_STORES}.path-style-access": "true",
        f"{OBJECT_STORES}.region": "us-east-1",
        f"{OBJECT_STORES}.request-signing-enabled": "false",
        f"{OBJECT_STORES}.access-key": "urn:nessie-secret:quarkus:prove.key",
        "prove.key.name": store.access_key,
        "prove.key.secret": store.secret_key,
    }

    def command(port: int, folder: Path) -> list[str | Path]:
        options = [f"-D{name}={value}" for name, value in settings.items()]
        return [java, "-Xmx1g", f"-Dquarkus.http.port={port}", *options, "-jar", RUNNER]

    with listening(command) as url:
        yield f"{url}/iceberg"
