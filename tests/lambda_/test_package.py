"""The zip: always the same bytes, small, complete for what its handlers import, and nothing beside."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest

from tools.bytecode import interpreter
from tools.gateway.sandbox import make_runtime_client
from tools.package import CONSOLE, PLATFORMS, PROJECT, PYTHONS, SOURCES, Variant, build

HANDLERS = ("lambda.api.handler", "lambda.reconcile.handler", "lambda.work.handler")
HEAVY = {"pyiceberg", "pyarrow", "pydantic", "pyspark", "botocore", "boto3", "aiobotocore", "aiohttp", "uvicorn"}
LIMIT_BYTES = 60_000_000  # of which fastavro, compiled for two platforms, is 26 MB; Lambda's own is 250 MB

LOAD = """
import importlib, sys
module, _, name = sys.argv[1].rpartition(".")
assert callable(getattr(importlib.import_module(module), name))
print(*sorted(sys.modules))
"""


@pytest.fixture(scope="module")
def names(archive: Path) -> list[PurePosixPath]:
    with zipfile.ZipFile(archive) as opened:
        return [PurePosixPath(name) for name in opened.namelist()]


@pytest.mark.slow
def test_built_elsewhere_and_later_it_is_the_same_byte_for_byte(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in SOURCES:  # other times, other permissions
        shutil.copytree(PROJECT / folder, tmp_path / "there" / folder, copy_function=shutil.copyfile)
    monkeypatch.setattr("tools.package.PROJECT", tmp_path / "there")
    build(tmp_path / "there.zip")
    assert (tmp_path / "there.zip").read_bytes() == archive.read_bytes()


def test_a_build_that_fails_leaves_no_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.package.LOCKS", tmp_path / "missing")
    with pytest.raises(subprocess.CalledProcessError):
        build(tmp_path / "a.zip")
    assert [*tmp_path.iterdir()] == []


def test_it_is_small_and_holds_nothing_heavy(archive: Path, names: list[PurePosixPath]) -> None:
    with zipfile.ZipFile(archive) as opened:
        assert sum(entry.file_size for entry in opened.infolist()) < LIMIT_BYTES
    assert {name.parts[0] for name in names} & HEAVY == set()
    assert {"lambda/api.py", "lambda/reconcile.py", "lambda/work.py"} < {str(name) for name in names}


def test_it_holds_no_tests_command_line_or_trace_of_the_building_machine(
    archive: Path, names: list[PurePosixPath]
) -> None:
    assert not [name for name in names if {"tests", "cli", "bin"} & {*name.parts}]
    assert not [name for name in names if name.name in ("RECORD", "direct_url.json", "INSTALLER")]
    with zipfile.ZipFile(archive) as opened:
        assert not [name for name in opened.namelist() if str(PROJECT).encode() in opened.read(name)]
        assert {entry.date_time for entry in opened.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_every_compiled_module_is_there_for_every_platform(names: list[PurePosixPath]) -> None:
    compiled: dict[str, set[str]] = {}
    for name in names:
        if name.suffix == ".so":
            module, _, platform = name.name.partition(".cpython-")
            compiled.setdefault(f"{name.parent}/{module}", set()).add(platform)
    tags = {f"{platform.tag}.so" for platform in PLATFORMS}
    assert len(compiled) >= 2
    assert all(platforms == tags for platforms in compiled.values()), compiled


def test_every_module_has_bytecode_for_the_pythons_of_this_machine_that_is_not_checked(
    archive: Path, names: list[PurePosixPath]
) -> None:
    tags = {f"cpython-{version.replace('.', '')}" for version in PYTHONS if interpreter(version)}
    compiled = {
        name.parent / "__pycache__" / f"{name.stem}.{tag}.pyc" for name in names if name.suffix == ".py" for tag in tags
    }
    assert f"cpython-3{sys.version_info.minor}" in tags
    assert compiled == {name for name in names if name.suffix == ".pyc"}
    with zipfile.ZipFile(archive) as opened:  # PEP 552: of the flags' lowest bits, hash-based and not to be checked
        assert {opened.read(str(name))[4:8] for name in compiled} == {(1).to_bytes(4, "little")}


def imported_by(handler: str, folder: Path, scratch: Path, settings: Mapping[str, str]) -> set[str]:
    """The modules that a cold start imports, the catalog's own among them."""
    path = os.pathsep.join([str(folder), str(make_runtime_client(scratch))])
    environment = {"PYTHONPATH": path, "ARCO_STORE": "s3://b/p", "ARCO_WAREHOUSE": "wh", "ARCO_ENDPOINT": "http-api"}
    keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
    command = [sys.executable, "-S", "-B", "-c", LOAD, handler]
    loaded = subprocess.run(
        command, env={**environment, **keys, **settings}, check=True, capture_output=True, text=True, timeout=60
    )
    return set(loaded.stdout.split())


def top(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_imports_what_the_zip_holds_and_no_more(folder: Path, tmp_path: Path, handler: str) -> None:
    imported = imported_by(handler, folder, tmp_path, {})
    assert "argparse" not in imported
    assert top(imported) & (HEAVY | {"jwt", "cryptography"}) == set()
    assert not [
        module for module in imported if module.startswith(("arco_catalog.vending", "arco_catalog.http.console"))
    ]


def test_the_console_is_in_the_zip_by_a_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def names_in(zip_file: Path) -> set[str]:
        with zipfile.ZipFile(zip_file) as opened:
            return {name for name in opened.namelist() if name.startswith(f"{CONSOLE}/")}

    monkeypatch.setattr("tools.package.PROJECT", tmp_path)
    monkeypatch.setattr("tools.package.dependencies", lambda *_: {})
    with pytest.raises(FileNotFoundError, match="`make console` builds it"):
        build(tmp_path / "a.zip", console=True)
    assert [*tmp_path.iterdir()] == []

    (tmp_path / CONSOLE).mkdir(parents=True)
    (tmp_path / CONSOLE / "index.html").write_text("<!doctype html>")
    build(tmp_path / "with.zip", console=True)
    build(tmp_path / "without.zip")

    assert names_in(tmp_path / "with.zip") == {f"{CONSOLE}/index.html"}
    assert names_in(tmp_path / "without.zip") == set()
    assert Variant.OIDC.output(console=True).name == "arco-catalog-lambda-oidc-console.zip"


def test_the_deployed_default_imports_nothing_of_realms(folder: Path, tmp_path: Path) -> None:
    imported = imported_by("lambda.api.handler", folder, tmp_path, {})
    realms = ("arco_catalog.http.realms", "arco_catalog.operations.realms", "arco_catalog.http.management.routes")
    assert imported & {*realms, "arco_catalog.authentication.setup"} == set()


@pytest.mark.parametrize(
    ("auth", "verifies"), [("gateway", set()), ("internal", {"jwt"}), ("gateway,internal", {"jwt"})]
)
def test_a_function_with_a_realm_imports_no_cryptography_and_no_vending_when_it_starts(
    folder: Path, tmp_path: Path, auth: str, verifies: set[str]
) -> None:
    settings = {"ARCO_GATEWAY_APIS": "a1b2", "ARCO_TOKEN_KEY": "0123456789-abcdefghijklmnopqrstuvwxyz"}
    imported = imported_by("lambda.api.handler", folder, tmp_path, {"ARCO_AUTH": auth, **settings})
    assert "arco_catalog.operations.realms" in imported
    assert top(imported) & (HEAVY | {"jwt", "cryptography"}) <= verifies
    assert not [module for module in imported if module.startswith("arco_catalog.vending")]
