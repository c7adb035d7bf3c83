"""`arco settings`: what the catalog records of how servers are to serve it."""

import asyncio
import json
from pathlib import Path

import pytest

from arco_catalog.cli.program import main
from arco_catalog.protocol.catalog import Settings
from storage_backends.local.store import LocalStore
from tests.cli.process import serving
from tools.support.catalog_fixture import CatalogFixture

Captured = pytest.CaptureFixture[str]


def test_a_catalog_keeps_what_it_was_made_with(tmp_path: Path, capsys: Captured) -> None:
    at = ["--store", tmp_path.as_uri()]
    assert main(["init", *at], {"ARCO_IDEMPOTENCY_DIALECT": "polaris"}) == 0
    capsys.readouterr()
    assert main(["settings", "--json", *at], {}) == 0
    recorded = json.loads(capsys.readouterr().out)
    assert recorded["idempotency"] == {"dialect": "polaris", "enabled": True, "number": 1, "replaced": []}


def test_the_catalog_of_a_new_realm_keeps_what_it_was_made_with(tmp_path: Path, capsys: Captured) -> None:
    at = ["--store", tmp_path.as_uri()]
    assert main(["bootstrap", *at], {"ARCO_IDEMPOTENCY_DIALECT": "polaris", "ARCO_IDEMPOTENCY_ENABLED": "false"}) == 0
    capsys.readouterr()
    assert main(["settings", "--json", *at], {}) == 0
    recorded = json.loads(capsys.readouterr().out)
    assert recorded["idempotency"] == {"dialect": "polaris", "enabled": False, "number": 1, "replaced": []}


def test_a_bootstrap_leaves_the_setting_of_a_catalog_that_it_takes_into_the_realm(
    tmp_path: Path, capsys: Captured
) -> None:
    at = ["--store", tmp_path.as_uri()]
    main(["init", *at], {"ARCO_IDEMPOTENCY_DIALECT": "polaris"})
    assert main(["bootstrap", *at], {"ARCO_IDEMPOTENCY_DIALECT": "iceberg"}) == 0
    capsys.readouterr()
    assert main(["settings", "--json", *at], {}) == 0
    assert json.loads(capsys.readouterr().out)["idempotency"]["dialect"] == "polaris"


def test_a_change_shows_until_when_earlier_keys_are_previous_policies(tmp_path: Path, capsys: Captured) -> None:
    at = ["--store", tmp_path.as_uri()]
    main(["init", *at], {})
    assert main(["settings", "--set-idempotency-enabled", "false", *at], {}) == 0
    printed = capsys.readouterr().out
    assert "not taken" in printed
    assert "setting before" in printed
    assert main(["settings", "--set-idempotency-dialect", "polaris", "--set-idempotency-enabled", "true", *at], {}) == 0
    capsys.readouterr()
    assert main(["settings", "--json", *at], {}) == 0
    recorded = json.loads(capsys.readouterr().out)["idempotency"]
    assert (recorded["dialect"], [each["enabled"] for each in recorded["replaced"]]) == ("polaris", [False, True])
    assert main(["history", "--all", *at], {}) == 0
    assert "key-settings" in capsys.readouterr().out


def test_a_change_names_a_search_of_earlier_keys_only_where_there_is_one(tmp_path: Path, capsys: Captured) -> None:
    at = ["--store", tmp_path.as_uri()]
    main(["init", *at], {})

    def change(*options: str) -> str:
        capsys.readouterr()
        assert main(["settings", *options, *at], {}) == 0
        return capsys.readouterr().out

    disabled = change("--set-idempotency-enabled", "false")
    assert "Servers use this" in disabled
    assert "search markers of the setting before" in disabled
    assert "Servers use this" not in change("--set-idempotency-enabled", "false")  # nothing changed
    enabled = change("--set-idempotency-enabled", "true")
    assert "Servers use this" in enabled
    assert "search markers" not in enabled  # the setting before read no keys, and the one before that is this one


def test_settings_of_a_catalog_that_does_not_exist_are_not_made(tmp_path: Path, capsys: Captured) -> None:
    at = ["--store", (tmp_path / "nothing").as_uri()]
    assert main(["settings", "--set-idempotency-enabled", "false", *at], {}) != 0
    assert "there is no warehouse" in capsys.readouterr().err
    assert not (tmp_path / "nothing").exists()


async def test_a_server_warns_at_its_start_that_the_catalog_has_another_setting(tmp_path: Path) -> None:
    made = ["init", "--store", tmp_path.as_uri()]
    assert await asyncio.to_thread(main, made, {"ARCO_IDEMPOTENCY_DIALECT": "polaris"}) == 0
    async with serving(tmp_path.as_uri(), "--idempotency-dialect", "iceberg") as server:
        _, config = await server.call("GET", "/v1/config?warehouse=arco")
        stopped = await server.stop()
    assert config["properties"]["idempotency-key-supported"] == "true"
    assert "catalog 'arco' reads idempotency keys by its settings, the polaris dialect" in stopped.err


@pytest.fixture
def old_table(tmp_path: Path) -> str:
    """The metadata file of a table in another place than the catalog's."""
    url = (tmp_path / "old").as_uri()
    fixture = CatalogFixture(LocalStore(tmp_path / "old"), settings=Settings("arco"), url=url)

    async def make() -> str:
        await fixture.namespace("db")
        return (await fixture.table("t")).metadata_location

    return asyncio.run(make())


def test_commands_need_no_flag_after_a_registration_at_another_place(
    tmp_path: Path, old_table: str, capsys: Captured
) -> None:
    at, old = ["--store", (tmp_path / "lake").as_uri()], (tmp_path / "old").as_uri()
    assert main(["init", *at], {}) == 0
    assert main(["register", "db.t", old_table, "--parents", "--allowed-location", old, *at], {}) == 0
    capsys.readouterr()
    assert main(["settings", "--json", *at], {}) == 0
    assert json.loads(capsys.readouterr().out)["allowed_locations"] == [old]
    assert main(["info", "db.t", *at], {}) == 0
    assert main(["settings", "--remove-location", old, *at], {}) == 0
    capsys.readouterr()
    assert main(["info", "db.t", *at], {}) == 1
    assert "an operator can allow a location around it (--allowed-location" in capsys.readouterr().err


def test_a_new_catalog_keeps_the_locations_of_the_server_that_makes_it(tmp_path: Path, capsys: Captured) -> None:
    at, old = ["--store", (tmp_path / "lake").as_uri()], (tmp_path / "old").as_uri()
    assert main(["init", "--allowed-location", old, *at], {}) == 0
    capsys.readouterr()
    assert main(["settings", *at], {}) == 0
    assert old in capsys.readouterr().out


async def test_a_server_allows_the_recorded_locations(tmp_path: Path, old_table: str) -> None:
    store, old = (tmp_path / "lake").as_uri(), (tmp_path / "old").as_uri()
    assert await asyncio.to_thread(main, ["init", "--store", store], {}) == 0
    assert await asyncio.to_thread(main, ["settings", "--add-location", old, "--store", store], {}) == 0
    async with serving(store) as server:
        await server.call("POST", "/v1/arco/namespaces", {"namespace": ["db"]})
        body = {"name": "t", "metadata-location": old_table}
        status, _ = await server.call("POST", "/v1/arco/namespaces/db/register", body)
    assert status == 200


def test_a_mistyped_warehouse_is_reported_with_those_that_the_store_has(tmp_path: Path, capsys: Captured) -> None:
    at = ["--store", tmp_path.as_uri()]
    assert main(["init", *at], {}) == 0
    assert main(["init", "--warehouse", "sales", *at], {}) == 0
    before = sorted(tmp_path.rglob("*"))
    assert main(["ls", "--warehouse", "slaes", *at], {}) == 2
    assert "The store has other catalogs: 'arco', 'sales' (check --warehouse)" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


async def test_a_server_of_a_new_catalog_names_those_beside_it(tmp_path: Path) -> None:
    assert await asyncio.to_thread(main, ["init", "--store", tmp_path.as_uri()], {}) == 0
    async with serving(tmp_path.as_uri(), "--warehouse", "acro") as server:
        printed = (await server.stop()).out
    assert "New catalog: it has no commit yet. The store has another catalog: 'arco'" in printed
