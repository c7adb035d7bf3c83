"""Trino and Spark with the files, variables and scripts of the compose files, in the project's network: only the
programs that the scripts start are this machine's."""

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from tests.engines.trino_releases import ARCHIVED
from tests.packaging.compose import FOLDER, RESOLVER, resolved
from tests.packaging.containers import Project
from tests.packaging.dockerfile import PROJECT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs(RESOLVER, ".tools/versitygw", ARCHIVED.file),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount and change the root"),
]

START_SECONDS = 600
PROPERTIES = {
    "coordinator": "true",
    "node-scheduler.include-coordinator": "true",
    "http-server.http.port": "8080",
    "discovery.uri": "http://127.0.0.1:8080",
    "catalog.management": "static",
    "query.max-memory-per-node": "512MB",
    "memory.heap-headroom-per-node": "512MB",
}
"""The configuration of the image, with less memory."""


def script(made: Project, name: str, program: Path) -> tuple[list[str], Mapping[str, str]]:
    """The entry point of an engine with this program in place of the image's, and its variables."""
    service = resolved("engines")[name]
    shell, option, text = service["entrypoint"]
    before, _, _ = text.replace("/logins", f"{made.folder}/logins").rpartition("exec ")
    return [shell, option, f"{before}exec {program}"], service["environment"]


def program(file: Path, *words: str) -> Path:
    """A script that starts a program in the folder of the script, where Spark makes its metastore."""
    command = " ".join(f"'{word}'" for word in words)
    file.write_text(f"#!/bin/sh\ncd '{file.parent}' && exec {command}\n")
    file.chmod(0o755)
    return file


def test_trino_logs_in_and_writes_a_table(servers: Project, tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    shutil.copy(FOLDER / "trino.properties", tmp_path / "catalog" / "arco.properties")
    (tmp_path / "config.properties").write_text("".join(f"{name}={value}\n" for name, value in PROPERTIES.items()))
    node = {
        "node.environment": "test",
        "node.id": "test",
        "node.data-dir": str(tmp_path / "data"),
        "config": str(tmp_path / "config.properties"),
        "catalog.config-dir": str(tmp_path / "catalog"),
        "plugin.dir": str(ARCHIVED.folder / "plugin"),
    }
    options = [f"-D{name}={value}" for name, value in node.items()]
    java = program(tmp_path / "run-trino", *ARCHIVED.command(*options))
    command, variables = script(servers, "trino", java)
    log = tmp_path / "trino.log"
    with log.open("wb") as out, servers.outside_start(command, out, **variables) as process:
        try:
            deadline = time.monotonic() + START_SECONDS
            while "SERVER STARTED" not in log.read_text():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(1)
            for statement in (
                "CREATE SCHEMA arco.trino",
                "CREATE TABLE arco.trino.t (x bigint)",
                "INSERT INTO arco.trino.t VALUES 1, 2",
            ):
                query(servers, statement)
            assert query(servers, "SELECT sum(x) FROM arco.trino.t") == [[3]]
        finally:
            process.kill()


def query(made: Project, statement: str) -> list[list[object]]:
    """The rows of a statement."""
    words = ("curl", "--silent", "--header", "X-Trino-User: ada")
    answer = json.loads(made.outside(*words, "--data", statement, "http://127.0.0.1:8080/v1/statement"))
    rows = answer.get("data", [])
    while "nextUri" in answer:
        answer = json.loads(made.outside(*words, answer["nextUri"]))
        rows += answer.get("data", [])
    assert "error" not in answer, answer["error"]["message"]
    return list(rows)


def test_spark_logs_in_and_writes_a_table(servers: Project, tmp_path: Path) -> None:
    """Iceberg's jars are those that tests have, in place of the same from Maven."""
    lines = (FOLDER / "spark-defaults.conf").read_text().splitlines()
    [packages] = [line.split()[1] for line in lines if line.startswith("spark.jars.packages")]
    names = ["-".join(package.split(":")[1:]) for package in packages.split(",")]
    jars = [PROJECT / ".jars" / f"{name}.jar" for name in names]
    assert all(jar.exists() for jar in jars)
    kept = [line for line in lines if not line.startswith("spark.jars.")]
    (tmp_path / "spark-defaults.conf").write_text("\n".join([*kept, f"spark.jars {','.join(map(str, jars))}", ""]))
    home = Path(pyspark.__file__).parent
    changes = "CREATE NAMESPACE spark; CREATE TABLE spark.t (x BIGINT); INSERT INTO spark.t VALUES (1), (2)"
    sql = program(tmp_path / "spark-sql", f"{home}/bin/spark-sql", "-e", f"{changes}; SELECT sum(x) FROM spark.t")
    command, variables = script(servers, "spark", sql)

    printed = servers.outside(
        *command, SPARK_HOME=str(home), SPARK_CONF_DIR=str(tmp_path), HOME=str(tmp_path), **variables
    )

    assert printed.splitlines()[-1] == "3"
