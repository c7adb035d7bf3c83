"""The image's root file system in a chroot: read-only, without root, and with no other file of this machine's to see
than the base image's stand-ins."""

import http.client
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.packaging.chroot import FINAL, Image, assemble, instruction

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount and change the root")
SECONDS = 120


@pytest.fixture(scope="module")
def image(built_image: Path, tmp_path_factory: pytest.TempPathFactory) -> Image:
    return assemble(built_image, tmp_path_factory.mktemp("image-root"))


@pytest.fixture
def port(image: Image, tmp_path: Path) -> Iterator[int]:
    """Of the server that the image's entry point starts with its command, at a free port of loopback."""
    [program], command = (next(each.words for each in FINAL if each.name == name) for name in ("ENTRYPOINT", "CMD"))
    with (
        open(tmp_path / "log", "w+") as log,
        subprocess.Popen(
            image.command([program, *command]),
            env=image.environment(ARCO_HOST="127.0.0.1", ARCO_PORT="0"),
            stdout=PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r" at http://127\.0\.0\.1:(\d+) ", line)
            assert found, line + (tmp_path / "log").read_text()
            yield int(found[1])
        finally:
            process.terminate()
            process.wait(SECONDS)


def run(image: Image, *program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        image.command(program),
        env=image.environment(**variables),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_it_serves_from_a_root_that_cannot_be_written(image: Image, port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request(
        "POST", "/v1/arco/namespaces", json.dumps({"namespace": ["made"]}), {"content-type": "application/json"}
    )
    assert connection.getresponse().status == 200
    connection.close()
    owners = {path.stat().st_uid for path in image.volume.rglob("*")}
    assert owners == {int(instruction("USER").split(":")[0])}

    [check] = [each.words for each in FINAL if each.name == "HEALTHCHECK"]
    assert run(image, *check, ARCO_PORT=str(port)).returncode == 0
    assert run(image, *check, ARCO_PORT="1").returncode != 0


def test_its_user_may_write_the_volume_and_its_scratch_and_nothing_else(image: Image) -> None:
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
        f"{instruction('USER').replace(':', ' ')} {instruction('WORKDIR')}",
        instruction("VOLUME"),
        "/tmp",
    ], done.stderr


@pytest.mark.parametrize("program", [["--version"], ["doctor", "--help"], ["tasks", "run", "--help"]])
def test_other_commands_run_there(image: Image, program: list[str]) -> None:
    done = run(image, "/opt/arco/bin/arco", *program)
    assert done.returncode == 0, done.stderr
