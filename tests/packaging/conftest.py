"""The distributions of a release, built once for all tests of them."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.packaging.chroot import Root, image_root
from tests.packaging.dockerfile import BUILD, PROJECT, perform

SECONDS = 1200
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
