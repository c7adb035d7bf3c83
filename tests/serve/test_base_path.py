"""A catalog below a path of its own, and Polaris's paths below that."""

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from tests.cli.process import arco, serving
from tests.support.polaris_cli import PolarisCli
from tests.support.served_realms import LOGINS, bootstrapped


@pytest.mark.parametrize("base", ["/iceberg", "/api/catalog"])
async def test_clients_log_in_write_and_read_below_it(base: str, tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    root = await bootstrapped(store)
    async with serving(store, "--workers", "1", ARCO_BASE_PATH=base, **LOGINS) as server:
        assert server.uri.endswith(base)
        catalog = root.catalog(server.uri)
        catalog.create_namespace("db")
        catalog.create_table("db.t", pa.schema([("x", pa.int64())])).append(pa.table({"x": [1]}))
        assert root.catalog(server.uri).load_table("db.t").scan().to_arrow()["x"].to_pylist() == [1]
        bare = server.uri.removesuffix(base)
        for uri in (bare, f"{bare}/api/catalog", f"{server.uri}/api/catalog"):
            assert root.catalog(uri).list_tables("db") == [("db", "t")]
        ended = await server.stop()

    assert f"spark.sql.catalog.arco.uri={server.uri} " in ended.out
    assert f'"oauth2-server-uri": "{server.uri}/v1/oauth/tokens"' in ended.out
    assert f"iceberg.rest-catalog.uri={server.uri}\n" in ended.out


async def test_polaris_finds_its_paths_below_it(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    root = await bootstrapped(store)
    async with serving(store, "--workers", "1", "--base-path", "/iceberg/", **LOGINS) as server:
        with PolarisCli(server.uri, root.client_id, root.secret, tmp_path) as polaris:
            polaris("catalogs create --storage-type file --default-base-location " + f"file://{tmp_path}/store/l lake")
            assert [each["name"] for each in polaris.lines("catalogs list")] == ["arco", "lake"]


async def test_without_a_realm_only_what_is_there_is_below_it(tmp_path: Path) -> None:
    async with serving(f"file:{tmp_path}/store", "--quiet", "--base-path", "/iceberg") as server:
        assert (await server.call("GET", "/v1/config"))[0] == 200
        assert (await server.call("GET", "/iceberg/v1/config"))[0] == 404
        assert (await server.call("GET", "/api/catalog/v1/config"))[0] == 404
        assert (await server.call("GET", "x/v1/config"))[0] == 404


@pytest.mark.parametrize("path", ["iceberg", "/a//b", "/a?b", "/a b", "/..", "/%2e", "//evil"])
async def test_what_is_no_path_is_wrong_usage(path: str) -> None:
    ended = await arco("serve", "--store", "memory:", "--port", "0", ARCO_BASE_PATH=path)

    assert ended.code == 2
    assert "ARCO_BASE_PATH: expected a path such as /iceberg or /api/catalog" in ended.err
