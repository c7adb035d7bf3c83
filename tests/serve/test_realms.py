"""One server for several realms of one bucket: to clients they are several servers."""

import asyncio
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.exceptions import NoSuchTableError, OAuthError

from tests.cli.in_process import arco
from tests.cli.process import serving
from tests.support.polaris_cli import PolarisCli
from tests.support.served_realms import LOGINS, Root, bootstrapped

ROWS = {"a": [1, 2], "b": [3]}


async def two_realms(store: str) -> dict[str, Root]:
    return {name: await bootstrapped(store, name) for name in ROWS}


def write_and_read(uri: str, root: Root, rows: list[int]) -> list[int]:
    """In a catalog, a namespace and a table that have the same names in each realm."""
    catalog = root.catalog(uri)
    catalog.create_namespace("db")
    catalog.create_table("db.t", pa.schema([("x", pa.int64())])).append(pa.table({"x": rows}))
    found: list[int] = root.catalog(uri).load_table("db.t").scan().to_arrow()["x"].to_pylist()
    return found


ALONE = {"ARCO_WORKERS": "1"}
"""Has a server run in the process of the command."""


async def test_pyiceberg_works_in_two_realms_whose_names_are_all_the_same(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    roots = await two_realms(store)
    async with serving(store, "--realm", *roots, "--workers", "2", **LOGINS) as server:
        assert server.printed.startswith(f"Arco serves the realms 'a', 'b' of {store} at {server.uri} ")
        for name, root in roots.items():
            assert await asyncio.to_thread(write_and_read, server.uri, root, ROWS[name]) == ROWS[name]
        here = await asyncio.to_thread(roots["a"].catalog(server.uri).load_table, "db.t")
        there = await asyncio.to_thread(roots["b"].catalog(server.uri).load_table, "db.t")
        assert here.location().startswith(f"file://{tmp_path}/store/a/arco/")
        assert there.location().startswith(f"file://{tmp_path}/store/b/arco/")

        roots["b"].catalog(server.uri).drop_table("db.t")
        with pytest.raises(NoSuchTableError):
            roots["b"].catalog(server.uri).load_table("db.t")
        assert roots["a"].catalog(server.uri).load_table("db.t").scan().to_arrow()["x"].to_pylist() == ROWS["a"]
        ended = await server.stop()

    assert "header.Polaris-Realm=b for Spark and PyIceberg" in ended.out


async def test_credentials_and_tokens_of_one_realm_are_nothing_in_the_other(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    roots = await two_realms(store)
    async with serving(store, "--realm", *roots, "--workers", "1", "--quiet", **LOGINS) as server:
        for here, there in (("a", "b"), ("b", "a")):
            crossed = Root(there, roots[here].client_id, roots[here].secret)
            with pytest.raises(OAuthError, match="The client id is unknown in this realm, or the secret is wrong"):
                crossed.catalog(server.uri)

        unnamed = Root(None, roots["a"].client_id, roots["a"].secret)
        assert unnamed.catalog(server.uri).list_namespaces() == []  # the first realm is whose none is named
        with pytest.raises(OAuthError):
            Root(None, roots["b"].client_id, roots["b"].secret).catalog(server.uri)
        for name in ("c", "A", "a/../b"):  # answered like a wrong secret, which reveals no names of realms
            with pytest.raises(OAuthError, match="The client id is unknown in this realm, or the secret is wrong"):
                Root(name, roots["a"].client_id, roots["a"].secret).catalog(server.uri)


async def test_polaris_manages_the_realm_that_it_names(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    roots = await two_realms(store)
    async with serving(store, "--realm", *roots, "--workers", "1", "--quiet", **LOGINS) as server:
        for name, root in roots.items():
            home = tmp_path / name
            home.mkdir()
            with PolarisCli(server.uri, root.client_id, root.secret, home) as polaris:
                polaris.options += ["--realm", name]
                polaris(f"principals create only-in-{name}")
                assert {each["name"] for each in polaris.lines("principals list")} == {"root", f"only-in-{name}"}


async def test_a_realm_that_is_missing_is_reported_before_anything_is_served(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    await bootstrapped(store, "a")

    ended = await arco("serve", "--store", store, "--port", "0", "--realm", "a", "b", "c", **ALONE, **LOGINS)

    assert (ended.code, ended.err) == (
        1,
        f"arco: there is no realm 'b' and 'c' in {store} yet: `arco bootstrap --realm` makes one\n",
    )


@pytest.mark.parametrize("name", ["_realm", "../a", "", "a/b", ".arco-store"])
async def test_a_folder_that_is_no_realms_is_refused(name: str, tmp_path: Path) -> None:
    for command in ("serve", "bootstrap"):
        ended = await arco(command, "--store", f"file:{tmp_path}/store", "--realm", name, **ALONE, **LOGINS)
        assert ended.code in (1, 2)
        assert "a realm's name may have letters" in ended.err


async def test_a_realm_at_the_root_of_a_store_has_none_beside_it(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    await bootstrapped(store)

    ended = await arco("bootstrap", "--store", store, "--realm", "a")

    assert (ended.code, "there is a realm, perhaps a dropped one, at the root" in ended.err) == (1, True)
