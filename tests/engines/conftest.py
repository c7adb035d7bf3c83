"""One catalog on local files, one on S3, and the engines that know both. All live while this folder's tests run."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trino.dbapi import Connection

from tests.engines import asking
from tests.engines.lake import Lake, lake
from tests.engines.purging import WINDOW
from tests.engines.realm import Realm, realm_served
from tests.engines.shell import Sql
from tests.engines.spark_shell import spark_properties, spark_shell
from tests.engines.trino_server import as_user, run, trino_properties, trino_server
from tests.engines.users import Users, make_users
from tests.engines.walled import Walled, walled_lake
from tools.support.s3_servers import S3Server

BUCKET = "engines"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder for all tests of a module."""
    return tmp_path_factory.mktemp("module")


@pytest.fixture(scope="package")
def local_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """The catalog that every engine calls `rest`, on local files."""
    folder = tmp_path_factory.mktemp("local")
    with lake("rest", f"file:{folder / 'store'}", folder / "server.log", {}) as opened:
        yield opened


@pytest.fixture(scope="package")
def s3_lake(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """The catalog that every engine calls `s3`, on S3."""
    s3_server.make_bucket(BUCKET)
    access = {
        "s3.endpoint": s3_server.endpoint,
        "s3.path-style-access": "true",
        "s3.region": "us-east-1",
        "s3.access-key-id": "testing",
        "s3.secret-access-key": "testing",
        "client.region": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment.items():
            patch.setenv(name, value)
        log = tmp_path_factory.mktemp("s3") / "server.log"
        with lake("s3", f"s3://{BUCKET}/catalog", log, access) as opened:
            yield opened


@pytest.fixture(scope="package")
def purging_lakes(
    s3_lake: Lake, s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Lake, Lake]]:
    """The catalogs `purging`, on local files, and `s3_purging`, whose purges begin when a test says so."""
    folder = tmp_path_factory.mktemp("purging")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment.items():
            patch.setenv(name, value)
        with (
            lake("purging", f"file:{folder / 'store'}", folder / "local.log", {}, *WINDOW) as local,
            lake("s3_purging", f"s3://{BUCKET}/purging", folder / "s3.log", s3_lake.s3, *WINDOW) as remote,
        ):
            yield local, remote


@pytest.fixture(scope="package")
def telling_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """The catalog `telling`, on local files, which has the tables of `system`."""
    with asking.telling_lake(tmp_path_factory.mktemp("telling")) as filled:
        yield filled


@pytest.fixture(scope="package")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    """A realm on local files, whose tokens live for ten seconds."""
    with realm_served(tmp_path_factory.mktemp("realm")) as served:
        yield served


@pytest.fixture(scope="package")
def users(realm: Realm) -> Users:
    """Principals of that realm, which are users of Trino."""
    return make_users(realm)


@pytest.fixture(scope="package")
def walled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walled]:
    """The catalog `walled` of a realm, on local files, which has the tables of `system`."""
    with walled_lake(tmp_path_factory.mktemp("walled")) as filled:
        yield filled


@pytest.fixture(params=["s3", pytest.param("rest", marks=pytest.mark.slow)])
def either_lake(request: pytest.FixtureRequest, local_lake: Lake, s3_lake: Lake) -> Lake:
    """Each of them in turn: the catalog on local files with `make test-thorough`."""
    return next(found for found in (local_lake, s3_lake) if found.name == request.param)


@pytest.fixture(scope="package")
def spark(
    local_lake: Lake,
    s3_lake: Lake,
    purging_lakes: tuple[Lake, Lake],
    telling_lake: Lake,
    realm: Realm,
    walled: Walled,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Sql]:
    """Spark SQL. By `rest_planned` and `s3_planned` it lets these two catalogs plan its scans."""
    catalogs = {
        lake.name: spark_properties(lake)
        for lake in (local_lake, s3_lake, *purging_lakes, telling_lake, *realm.lakes, walled.lake)
    }
    planned = {f"{lake.name}_planned": spark_properties(lake) for lake in (local_lake, s3_lake)}
    catalogs |= {name: {**properties, "scan-planning-mode": "server"} for name, properties in planned.items()}
    with spark_shell(catalogs, tmp_path_factory.mktemp("spark")) as sql:
        yield sql


@pytest.fixture(scope="package")
def trino_connection(
    local_lake: Lake,
    s3_lake: Lake,
    purging_lakes: tuple[Lake, Lake],
    telling_lake: Lake,
    realm: Realm,
    users: Users,
    walled: Walled,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Connection]:
    """Trino, whose user `test` may do everything."""
    catalogs = {
        lake.name: trino_properties(lake)
        for lake in (local_lake, s3_lake, *purging_lakes, telling_lake, *realm.lakes, walled.lake)
    }
    catalogs[users.lake.name] = users.trino_properties
    with trino_server(catalogs, tmp_path_factory.mktemp("trino")) as connection:
        yield connection


@pytest.fixture(scope="package")
def trino(trino_connection: Connection) -> Sql:
    """Trino's SQL."""
    return lambda statement: run(trino_connection, statement)


@pytest.fixture(scope="package")
def trino_as(trino_connection: Connection) -> Callable[[str], Sql]:
    """Trino's SQL, of another user."""
    return lambda user: lambda statement: run(as_user(trino_connection, user), statement)
