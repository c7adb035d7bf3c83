"""The zip for Azure: laid out as the platform wants it, small, and always the same bytes."""

import json
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from tools.package import MODULES_NOT_SHIPPED, NOT_SHIPPED, PROJECT
from tools.package_azure import LIBRARIES, build

LIMIT_BYTES = 41_000_000
HEAVY = {"pyiceberg", "pyarrow", "pydantic", "pyspark", "botocore", "aiobotocore", "aiohttp", "uvicorn", "mangum"}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("package") / "arco-catalog-functions.zip"
    build(path)
    return path


@pytest.fixture(scope="module")
def names(package: Path) -> list[PurePosixPath]:
    with zipfile.ZipFile(package) as opened:
        return [PurePosixPath(name) for name in opened.namelist()]


def test_the_platform_finds_its_two_files_at_the_root(package: Path, names: list[PurePosixPath]) -> None:
    with zipfile.ZipFile(package) as opened:
        assert json.loads(opened.read("host.json"))["version"] == "2.0"
        assert b"func.FunctionApp" in opened.read("function_app.py")

    assert {str(name) for name in names if len(name.parts) == 1} == {"function_app.py", "host.json"}
    assert {name.parts[0] for name in names if len(name.parts) > 1} == {
        ".python_packages",
        "arco_catalog",
        "storage_backends",
    }


def test_it_is_small_and_holds_what_it_imports_and_nothing_heavy(package: Path, names: list[PurePosixPath]) -> None:
    depth = len(PurePosixPath(LIBRARIES).parts)
    libraries = {name.parts[depth] for name in names if name.is_relative_to(LIBRARIES)}

    with zipfile.ZipFile(package) as opened:
        assert sum(entry.file_size for entry in opened.infolist()) < LIMIT_BYTES
    assert {"azure", "httptools", "msal", "orjson", "rfc8785"} < libraries
    assert libraries & HEAVY == set()


def test_compiled_modules_are_for_the_platform_alone(names: list[PurePosixPath]) -> None:
    compiled = [name.name for name in names if name.suffix == ".so"]

    assert len(compiled) >= 4
    assert [name for name in compiled if "cpython-312-x86_64-linux-gnu" not in name and ".abi3." not in name] == []


def test_it_holds_no_trace_of_the_building_machine_and_is_the_same_each_time(package: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    build(again)

    assert again.read_bytes() == package.read_bytes()
    with zipfile.ZipFile(package) as opened:
        assert not [name for name in opened.namelist() if str(PROJECT).encode() in opened.read(name)]
        for_commands = tuple(f"{folder}/" for folder in NOT_SHIPPED)
        assert not [name for name in opened.namelist() if name.startswith(for_commands)]
        assert not {*opened.namelist()} & MODULES_NOT_SHIPPED
