"""Servers of an earlier program and of this one beside each other over one store, under load: no request fails, and
then `arco upgrade` (`make test-upgrade`; `ARCO_UPGRADE_SECONDS` is how long)."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.packaging.dockerfile import PROJECT
from tests.upgrade.load import Load, Serving
from tools.support.arco_server import WAREHOUSE, ArcoServer

pytestmark = pytest.mark.slow
SECONDS = float(os.environ.get("ARCO_UPGRADE_SECONDS", "300"))
FROM = (Path(__file__).parent / "FROM").read_text().strip()
"""The commit of the earlier program."""


def program(folder: Path) -> Sequence[str]:
    """`arco` of the packages in a folder, whatever is installed."""
    return ("env", "-C", str(folder), f"PYTHONPATH={folder}", sys.executable, "-m", "arco_catalog.cli")


def run(*command: str | Path) -> str:
    """The output of a command. Raises `AssertionError` with all that it printed if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """`arco` of a wheel that is built from the commit of FROM."""
    folder = tmp_path_factory.mktemp("earlier")
    archive, source, packages = folder / "archive.tar", folder / "source", folder / "packages"
    source.mkdir()
    run("git", "-C", PROJECT, "archive", "--output", archive, FROM)
    run("tar", "--extract", "--file", archive, "--directory", source)
    uv = Path(sys.executable).with_name("uv")
    python = ("--python", sys.executable)
    run(uv, "build", "--quiet", "--wheel", "--no-build-isolation", *python, "--out-dir", folder, source)
    [wheel] = folder.glob("*.whl")
    run(uv, "pip", "install", "--quiet", "--no-deps", *python, "--target", packages, wheel)
    return program(packages)


def test_the_earlier_program_is_another(earlier: Sequence[str]) -> None:
    assert "upgrade" in run(*program(PROJECT), "--help")
    assert "raise the version of the registry" not in run(*earlier, "--help")


def test_no_request_fails_while_servers_are_replaced_one_after_the_other(
    earlier: Sequence[str], tmp_path: Path
) -> None:
    store, serving = f"file:{tmp_path}/store", Serving()
    this = program(PROJECT)

    def start(of: Sequence[str], name: str) -> ArcoServer:
        server = ArcoServer(store, tmp_path / f"{name}.log", program=of)
        server.start()
        serving.add(server)
        return server

    def stop(server: ArcoServer) -> None:
        serving.remove(server)
        server.kill()

    first, second = start(earlier, "earlier-1"), start(earlier, "earlier-2")
    try:
        with Load(serving, "shared") as load:
            load.go_on(SECONDS / 10)
            stop(first)
            first = start(this, "this-1")
            load.go_on(SECONDS * 4 / 10)  # both programs beside each other
            stop(second)
            second = start(this, "this-2")
            load.go_on(SECONDS / 10)
            stop(first)
            first = start(earlier, "earlier-3")  # the way back
            load.go_on(SECONDS * 3 / 10)
            stop(first)
            first = start(this, "this-3")
            load.go_on(SECONDS / 10)
        print(f"\n{load.requests} requests in {SECONDS:.0f} s, none of which failed")

        of_store = ("--store", store, "--warehouse", WAREHOUSE)
        assert json.loads(run(*this, "fsck", "--json", *of_store))["ok"]
        [prevented] = upgrade(this, *of_store, fails=True)
        assert prevented["prevented_by"] is not None, "an earlier program has committed within a day"
        [raised] = upgrade(this, *of_store, "--force")
        assert (raised["from_version"], raised["to_version"]) == (1, 2)
        with Load(serving, "later") as load:
            load.go_on(1)
        assert json.loads(run(*this, "fsck", "--json", *of_store))["ok"]
    finally:
        first.kill()
        second.kill()
    refused = subprocess.run([*earlier, "ls", *of_store], capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode != 0
    assert "version" in refused.stderr


def upgrade(this: Sequence[str], *options: str, fails: bool = False) -> Sequence[dict[str, object]]:
    """What `arco upgrade` reports of each registry. Raises `AssertionError` unless it fails as expected."""
    done = subprocess.run(
        [*this, "upgrade", "--json", *options], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == int(fails), done.stdout + done.stderr
    found: Sequence[dict[str, object]] = json.loads(done.stdout)["registries"]
    return found
