"""Services of compose files as processes of this machine: their commands, variables, files, users and ports, in roots
and in a network of their own. Each service has an address, and the others find it by its name."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import IO

from tests.packaging.chroot import Mount, Root
from tests.packaging.compose import Service

SECONDS = 600
PAUSE_SECONDS = 0.2
NETWORK = """
ip link set lo up
for address in "$@"; do ip address add "$address/32" dev lo; done
echo ready
exec sleep infinity
"""
NAMES = """
mount --make-rprivate /
mount --bind "$1" /etc/hosts
shift
exec "$@"
"""


@dataclass(frozen=True)
class Image:
    """What a container gets from its image: a root, variables, and what runs unless the service names another."""

    root: Root
    environment: Mapping[str, str]
    entrypoint: Sequence[str]
    command: Sequence[str]
    health: Sequence[str] = ()


@dataclass(frozen=True)
class Container:
    """A service, ready to be started."""

    service: Service
    image: Image
    root: Root
    prefix: Sequence[str]
    log: Path

    @property
    def program(self) -> Sequence[str]:
        """What the container runs: an entry point of the service's own leaves the command of the image out."""
        own = self.service.get("entrypoint")
        command = self.service.get("command") or ([] if own else self.image.command)
        return [*(own or self.image.entrypoint), *command]

    @property
    def health(self) -> Sequence[str]:
        """The command of its health check."""
        check = self.service.get("healthcheck", {}).get("test")
        assert check is None or check[0] == "CMD"
        return check[1:] if check else self.image.health

    def start(self, program: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts a program in the container."""
        environment = {"WORKDIR": "/", **self.image.environment, **self.service.get("environment", {})}
        with open(self.log, "ab") as log:
            return subprocess.Popen(
                [*self.prefix, *self.root.command(program)], env=environment, stdout=log, stderr=log
            )

    def run(self, *program: str) -> int:
        """The exit code of a program that ends."""
        return self.start(program).wait(SECONDS)


class Project:
    """The services of one project, each in a container that can be started."""

    def __init__(
        self, services: Mapping[str, Service], images: Mapping[str, Image], folder: Path, network: int
    ) -> None:
        self.folder = folder
        self.addresses = addresses_of(services)
        self._prefix = ("nsenter", f"--net=/proc/{network}/ns/net")
        hosts = folder / "hosts"
        names = {f"localhost {socket.gethostname()}": "127.0.0.1", **self.addresses}
        hosts.write_text("".join(f"{address} {name}\n" for name, address in names.items()))
        self.containers = {name: self._container(name, services[name], images) for name in services}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def _container(self, name: str, service: Service, images: Mapping[str, Image]) -> Container:
        image = images[service["image"].partition(":")[0]]
        root = image.root.mounting(Mount("/etc/hosts", self.folder / "hosts", read_only=True))
        if "user" in service:
            assert service["user"] == root.user
        mounts = [self._mount(each, root) for each in service.get("volumes", ())]
        memory = [Mount(target) for target in service.get("tmpfs", ())]
        return Container(service, image, root.mounting(*mounts, *memory), self._prefix, self.folder / f"{name}.log")

    def _mount(self, volume: Mapping[str, str | bool], root: Root) -> Mount:
        target = str(volume["target"])
        source = Path(str(volume["source"]))
        if volume["type"] == "volume":
            source = self.folder / source
            if not source.exists():
                source.mkdir()
                in_image = root.folder / target.lstrip("/")
                if in_image.exists():  # a new volume takes the owner that the folder has in the image
                    os.chown(source, in_image.stat().st_uid, in_image.stat().st_gid)
        return Mount(target, source, bool(volume.get("read_only")))

    def up(self, *names: str) -> None:
        """Starts these services and what they wait for, in that order, and waits as compose does."""
        for name in names:
            if name in self._running:
                continue
            waits = self.containers[name].service.get("depends_on", {})
            self.up(*waits)
            for other, wait in waits.items():
                self._await(other, wait["condition"])
            self._running[name] = self.containers[name].start(self.containers[name].program)

    def _await(self, name: str, condition: str) -> None:
        if condition == "service_completed_successfully":
            self.await_end(name)
        elif condition == "service_healthy":
            self.await_health(name)

    def await_end(self, name: str) -> None:
        """Waits until a running service has ended well."""
        assert self._running[name].wait(SECONDS) == 0, self.log(name)

    def await_health(self, name: str) -> None:
        """Waits until the health check of a running service succeeds."""
        container, deadline = self.containers[name], time.monotonic() + SECONDS
        assert container.health, f"{name} has no health check"
        while container.run(*container.health):
            assert self._running[name].poll() is None, self.log(name)
            assert time.monotonic() < deadline, self.log(name)
            time.sleep(PAUSE_SECONDS)

    def log(self, name: str) -> str:
        """What a service and its health checks have printed."""
        return self.containers[name].log.read_text()

    def outside(self, *program: str | Path, **environment: str) -> str:
        """The output of a program of this machine in the project's network, which must succeed."""
        done = subprocess.run(
            self._outside(program),
            env={"PATH": os.environ["PATH"], **environment},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def outside_start(
        self, program: Sequence[str | Path], out: IO[bytes], **environment: str
    ) -> subprocess.Popen[bytes]:
        """Starts a program of this machine in the project's network."""
        variables = {"PATH": os.environ["PATH"], **environment}
        return subprocess.Popen(self._outside(program), env=variables, stdout=out, stderr=out)

    def _outside(self, program: Sequence[str | Path]) -> Sequence[str | Path]:
        return (*self._prefix, "unshare", "--mount", "sh", "-euc", NAMES, "sh", str(self.folder / "hosts"), *program)

    def down(self) -> None:
        """Stops what runs, the last first."""
        for process in reversed(self._running.values()):
            process.terminate()
            process.wait(SECONDS)


def addresses_of(services: Mapping[str, Service]) -> Mapping[str, str]:
    """The address of each service: none of loopback, where servers would take a name for an attack of a web page."""
    return {name: f"10.89.0.{number}" for number, name in enumerate(services, start=2)}


@contextmanager
def project(services: Mapping[str, Service], images: Mapping[str, Image], folder: Path) -> Iterator[Project]:
    """A project in a new network, of which nothing runs before `up` and after the context."""
    addresses = addresses_of(services).values()
    with subprocess.Popen(["unshare", "--net", "sh", "-euc", NETWORK, "sh", *addresses], stdout=PIPE) as network:
        try:
            assert network.stdout is not None
            assert network.stdout.readline() == b"ready\n"
            made = Project(services, images, folder, network.pid)
            try:
                yield made
            finally:
                made.down()
        finally:
            network.kill()


def copied(program: str | Path, folder: Path) -> Path:
    """A folder for /usr/local that has a copy of the program in its bin."""
    (folder / "bin").mkdir(parents=True)
    shutil.copy(program, folder / "bin")
    return folder
