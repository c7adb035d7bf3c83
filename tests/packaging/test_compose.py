"""The compose files as their services would run in containers: the servers are processes here, each in the root file
system of its image or a stand-in for it, without capabilities."""

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.compose import FOLDER, RESOLVER, resolved
from tests.packaging.containers import PAUSE_SECONDS, SECONDS, Image, Project, project
from tests.packaging.dockerfile import PROJECT

pytestmark = [
    pytest.mark.needs(RESOLVER, ".tools/versitygw"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount and change the root"),
]

CLIENT = Path(__file__).parent / "compose_client.py"
S3_KEYS = {"AWS_ACCESS_KEY_ID": "arco-demo", "AWS_SECRET_ACCESS_KEY": "arco-demo-secret", "AWS_REGION": "us-east-1"}
DELEGATED = "http://delegation:8182/delegation-service/api/v1/tasks"


def status_of(made: Project, *words: str) -> str:
    return made.outside("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", *words)


def ask(made: Project, url: str) -> Any:
    """What Prometheus's API answers, once it listens."""
    return json.loads(made.outside("curl", "--silent", "--retry", "30", "--retry-connrefused", url))["data"]


def test_an_engine_writes_a_table_with_the_login_and_the_settings_that_the_files_give_it(servers: Project) -> None:
    arguments = (FOLDER / "spark-defaults.conf", servers.folder / "logins" / "engines.env")
    printed = servers.outside(sys.executable, CLIENT, *arguments, PYTHONPATH=str(PROJECT), **S3_KEYS)

    assert printed == "[10, 20]\n"
    assert {path.name for path in (servers.folder / "objects/lake/catalog").iterdir()} >= {"_realm", "arco"}


def test_no_caller_gets_in_without_a_login_and_other_users_read_the_logins_of_engines_alone(servers: Project) -> None:
    assert status_of(servers, "http://catalog:8181/v1/config?warehouse=arco") == "401"
    assert status_of(servers, DELEGATED) == "401"
    modes = {path.name: path.stat().st_mode & 0o777 for path in (servers.folder / "logins").iterdir()}
    assert modes == {"token.key": 0o600, "root.json": 0o600, "engines.env": 0o644, "purges.env": 0o644}


def test_the_delegation_service_lets_in_the_login_that_is_made_for_it_and_not_that_of_engines(servers: Project) -> None:
    statuses = []
    for login in ("purges", "engines"):
        line = (servers.folder / "logins" / f"{login}.env").read_text().strip()
        form = ("grant_type=client_credentials", "scope=execute_tasks")
        client_id, secret = line.removeprefix("export ARCO_CREDENTIAL=").split(":")
        fields = (*form, f"client_id={client_id}", f"client_secret={secret}")
        given = [word for field in fields for word in ("--data", field)]
        answer = json.loads(servers.outside("curl", "--silent", *given, "http://catalog:8181/v1/oauth/tokens"))
        token = answer.get("access_token", "")
        statuses.append(status_of(servers, "--header", f"Authorization: Bearer {token}", DELEGATED))
    assert statuses == ["200", "401"]


def test_each_server_listens_at_the_ports_that_are_published(servers: Project) -> None:
    services = {name: container.service for name, container in servers.containers.items()}
    published = [(name, port["target"]) for name, each in services.items() for port in each.get("ports", ())]

    assert {7070, 8181, 8182} <= {port for _, port in published}
    for name, port in published:
        servers.outside("curl", "--silent", "--retry", "30", "--retry-connrefused", f"http://{name}:{port}/")


@pytest.mark.optional("prometheus")
def test_prometheus_scrapes_the_catalog_and_has_its_alerts(servers: Project) -> None:
    deadline = time.monotonic() + SECONDS
    query = "http://prometheus:9090/api/v1/query?query=up"
    while not (found := ask(servers, query)["result"]):
        assert time.monotonic() < deadline, servers.log("prometheus")
        time.sleep(PAUSE_SECONDS)
    assert [(each["metric"]["job"], each["value"][1]) for each in found] == [("arco", "1")]
    [group] = ask(servers, "http://prometheus:9090/api/v1/rules")["groups"]
    assert len(group["rules"]) > 5


def test_setup_goes_on_where_it_was_stopped_and_changes_nothing_that_is_done(
    images: Mapping[str, Image], tmp_path: Path
) -> None:
    services = resolved()
    logins = tmp_path / "logins"
    with project({name: services[name] for name in ("s3", "setup")}, images, tmp_path) as made:
        made.up("setup")
        made.await_end("setup")
        setup = made.containers["setup"]
        before = {path.name: path.read_text() for path in logins.iterdir()}
        for lost in (before.keys(), before.keys() - {"token.key", "root.json"}, {"purges.env"}, set()):
            for name in lost:
                (logins / name).unlink()

            assert setup.run(*setup.program) == 0, made.log("setup")

            after = {path.name: path.read_text() for path in logins.iterdir()}
            assert after.keys() == before.keys()
            assert {name for name in after if after[name] != before[name]} == set(lost)
            before = after
