"""Trino in a process of its own, on loopback."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trino.dbapi import Connection
from trino.exceptions import TrinoQueryError

from tests.engines.lake import Lake
from tests.engines.shell import Rows
from tests.engines.trino_releases import CHOSEN, Release
from tools.demo.server import WAREHOUSE
from tools.support.ports import reserved_port

START_S = 300.0
NODES_S = 60.0
"""How long Trino may take until it knows its own node: it says that it started before it has heard of it."""

SERVER = {
    "coordinator": "true",
    "node-scheduler.include-coordinator": "true",
    "query.max-memory": "512MB",
    "query.max-memory-per-node": "512MB",
    "memory.heap-headroom-per-node": "512MB",
    "catalog.management": "static",
}
CATALOG = {
    "connector.name": "iceberg",
    "iceberg.catalog.type": "rest",
    "iceberg.rest-catalog.warehouse": WAREHOUSE,
    "iceberg.rest-catalog.nested-namespace-enabled": "true",
    "iceberg.rest-catalog.view-endpoints-enabled": "true",
    "iceberg.expire-snapshots.min-retention": "0s",
    "iceberg.remove-orphan-files.min-retention": "0s",
}


OWNER = "wall"
"""Trino's user as whom the views run that hide rows."""
RULES = {
    "catalogs": [{"allow": "all"}],
    "schemas": [{"user": "test", "owner": True}, {"catalog": "users", "owner": True}],
    "tables": [
        {"user": "test", "privileges": ["SELECT", "INSERT", "DELETE", "UPDATE", "OWNERSHIP", "GRANT_SELECT"]},
        {"user": OWNER, "catalog": "walled", "schema": "system", "privileges": ["SELECT", "GRANT_SELECT"]},
        {"catalog": "walled", "schema": "system", "table": "visible_.*", "privileges": ["SELECT"]},
        {"catalog": "users", "privileges": ["SELECT", "INSERT", "OWNERSHIP"]},
    ],
    "procedures": [{"user": "test", "privileges": ["EXECUTE"]}],
}
"""Who may do what, as docs/pipeline.md tells the user. The user `test` may do everything; the catalog `users` judges
all requests itself."""


@contextmanager
def trino_server(
    catalogs: Mapping[str, Mapping[str, str]], scratch: Path, release: Release = CHOSEN
) -> Iterator[Connection]:
    """Trino with these catalogs, by their properties. Its log is `scratch/trino.log`. Raises `LookupError` if it is not
    there, and `RuntimeError` if it does not start."""
    if not (release.folder / "complete").exists():
        raise LookupError(f"{release.file} is not here: `make {release.file}` fetches it")
    with reserved_port() as port:
        yield from _run(catalogs, scratch, port, release)


def _run(catalogs: Mapping[str, Mapping[str, str]], scratch: Path, port: int, release: Release) -> Iterator[Connection]:
    here = f"http://127.0.0.1:{port}"
    rules, access = scratch / "rules.json", scratch / "access-control.properties"
    rules.write_text(json.dumps(RULES))
    _write(access, {"access-control.name": "file", "security.config-file": str(rules)})
    own = {"http-server.http.port": str(port), "discovery.uri": here, "access-control.config-files": str(access)}
    _write(scratch / "config.properties", {**SERVER, **release.settings, **own})
    for name, properties in catalogs.items():
        _write(scratch / "catalog" / f"{name}.properties", properties)
    node = {
        "node.environment": "test",
        "node.id": "test",
        "node.data-dir": str(scratch / "data"),
        "node.bind-ip": "127.0.0.1",
        "node.internal-address": "127.0.0.1",
        "config": str(scratch / "config.properties"),
        "catalog.config-dir": str(scratch / "catalog"),
        "plugin.dir": str(release.folder / "plugin"),
    }
    options = [f"-D{name}={value}" for name, value in node.items()]
    command = release.command(*options)
    log = scratch / "trino.log"
    with log.open("wb") as out, subprocess.Popen(command, cwd=scratch, stdout=out, stderr=out) as process:
        try:
            _await_start(process, log)
            with Connection(host="127.0.0.1", port=port, user="test", catalog=next(iter(catalogs))) as connection:
                yield connection
        finally:
            process.kill()


def as_user(connection: Connection, user: str) -> Connection:
    """A connection to the same Trino, of another user."""
    return Connection(host=connection.host, port=connection.port, user=user, catalog=connection.catalog)


def run(connection: Connection, statement: str) -> Rows:
    """A statement's rows, once it has ended. One that finds no node was not begun, and is sent again. Raises
    `trino.exceptions.TrinoQueryError` if it failed."""
    give_up = time.perf_counter() + NODES_S
    while True:
        cursor = connection.cursor()
        try:
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()]
        except TrinoQueryError as error:
            if error.error_name != "NO_NODES_AVAILABLE" or time.perf_counter() > give_up:
                raise
        time.sleep(0.2)


def trino_properties(lake: Lake) -> dict[str, str]:
    """The settings of a catalog, as docs/engines/trino.md tells the user."""
    here = {**CATALOG, "iceberg.rest-catalog.uri": lake.server.uri}
    if lake.login:
        here["iceberg.rest-catalog.security"] = "OAUTH2"
        here |= {
            f"iceberg.rest-catalog.oauth2.{name.removeprefix('oauth2-')}": value for name, value in lake.login.items()
        }
    if not lake.s3:
        return {**here, "fs.native-local.enabled": "true", "local.location": "/"}
    return {
        **here,
        "fs.native-s3.enabled": "true",
        "s3.region": lake.s3["s3.region"],
        "s3.endpoint": lake.s3["s3.endpoint"],
        "s3.path-style-access": "true",
        "s3.aws-access-key": lake.s3["s3.access-key-id"],
        "s3.aws-secret-key": lake.s3["s3.secret-access-key"],
    }


def _write(file: Path, properties: Mapping[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


def _await_start(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.perf_counter() + START_S
    while time.perf_counter() < deadline:
        said = log.read_text()
        if "SERVER STARTED" in said:
            return
        if process.poll() is not None:
            raise RuntimeError(f"Trino ended with {process.returncode}:\n{said[-4000:]}")
        time.sleep(0.1)
    raise RuntimeError(f"Trino did not start within {START_S} s:\n{log.read_text()[-4000:]}")
