"""What the container runs, as a process; and the service at work, under the policies that the plan gives it."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE

import pytest

from arco_catalog.state.task import Status
from arco_catalog.state.task_log import all_hints
from arco_catalog.upkeep.delegation_service.payload import DelegatedPurge
from arco_catalog.upkeep.delegation_service.places import LocationHeld
from storage_backends import ANY, StoreDenied
from tests.infra.delegation.conftest import LEAST
from tests.infra.delegation.test_plan import container
from tests.infra.deployments import OPERATOR
from tests.infra.evaluation import Policies, Request
from tests.infra.judged_store import JudgedStore
from tests.infra.policies import Statement, of_bucket, statements
from tests.infra.terraform import Plan
from tests.packaging.dockerfile import instruction
from tests.support.certificates import Authority
from tests.support.foreign_tables import foreign_table
from tests.upkeep.delegation_service.conftest import Services

BUCKET = str(LEAST["store"]).removeprefix("s3://")


def test_the_command_of_the_container_starts_the_service_and_keeps_secrets_in_files(
    service_plan: Plan, tmp_path: Path
) -> None:
    made, scratch = container(service_plan, "whole"), tmp_path / "scratch"
    scratch.mkdir()
    authority = Authority.make(tmp_path / "authority.pem", "authority")
    certificate, key = authority.issue(tmp_path, "server", address="127.0.0.1")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "arco").write_text(f'#!/bin/sh\nexec {sys.executable} -m arco_catalog.cli "$@"\n')
    (programs / "arco").chmod(0o755)
    secrets = {
        "TLS_CERTIFICATE": certificate.read_text(),
        "TLS_KEY": key.read_text(),
        "TLS_AUTHORITY": authority.file.read_text(),
        "TOKEN_KEY": "an-example-0123456789-abcdefghijklmnopqrstuvwxyz",
    }
    volume = instruction("VOLUME").text
    given = {each["name"]: each["value"].replace(volume, str(scratch)) for each in made["environment"]}
    given |= {"ARCO_STORE": f"file:{tmp_path}/store", "ARCO_DELEGATION_PORT": "0"}
    for of_a_realm in ("ARCO_REALM", "ARCO_AUTH"):
        del given[of_a_realm]
    [script] = made["command"]
    with subprocess.Popen(
        [*made["entryPoint"], script.replace(volume, str(scratch))],
        env={"PATH": f"{programs}:{os.environ['PATH']}", "ARCO_HOST": "0.0.0.0", **given, **secrets},
        stdout=PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        process.terminate()

    assert line.startswith("Arco's delegation service is at https://")
    assert process.returncode == 0
    assert {each["name"] for each in made["secrets"]} == secrets.keys()
    assert not [name for name, value in secrets.items() if value[-60:-10].encode() in environment]
    files = {file.name: (file.read_text().strip(), file.stat().st_mode & 0o777) for file in scratch.iterdir()}
    names = dict(zip(("tls.crt", "tls.key", "ca.crt", "token.key"), secrets.values(), strict=True))
    assert files == {name: (text.strip(), 0o600) for name, text in names.items()}


def judge(services: Services, plan: Plan, bucket: Sequence[Statement] = (), role: str = "delegation") -> None:
    """Judges all later calls to the store as those of the service's role, of this name, and by the bucket's policy."""
    [policy] = [each for each in plan.deployment("least") if each.address == "aws_iam_role_policy.service"]
    policies = Policies(statements(policy.address, policy.values["policy"]), bucket)

    def allows(action: str, key: str, prefix: str | None) -> bool:
        resource = f"arn:aws:s3:::{BUCKET}/{key}" if key else f"arn:aws:s3:::{BUCKET}"
        context = {} if prefix is None else {"s3:prefix": prefix}
        return policies.allow(Request(f"arn:aws:iam::123456789012:role/{role}", action, resource, context))

    assert isinstance(services.store, JudgedStore)
    services.store.allows = allows


@pytest.fixture
def services(tmp_path: Path) -> Services:
    made = Services(tmp_path, new_store=JudgedStore)
    assert isinstance(made.store, JudgedStore)
    made.store.allows = lambda action, key, prefix: True
    return made


async def test_the_role_suffices_to_purge_tables_but_those_of_the_store(services: Services, service_plan: Plan) -> None:
    held, others = (foreign_table(services.folder, name) for name in ("held", "others"))
    await services.ours.namespace("db")
    await services.ours.table("held", location=held.location)
    judge(services, service_plan)

    ended = await services.purge(others)
    await services.service.sweep_once()

    assert ended.status is Status.SUCCESS, ended.document
    assert others.files() == []
    session = services.session(DelegatedPurge.parse(others.payload()))
    assert [hint async for hint in all_hints(session.state)] == []
    with pytest.raises(LocationHeld):
        await services.submit(held)


async def test_the_bucket_of_a_realm_lets_the_service_in_as_an_operator_and_not_as_a_stranger(
    services: Services, service_plan: Plan, plan: Plan
) -> None:
    of_realm, table = of_bucket(plan.deployment("signed")), foreign_table(services.folder)
    judge(services, service_plan, of_realm, "stranger")
    with pytest.raises(StoreDenied):
        await services.submit(table)

    judge(services, service_plan, of_realm, OPERATOR.rpartition("/")[2])

    assert (await services.purge(table)).status is Status.SUCCESS


async def test_the_role_may_write_nothing_of_the_catalog_and_delete_no_task(
    services: Services, service_plan: Plan
) -> None:
    judge(services, service_plan)

    for key in ("wh/_catalog/core/manifest.json", "_realm/core/manifest.json", "wh/warehouse/db/t/data.parquet"):
        with pytest.raises(StoreDenied):
            await services.store.put(key, b"{}", ANY)
    for key in ("_catalog/tasks/one/1.json", "wh/warehouse/db/t/data.parquet", "wh/_catalog/tasks/open/one"):
        with pytest.raises(StoreDenied):
            await services.store.delete(key)
