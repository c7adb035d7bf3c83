"""Polaris's plugin for Spark, whose jar `make test-polaris-spark` is told of; `pytest` alone leaves this folder out."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.realm import Realm, realm_served
from tests.engines.shell import Sql, shell
from tools.demo.engines import PROJECT, jars
from tools.demo.server import WAREHOUSE

HERE = Path(__file__).resolve().parent
VARIABLE = "POLARIS_SPARK_JAR"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Only who names this folder gets it."""
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(HERE) for path in named) else True


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    """A realm whose owner and reader log in by id and secret."""
    with realm_served(tmp_path_factory.mktemp("realm"), "3600") as realm:
        yield realm


@pytest.fixture(scope="module")
def warehouse(realm: Realm) -> str:
    """Where the files of generic tables may lie."""
    return f"{realm.owner.server.store}/{WAREHOUSE}/warehouse"


def polaris_spark(realm: Realm, who: str, scratch: Path) -> Iterator[Sql]:
    """Spark's SQL, with the plugin's one catalog, for one of the realm's clients."""
    plugin, delta = os.environ.get(VARIABLE), sorted((PROJECT / ".jars" / "delta").glob("*.jar"))
    if not plugin or not delta:
        raise LookupError(f"`make test-polaris-spark {VARIABLE}=...` runs these tests")
    lake = {"owner": realm.owner, "reader": realm.reader}[who]
    properties = {
        "uri": lake.server.uri,
        "warehouse": WAREHOUSE,
        "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        "cache-enabled": "false",
        **lake.login,
    }
    everything = ",".join(map(str, [plugin, *delta, *jars("")]))
    module = "tests.engines.polaris_spark.delta_shell"
    command = [sys.executable, "-m", module, str(scratch), everything, json.dumps(properties)]
    with shell(command, PROJECT, scratch) as sql:
        yield sql


@pytest.fixture(scope="module")
def owner(realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    """Spark of the catalog's owner."""
    yield from polaris_spark(realm, "owner", tmp_path_factory.mktemp("owner"))


@pytest.fixture(scope="module")
def reader(realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    """Spark of somebody who may read its tables."""
    yield from polaris_spark(realm, "reader", tmp_path_factory.mktemp("reader"))
