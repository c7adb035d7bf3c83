"""The image's root file system in a chroot: read-only, without root, and with no other file of this machine's to see
than the base image's stand-ins."""

import http.client
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.chroot import VOLUME, Mount, Root, environment
from tests.packaging.dockerfile import instruction
from tests.packaging.entry_point import SECONDS, entry_point

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount and change the root")


USER_ID, GROUP_ID = map(int, instruction("USER").text.split(":"))


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A folder of the image's user."""
    folder = tmp_path / "volume"
    folder.mkdir()
    os.chown(folder, USER_ID, GROUP_ID)
    return folder


@pytest.fixture
def image(root_of_image: Root, volume: Path) -> Root:
    return root_of_image.mounting(Mount(VOLUME, volume), Mount("/tmp"))


@pytest.fixture
def port(image: Root, tmp_path: Path) -> Iterator[int]:
    """Of the server that the image's entry point starts with its command, at a free port of loopback."""
    command = image.command([*instruction("ENTRYPOINT").words, *instruction("CMD").words])
    with entry_point(command, environment(ARCO_HOST="127.0.0.1", ARCO_PORT="0"), tmp_path) as (port, _):
        yield port


def run(image: Root, *program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        image.command(program),
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_it_serves_from_a_root_that_cannot_be_written(image: Root, port: int, volume: Path) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request(
        "POST", "/v1/arco/namespaces", json.dumps({"namespace": ["made"]}), {"content-type": "application/json"}
    )
    assert connection.getresponse().status == 200
    connection.close()
    assert {path.stat().st_uid for path in volume.rglob("*")} == {USER_ID}

    check = instruction("HEALTHCHECK").words
    assert run(image, *check, ARCO_PORT=str(port)).returncode == 0
    assert run(image, *check, ARCO_PORT="1").returncode != 0


def test_its_user_may_write_the_volume_and_its_scratch_and_nothing_else(image: Root) -> None:
    tried = """
import os
print(os.getuid(), os.getgid(), os.getcwd())
for folder in ("/", "/opt/arco", "/etc", "/usr", "/usr/local/lib", "/var/lib/arco", "/tmp"):
    try:
        open(f"{folder}/tried", "w").close()
        os.remove(f"{folder}/tried")
        print(folder)
    except OSError:
        pass
"""
    done = run(image, "/opt/arco/bin/python", "-c", tried)
    assert done.stdout.splitlines() == [
        f"{instruction('USER').text.replace(':', ' ')} {instruction('WORKDIR').text}",
        instruction("VOLUME").text,
        "/tmp",
    ], done.stderr


@pytest.mark.parametrize("program", [["--version"], ["doctor", "--help"], ["tasks", "run", "--help"]])
def test_other_commands_run_there(image: Root, program: list[str]) -> None:
    done = run(image, "/opt/arco/bin/arco", *program)
    assert done.returncode == 0, done.stderr
