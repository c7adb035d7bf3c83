"""The distributions of a release, built once for all tests of them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.packaging.chroot import Mount, Root, bare_root, environment, image_root
from tests.packaging.compose import resolved
from tests.packaging.containers import Image, Project, copied, project
from tests.packaging.dockerfile import BUILD, PROJECT, instruction, perform

SECONDS = 1200
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MAKES_NO_PACKAGE = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info")


def run(*command: str | Path, **environment: str) -> str:
    """The output of a program that must succeed, started where no checkout is, with nothing of this one's settings."""
    kept = {name: os.environ[name] for name in os.environ if not name.startswith(("ARCO_", "PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        command, cwd="/", env={**kept, **environment}, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Distributions:
    """The two files that a release uploads."""

    sdist: Path
    wheel: Path


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Both, as PyPA's `build` makes them: the wheel from the source distribution."""
    scratch = tmp_path_factory.mktemp("distributions")
    shutil.copytree(PROJECT, scratch / "checkout", ignore=MAKES_NO_PACKAGE)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", scratch / "dist", scratch / "checkout")
    [sdist] = (scratch / "dist").glob("*.tar.gz")
    [wheel] = (scratch / "dist").glob("*.whl")
    return Distributions(sdist, wheel)


@pytest.fixture(scope="session")
def built_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file system that the build stage of the Dockerfile makes, as a folder."""
    folder = tmp_path_factory.mktemp("image") / "root"
    perform(BUILD, PROJECT, folder)
    return folder


@pytest.fixture(scope="session")
def root_of_image(built_image: Path, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """The image's root file system, where only root may mount it."""
    return image_root(built_image, tmp_path_factory.mktemp("image-root") / "root")


@pytest.fixture(scope="session")
def images(root_of_image: Root, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Image]:
    """The images of servers, by their names."""
    of_catalog = Image(
        root_of_image,
        environment(),
        instruction("ENTRYPOINT").words,
        instruction("CMD").words,
        instruction("HEALTHCHECK").words,
    )
    folder = tmp_path_factory.mktemp("roots")
    gateway = bare_root(folder / "s3", copied(PROJECT / ".tools/versitygw", folder / "s3-local"), "0:0")
    scraper = bare_root(folder / "prometheus", Path("/usr/local"), "65534:65534").mounting(Mount("/prometheus"))
    options = ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
    return {
        "arco-catalog": of_catalog,
        "versity/versitygw": Image(gateway, {"PATH": PATH}, ["versitygw"], []),
        "prom/prometheus": Image(scraper, {"PATH": PATH}, ["prometheus"], options),
    }


@pytest.fixture(scope="session")
def servers(images: Mapping[str, Image], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """All servers that can run here, without Prometheus where the machine has none."""
    services = resolved("delegation", "metrics")
    here = {"s3", "setup", "catalog", "delegation", *(["prometheus"] if shutil.which("prometheus") else [])}
    chosen = {name: each for name, each in services.items() if name in here}
    with project(chosen, images, tmp_path_factory.mktemp("project")) as made:
        made.up(*here)
        for name in ("catalog", "delegation"):
            made.await_health(name)
        yield made
