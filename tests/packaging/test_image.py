"""The container image, as far as it can be tried without a builder: its build steps run in a folder, and what they make
is started as the image would start it."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.packaging.dockerfile import (
    BUILD,
    FINAL,
    PROJECT,
    arguments_of,
    context,
    environment_of,
    instruction,
    perform,
)
from tests.packaging.entry_point import SECONDS, entry_point
from tools import image


@dataclass(frozen=True)
class Container:
    """What runs in the image: its root, its environment, and what it printed first."""

    root: Path
    environment: Mapping[str, str]
    printed: str

    def check_health(self) -> int:
        """The exit code of the image's health check."""
        python, *rest = instruction("HEALTHCHECK").words
        return subprocess.run(
            [f"{self.root}{python}", *rest], env=self.environment, capture_output=True, timeout=SECONDS, check=False
        ).returncode


@pytest.fixture
def root(built_image: Path) -> Path:
    """The file system that the build stage makes, as a folder."""
    return built_image


@pytest.fixture
def container(root: Path, tmp_path: Path) -> Iterator[Container]:
    """The image's entry point with its command, on a free port of loopback and over a folder of the test's own."""
    told = environment_of(FINAL)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("ARCO_", "PYTHON", "AWS_"))
    } | {
        **told,
        "PATH": told["PATH"].replace("$PATH", os.environ["PATH"]),
        "ARCO_HOST": "127.0.0.1",
        "ARCO_PORT": "0",
        "ARCO_STORE": f"file:{tmp_path}/store",
    }
    [program] = instruction("ENTRYPOINT").words
    command = [f"{root}{program}", *instruction("CMD").words]
    with entry_point(command, environment, tmp_path) as (port, line):
        yield Container(root, environment | {"ARCO_PORT": str(port)}, line)


def test_what_the_build_makes_serves_and_is_healthy(container: Container) -> None:
    assert "Arco serves the warehouse 'arco'" in container.printed
    assert container.check_health() == 0


def test_it_is_unhealthy_where_nothing_answers(container: Container) -> None:
    nobody = Container(container.root, {**container.environment, "ARCO_PORT": "1"}, "")
    assert nobody.check_health() != 0


def test_it_needs_no_write_to_its_own_files(container: Container) -> None:
    packages = next((container.root / "opt/arco/lib").glob("python3.*")) / "site-packages"
    for module in ("arco_catalog/cli/serve.py", "uvicorn/server.py", "storage_backends/s3/store.py"):
        compiled = packages / module
        assert [*(compiled.parent / "__pycache__").glob(f"{compiled.stem}.*.pyc")], f"{module} is not compiled ahead"
    assert container.environment["PYTHONDONTWRITEBYTECODE"] == "1"


def test_it_holds_no_installer_and_no_test(root: Path) -> None:
    packages = {path.name for path in (root / "opt/arco/lib").glob("python3.*/site-packages/*")}
    assert {"arco_catalog", "reconciler", "storage_backends", "uvicorn", "botocore"} <= packages
    assert packages & {"pip", "setuptools", "uv", "tests", "pytest", "tools"} == set()


@pytest.mark.slow
def test_an_image_for_one_cloud_holds_no_library_of_another(tmp_path: Path) -> None:
    perform(BUILD, PROJECT, tmp_path / "root", ARCO_EXTRAS="gcs")

    packages = {path.name for path in (tmp_path / "root/opt/arco/lib").glob("python3.*/site-packages/*")}
    assert {"arco_catalog", "uvicorn", "rich", "google"} <= packages
    assert packages & {"botocore", "azure", "msal", "aiohttp"} == set()


@pytest.mark.slow
def test_a_cloud_that_there_is_not_fails_the_build(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="oracle"):
        perform(BUILD, PROJECT, tmp_path / "root", ARCO_EXTRAS="gcs,oracle")


def test_it_runs_as_a_user_without_rights_who_owns_its_folder() -> None:
    user = instruction("USER").text
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    owned = [each.text for each in FINAL if each.name == "COPY" and "--chown" in each.text]
    assert owned == [f"--from=build --chown={user} /data {instruction('VOLUME').text}"]
    assert environment_of(FINAL)["ARCO_STORE"] == f"file:{instruction('VOLUME').text}"
    assert environment_of(FINAL)["ARCO_PORT"] == instruction("EXPOSE").text


def test_everything_it_fetches_is_pinned_by_hash() -> None:
    steps = [each.text for stage in (BUILD, FINAL) for each in stage if each.name == "RUN"]
    installs = [part for step in steps for part in re.split(r"&&", step) if re.search(r"\bpip (install|wheel)", part)]
    assert len(installs) == 4
    ours = ("--no-deps --no-build-isolation --wheel-dir /data .", "--no-deps /data/*.whl")
    assert all("--require-hashes" in part or part.strip().endswith(ours) for part in installs)
    assert not any(word in step for step in steps for word in ("curl", "wget", "apt"))
    assert not any(each.name == "ADD" for stage in (BUILD, FINAL) for each in stage)


def test_a_builder_is_sent_what_is_copied_and_nothing_else() -> None:
    sent = set(context(PROJECT))
    assert {name.split("/")[0] for name in sent} == {
        *("CHANGELOG.md", "LICENSE", "MANIFEST.in", "NOTICE", "README.md", "pyproject.toml", "requirements"),
        *("arco_catalog", "reconciler", "storage_backends"),
    }
    assert not any(name.endswith(".pyc") for name in sent)


@pytest.mark.parametrize(
    ("builder", "platforms", "expected"),
    [
        ("docker", "", ["docker build --tag arco-catalog ."]),
        (
            "docker",
            "linux/amd64,linux/arm64",
            [
                "docker buildx build --platform linux/amd64,linux/arm64 --tag arco-catalog "
                "--output type=oci,dest=dist/arco-catalog-image.tar ."
            ],
        ),
        ("podman", "", ["podman build --tag arco-catalog ."]),
        (
            "buildah",
            "linux/arm64",
            [
                "buildah build --platform linux/arm64 --manifest arco-catalog .",
                "buildah manifest push --all arco-catalog oci-archive:dist/arco-catalog-image.tar",
            ],
        ),
    ],
)
def test_each_builder_is_told_in_its_own_words(builder: str, platforms: str, expected: list[str]) -> None:
    assert [" ".join(command) for command in image.commands(builder, platforms)] == expected


@pytest.mark.parametrize("builder", ["docker", "podman", "buildah"])
@pytest.mark.parametrize("platforms", ["", "linux/arm64"])
def test_each_builder_is_told_the_clouds(builder: str, platforms: str) -> None:
    build = image.commands(builder, platforms, "s3,gcs")[0]

    assert "--build-arg ARCO_EXTRAS=s3,gcs " in " ".join(build)
    assert set(arguments_of(BUILD)) == {"ARCO_EXTRAS"}


def test_where_no_builder_is_make_image_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert image.main([]) == 1
    assert "No image was built" in capsys.readouterr().err


def test_a_docker_without_its_daemon_is_no_builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    assert image.find_builder() is None
    (tmp_path / "podman").symlink_to("/bin/true")
    assert image.find_builder() == "podman"
