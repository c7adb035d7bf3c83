"""What `pip install arco-catalog` gives: built, checked, and installed where nothing of this checkout is in reach."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from email.parser import Parser
from pathlib import Path
from subprocess import PIPE
from urllib.request import urlopen

import pytest

from arco_catalog.cli.program import COMMANDS
from tests.packaging.conftest import SECONDS, Distributions, run
from tests.packaging.dockerfile import PROJECT

PACKAGES = ("arco_catalog", "reconciler", "storage_backends")


@pytest.fixture(scope="module")
def installed(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment that has `arco-catalog[serve,s3]` and nothing else, from what make fetched."""
    environment = tmp_path_factory.mktemp("environment") / "venv"
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", sys.executable, environment)
    run(
        *(uv, "pip", "install", "--offline", "--quiet", "--python", environment / "bin" / "python"),
        *("--constraints", PROJECT / "requirements" / "serve.txt"),
        f"arco-catalog[serve,s3] @ {distributions.wheel.as_uri()}",
    )
    return environment / "bin"


def modules_of(folder: Path) -> set[str]:
    """Every file that the packages of a checkout ship."""
    found = (file for package in PACKAGES for file in (folder / package).rglob("*"))
    return {
        file.relative_to(folder).as_posix()
        for file in found
        if file.suffix in (".py", ".json") or file.name == "py.typed" or file.parent.name == "built"
    }


def test_twine_finds_nothing_to_complain_about(distributions: Distributions) -> None:
    said = run(
        sys.executable, "-m", "twine", "--no-color", "check", "--strict", distributions.sdist, distributions.wheel
    )
    assert said.count("PASSED") == 2, said


def test_the_wheel_holds_every_module_and_nothing_else(distributions: Distributions) -> None:
    with zipfile.ZipFile(distributions.wheel) as wheel:
        names = set(wheel.namelist())
    metadata = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    assert names - metadata == modules_of(PROJECT)
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert {"LICENSE", "NOTICE"} <= {Path(name).name for name in metadata if "/licenses/" in name}


def test_the_source_distribution_holds_what_a_wheel_is_made_of(distributions: Distributions) -> None:
    with tarfile.open(distributions.sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    told = {name for name in names if not name.startswith("arco_catalog.egg-info/")}
    plain = {"CHANGELOG.md", "LICENSE", "MANIFEST.in", "NOTICE", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
    assert told == modules_of(PROJECT) | plain


def test_the_metadata_say_who_what_and_under_which_licence(distributions: Distributions) -> None:
    with zipfile.ZipFile(distributions.wheel) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        told = Parser().parsestr(wheel.read(name).decode())
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert (told["Name"], told["Version"], told["License-Expression"]) == (
        "arco-catalog",
        project["version"],
        "Apache-2.0",
    )
    assert told["Author"] == "the arco-catalog contributors"
    assert set(told.get_all("Provides-Extra", [])) == set(project["optional-dependencies"])
    assert "Typing :: Typed" in told.get_all("Classifier", [])


def test_arco_says_its_version(installed: Path) -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    assert run(installed / "arco", "--version") == f"arco {version}\n"


@pytest.fixture
def server(installed: Path, tmp_path: Path) -> Iterator[str]:
    """The URL of `arco serve`, as installed, over files."""
    command = [f"{installed}/arco", "serve", "--store", f"file:{tmp_path}/store", "--port", "0", "--quiet"]
    with (
        open(tmp_path / "log", "w+") as log,
        subprocess.Popen(command, cwd="/", env=_plain(), stdout=PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            found = re.search(r" at (http://127\.0\.0\.1:\d+) ", said)
            assert found, said + (tmp_path / "log").read_text()
            yield found[1]
        finally:
            process.terminate()
            process.wait(SECONDS)


def _plain() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("ARCO_", "PYTHON"))}


def outcome_of(command: Sequence[str], environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """What a command prints, and its exit code, run where no checkout is."""
    return subprocess.run(
        command, cwd="/", env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_arco_serves_a_folder(server: str) -> None:
    with urlopen(f"{server}/v1/config?warehouse=arco", timeout=SECONDS) as answer:
        assert answer.status == 200
        assert b'"prefix":"arco"' in answer.read()


def test_every_module_of_the_server_can_be_imported(installed: Path) -> None:
    """None needs more than its extras: what is left out needs pyspark, opentelemetry, pytest, pyiceberg, aiohttp,
    Kafka's client or an SDK."""
    outside = {
        *("reconciler", "arco_catalog.testing", "arco_catalog.telemetry.spans"),
        *("arco_catalog.cli.import_pyiceberg", "storage_backends.s3.sdk", "arco_catalog.upkeep.delivery.kafka"),
        *("arco_catalog.prove", "arco_catalog.cli.prove"),
        *("storage_backends.gcs.google_credentials", "storage_backends.gcs.sdk"),
    }
    names = sorted(
        name[:-3].replace("/", ".").removesuffix(".__init__") for name in modules_of(PROJECT) if ".py" in name[-3:]
    )
    wanted = [name for name in names if not name.endswith("__main__") and not name.startswith(tuple(outside))]
    assert len(wanted) > 150
    run(installed / "python", "-W", "error", "-c", f"for name in {wanted}: __import__(name)")


@pytest.mark.parametrize(("module", "extra"), [("reconciler", "spark"), ("arco_catalog.testing", "testing")])
def test_a_missing_extra_says_which_to_install(installed: Path, module: str, extra: str) -> None:
    said = outcome_of([f"{installed}/python", "-m", module], _plain())
    assert said.returncode == 1
    assert f"install the extra '{extra}' of arco-catalog" in said.stderr


def test_traces_without_their_extra_say_which_to_install(installed: Path) -> None:
    environment = {**_plain(), "OTEL_TRACES_EXPORTER": "console"}
    command = [f"{installed}/arco", "serve", "--store", "memory:", "--port", "0"]
    said = outcome_of(command, environment)
    assert said.returncode == 1
    assert "install the extra 'otel' of arco-catalog" in said.stderr
    assert len(said.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def plain(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment that has `arco-catalog` without any extra."""
    environment = tmp_path_factory.mktemp("plain") / "venv"
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", sys.executable, environment)
    run(uv, "pip", "install", "--offline", "--quiet", "--python", environment / "bin" / "python", distributions.wheel)
    return environment / "bin"


TABLE = "db.t"
ON_S3 = {
    "serve": [],
    "ls": [],
    "history": [],
    "events": [],
    "reconcile": [],
    "init": [],
    "bootstrap": [],
    "catalogs": ["list"],
    "governance": ["show", TABLE],
    "fsck": [],
    "gc": [],
    "tasks": ["list"],
    "backup": ["--to", "backup.tar.gz"],
    "restore": [],
    "adopt": ["--original-is-deleted"],
    "upgrade": [],
    "delegation-service": [],
    "realms": ["list"],
    "principals": ["list"],
    "roles": ["list"],
    "grants": ["list"],
    "settings": [],
    "info": [TABLE],
    "receipts": [TABLE],
    "diff": [TABLE, "0", "1"],
    "plan": [TABLE],
    "lineage": [TABLE],
    "search": ["orders"],
    "show": [TABLE],
    "drop": [TABLE],
    "undrop": [TABLE],
    "rename": [TABLE, "db.u"],
    "register": [TABLE, "s3://bucket/t/metadata/1.metadata.json"],
    "import": ["folder", "s3://bucket/old"],
    "expire": [TABLE],
    "export": [],
    "doctor": [],
    "pipeline": ["run", "reconcile"],
}
"""Every command that takes a store, and what else it takes."""
SERVERS = {"serve", "delegation-service"}


def test_every_command_that_takes_a_store_is_tried_without_extras() -> None:
    assert set(ON_S3) == {command.name for command in COMMANDS if command.needs_store} | {"doctor"}


@pytest.mark.parametrize("command", ON_S3)
def test_each_command_on_s3_says_which_extra_to_install(plain: Path, command: str) -> None:
    said = outcome_of([f"{plain}/arco", command, *ON_S3[command], "--store", "s3://bucket"], _plain())
    assert said.returncode == 1
    extra = "pipeline" if command == "pipeline" else "serve" if command in SERVERS else "s3"
    assert f"install the extra '{extra}' of arco-catalog" in said.stdout + said.stderr
    assert command == "doctor" or (said.stdout, len(said.stderr.splitlines())) == ("", 1)


def test_a_realm_on_local_files_is_managed_without_extras(plain: Path, tmp_path: Path) -> None:
    store = ["--store", f"file:{tmp_path}/lake"]
    run(plain / "arco", "bootstrap", *store)
    run(plain / "arco", "principals", "create", "spark", *store)
    assert "spark" in run(plain / "arco", "principals", "list", *store)
    run(plain / "arco", "grants", "add", "catalog_admin", "TABLE_LIST", *store)
    ended = outcome_of([f"{plain}/arco", "roles", "list", "--url", "http://127.0.0.1:1"], _plain())
    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
    assert "install the extra 'serve' of arco-catalog" in ended.stderr


def test_reading_another_catalog_says_which_extra_to_install(plain: Path, tmp_path: Path) -> None:
    store = ["--store", f"file:{tmp_path}/lake"]
    run(plain / "arco", "init", *store)
    said = outcome_of([f"{plain}/arco", "import", "catalog", "old", *store], _plain())
    assert (said.returncode, len(said.stderr.splitlines())) == (1, 1)
    assert "install the extra 'import' of arco-catalog" in said.stderr


def test_uvx_runs_the_wheel(distributions: Distributions) -> None:
    uv = Path(sys.executable).with_name("uv")
    constraints = ("--constraints", PROJECT / "requirements" / "serve.txt")
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    command = (uv, "tool", "run", "--offline", "--quiet", "--isolated", "--python", sys.executable, *constraints)
    assert run(*command, "--from", f"{distributions.wheel}[serve,s3]", "arco", "--version") == f"arco {version}\n"
