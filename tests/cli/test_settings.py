"""`arco settings`: what the catalog records of how servers are to serve it."""

import asyncio
import json
from pathlib import Path

import pytest

from arco_catalog.cli.program import main
from tests.cli.process import serving

Captured = pytest.CaptureFixture[str]


def test_a_catalog_keeps_what_it_was_made_with(tmp_path: Path, capsys: Captured) -> None:
    at = ["--store", tmp_path.as_uri()]
    assert main(["init", *at], {"ARCO_IDEMPOTENCY_DIALECT": "polaris"}) == 0
    capsys.readouterr()
    assert main(["settings", "--json", *at], {}) == 0
    recorded = json.loads(capsys.readouterr().out)
    assert recorded["idempotency"] == {"dialect": "polaris", "enabled": True, "number": 1, "replaced": []}


def test_a_change_shows_until_when_earlier_keys_are_previous_policies(tmp_path: Path, capsys: Captured) -> None:
    at = ["--store", tmp_path.as_uri()]
    main(["init", *at], {})
    assert main(["settings", "--set-idempotency-enabled", "false", *at], {}) == 0
    printed = capsys.readouterr().out
    assert "not taken" in printed
    assert "keys of the setting before" in printed
    assert main(["settings", "--set-idempotency-dialect", "polaris", "--set-idempotency-enabled", "true", *at], {}) == 0
    capsys.readouterr()
    assert main(["settings", "--json", *at], {}) == 0
    recorded = json.loads(capsys.readouterr().out)["idempotency"]
    assert (recorded["dialect"], [each["enabled"] for each in recorded["replaced"]]) == ("polaris", [False, True])
    assert main(["history", "--all", *at], {}) == 0
    assert "key-settings" in capsys.readouterr().out


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
    assert "catalog 'arco' uses the polaris dialect, and this server's variables set the iceberg" in stopped.err
