"""A function reads its environment as `arco serve` reads the same variables."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from arco_catalog.cli.program import build_parser, main
from arco_catalog.operations.environment import catalog_to_serve, settings_from_env
from arco_catalog.operations.open import open_catalog
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.locations import Location
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import ObjectStore
from storage_backends.memory import MemoryStore
from tools.support.s3_servers import S3Server

STORE = {"ARCO_STORE": "memory:", "ARCO_WAREHOUSE": "wh"}


@pytest.mark.parametrize("text", ["true", "True", "yes", "1", "false", "no", "0", ""])
def test_a_function_takes_a_switch_for_what_the_command_line_takes_it_for(text: str) -> None:
    environment = {**STORE, "ARCO_ALLOW_LOCATION_OVERLAP": text}

    served = build_parser(environment).parse_args(["serve"])

    assert settings_from_env(environment).allow_location_overlap is served.allow_location_overlap


def test_a_switch_that_is_neither_on_nor_off_is_named() -> None:
    with pytest.raises(ValueError, match="ARCO_ALLOW_LOCATION_OVERLAP: expected true or false"):
        settings_from_env({**STORE, "ARCO_ALLOW_LOCATION_OVERLAP": "maybe"})


@pytest.mark.parametrize("name", ["", "a/b", "..", "_probe", "ü"])
def test_a_function_takes_no_name_that_the_command_line_refuses(name: str) -> None:
    with pytest.raises(ValueError, match="warehouse's name"):
        settings_from_env({**STORE, "ARCO_WAREHOUSE": name})


@pytest.fixture(scope="module")
def careless_bucket(careless_s3: S3Server) -> str:
    """The name of one that ignores conditions."""
    careless_s3.make_bucket("careless-functions")
    return "careless-functions"


@pytest.mark.parametrize(
    ("skip", "read_only"), [("", "the store ignores If-None-Match: it replaced an object that exists"), ("true", None)]
)
async def test_a_function_probes_a_store_that_is_not_amazons_for_conditional_writes(
    careless_s3: S3Server, careless_bucket: str, monkeypatch: pytest.MonkeyPatch, skip: str, read_only: str | None
) -> None:
    environment = {"ARCO_STORE": f"s3://{careless_bucket}", "ARCO_WAREHOUSE": "wh", "ARCO_SKIP_PROBE": skip}
    for name, value in careless_s3.environment.items():
        monkeypatch.setenv(name, value)

    catalog = await catalog_to_serve({**environment, **careless_s3.environment}, SystemRuntime())

    assert catalog.settings.read_only_because == read_only
    await catalog.close()


async def test_a_function_does_not_probe_amazons_s3() -> None:
    catalog = await catalog_to_serve({"ARCO_STORE": "s3://bucket", "ARCO_WAREHOUSE": "wh"}, SystemRuntime())

    assert catalog.settings.read_only_because is None


async def test_a_function_that_probes_nothing_allows_the_locations_of_its_variables_alone(tmp_path: Path) -> None:
    store, old = (tmp_path / "lake").as_uri(), (tmp_path / "old").as_uri()
    assert await asyncio.to_thread(main, ["init", "--store", store, "--allowed-location", old], {}) == 0
    environment = {"ARCO_STORE": store, "ARCO_WAREHOUSE": "arco"}

    async def allows(variables: Mapping[str, str]) -> bool:
        catalog = await catalog_to_serve({**environment, **variables}, SystemRuntime())
        await catalog.close()
        return catalog.locations.own(Location.parse(f"{old}/t"))

    assert await allows({})
    assert not await allows({"ARCO_SKIP_PROBE": "true"})
    assert await allows({"ARCO_SKIP_PROBE": "true", "ARCO_ALLOWED_LOCATIONS": old})


def test_functions_read_the_bounds_that_arco_serve_has() -> None:
    bounds = settings_from_env({**STORE, "ARCO_MAX_METADATA": "8MB", "ARCO_CACHE_MEMORY": "16MB"})
    usual = settings_from_env({**STORE, "ARCO_MAX_METADATA": "", "ARCO_CACHE_MEMORY": ""})

    assert (bounds.max_metadata_bytes, bounds.cache_bytes) == (8 << 20, 16 << 20)
    assert (usual.max_metadata_bytes, usual.cache_bytes) == (64 << 20, 100 << 20)


def test_an_invalid_size_is_reported_with_its_variable() -> None:
    with pytest.raises(
        ValueError, match="ARCO_CACHE_MEMORY: expected a size of 1MB or more, such as 64MB or 1GB, got '8'"
    ):
        settings_from_env({**STORE, "ARCO_CACHE_MEMORY": "8"})


async def test_a_catalog_that_cannot_be_opened_leaves_no_store_open() -> None:
    opened: list[str] = []

    class CountingStore(MemoryStore):
        async def close(self) -> None:
            opened.pop()

    def open_one(url: str) -> ObjectStore:
        if url.endswith("/bad"):
            raise ValueError("a bad prefix")
        opened.append(url)
        return CountingStore()

    with pytest.raises(ValueError, match="a bad prefix"):
        await open_catalog(Settings("wh"), "s3://b", ["s3://good", "s3://other/bad"], SystemRuntime(), open_one)

    assert opened == []
