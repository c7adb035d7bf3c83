"""Fixtures that several rooms' tests use."""

import gc
import itertools
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.infra.terraform import plugins
from tests.support.loopback import stay_here
from tools.package import build
from tools.support.azurite import AzuriteServer, azurite
from tools.support.environment import PROJECT
from tools.support.s3_servers import S3Server, moto_server

# The same examples each time, however long one takes: time is no law of what is tested, and this machine may be busy.
settings.register_profile("thorough", deadline=None, derandomize=True)
settings.register_profile("arco", parent=settings.get_profile("thorough"), max_examples=40)
settings.register_profile("brief", parent=settings.get_profile("thorough"), max_examples=5)
settings.load_profile("arco")

stay_here()

pytest.register_assert_rewrite("tests.storage_backends.contract")

# Imports and the collection of tests make nearly no garbage: see `pytest_collection_finish`.
gc.disable()

NEEDS = {"engines": ("java", "mvn"), "infra": ("terraform",), "reconciler": ("java",)}
"""What the tests of a folder need besides Python. Others say so by the marker `needs`."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what needs a tool that is not there, and says so; with CI=true it runs, and fails, unless the tool is
    optional."""
    everything = os.environ.get("CI") == "true"
    lacking = {item: missing for item in items if (missing := _missing_for(item, needed=not everything))}
    if lacking:
        for missing, count in Counter(lacking.values()).items():
            config.get_terminal_writer().line(f"left out for want of {missing}: {count} tests")
        config.hook.pytest_deselected(items=[*lacking])
        items[:] = [item for item in items if item not in lacking]


def pytest_collection_finish() -> None:
    """Leaves what imports and the collection of tests made out of garbage collections, which would go through all of it
    again and again: a fifth of the time of many tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def _missing_for(item: pytest.Item, *, needed: bool) -> str:
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    tools = [tool for marker in item.iter_markers("optional") for tool in marker.args]
    if needed:
        tools += [*NEEDS.get(folder, ()), *(tool for marker in item.iter_markers("needs") for tool in marker.args)]
    return " and ".join(tool for tool in tools if not _is_there(tool))


def _is_there(tool: str) -> bool:
    """Whether a program is in PATH, a provider of Terraform where those are, or a file in the project, which a make
    target has made."""
    if "/" in tool:
        return (PROJECT / tool).exists()
    _, plugin, provider = tool.partition("terraform-provider-")
    return shutil.which(tool) is not None if not plugin else plugins(provider) is not None


_bucket_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """An S3 whose conditional writes hold, shared by the whole run."""
    with moto_server() as server:
        yield server


@pytest.fixture(scope="session")
def careless_s3() -> Iterator[S3Server]:
    """A real server that drops `If-Match` and `If-None-Match`, shared by the whole run."""
    with moto_server(ignore_conditions=True) as server:
        yield server


@pytest.fixture
def s3_endpoint(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of that S3; the environment of this test, and of what it starts, leads there."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server.endpoint


@pytest.fixture
def s3_bucket(s3_server: S3Server, s3_endpoint: str) -> str:
    """The name of an empty bucket at `s3_endpoint`."""
    name = f"bucket-{next(_bucket_numbers)}"
    s3_server.make_bucket(name)
    return name


@pytest.fixture(scope="session")
def azurite_server() -> Iterator[AzuriteServer]:
    """An Azure Blob Storage, shared by the whole run."""
    with azurite() as server:
        yield server


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip, as `make package` builds it."""
    path = tmp_path_factory.mktemp("package") / "arco-catalog-lambda.zip"
    build(path)
    return path
