from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.infra.deployments import ACCEPTED, any_package, named
from tests.infra.terraform import Plan, Workspace
from tools.support.s3_servers import S3Server, moto_server


@pytest.fixture(scope="session")
def aws() -> Iterator[S3Server]:
    with moto_server() as server:
        yield server


@pytest.fixture(scope="session")
def plan(aws: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """All accepted deployments, planned at once."""
    scratch: Path = tmp_path_factory.mktemp("accepted")
    package = any_package(scratch)
    workspace = Workspace.of_deployments({name: named(given, package) for name, given in ACCEPTED.items()}, scratch)
    workspace.use(aws)
    return workspace.plan()
