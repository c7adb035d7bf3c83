"""Recipes to run the catalog: compose files, a systemd unit, proxies. What is here to check them with is
used; what is not is checked by reading them."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from arco_catalog.cli.client_config import client_config
from arco_catalog.cli.program import SERVE
from arco_catalog.config.variables import DELEGATION_PORT, DELEGATION_SERVICE
from tests.packaging.compose import FOLDER, RESOLVER, resolved
from tests.packaging.dockerfile import FINAL, PROJECT, environment_of, instruction

DEPLOY = PROJECT / "deploy"
COMPOSE = sorted(FOLDER.glob("*.yaml"))
USER = instruction("USER").text
PORT = environment_of(FINAL)["ARCO_PORT"]
VARIABLES = {option.variable.name for option in SERVE}
DELEGATION_VARIABLES = {variable.name for variable in DELEGATION_SERVICE}
S3 = {"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": "http://s3:7070"}


def services(path: Path) -> Mapping[str, Any]:
    """The services of a compose file, as it is written."""
    found: Mapping[str, Any] = yaml.safe_load(path.read_text())["services"]
    return found


def all_services() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in COMPOSE:
        yield from services(path).items()


def test_there_is_a_compose_file_for_engines_for_the_delegation_service_and_for_metrics() -> None:
    assert {path.stem: set(services(path)) for path in COMPOSE} == {
        "compose": {"s3", "setup", "catalog"},
        "delegation": {"delegation"},
        "engines": {"trino", "spark"},
        "metrics": {"prometheus", "grafana"},
    }


def test_every_service_is_a_fixed_version_and_published_on_loopback_only() -> None:
    for name, service in all_services():
        image = service["image"]
        if image != "arco-catalog":
            digest = r"" if name == "spark" else r"@sha256:[0-9a-f]{64}"  # no digest of Spark's image is known
            assert re.fullmatch(rf"[a-z0-9/]+:v?\d[\w.-]*{digest}", image), name
        for port in service.get("ports", []):
            assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port), (name, port)
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name


def test_what_runs_the_image_runs_as_the_image_says_with_variables_that_there_are() -> None:
    ours = {name: service for name, service in all_services() if service["image"] == "arco-catalog"}

    assert ours.keys() == {"setup", "catalog", "delegation"}
    for name, service in ours.items():
        assert (service["user"], service["read_only"], service["tmpfs"]) == (USER, True, ["/tmp"])
        known = DELEGATION_VARIABLES if name == "delegation" else VARIABLES
        assert {variable for variable in service["environment"] if variable.startswith("ARCO_")} <= known
        if "build" in service:
            assert (FOLDER / service["build"]["context"]).resolve() == PROJECT
    port, its = DELEGATION_PORT.default, ours["delegation"]
    assert (its["environment"][DELEGATION_PORT.name], its["ports"]) == (port, [f"127.0.0.1:{port}:{port}"])


def test_what_is_mounted_from_the_project_is_there_and_read_only() -> None:
    volumes = [
        (path, each) for path in COMPOSE for service in services(path).values() for each in service.get("volumes", [])
    ]
    files = [(path, each) for path, each in volumes if each.startswith(".")]

    assert len(files) > 5
    for path, volume in files:
        source, _, mode = volume.split(":")
        assert (path.parent / source).is_file(), volume
        assert mode == "ro", volume


def test_one_pair_of_keys_opens_the_store_for_all_services() -> None:
    given = [
        item for _, service in all_services() for item in service.get("environment", {}).items() if "KEY" in item[0]
    ]
    keys = {name: value for name, value in given if not name.startswith("ARCO_")}

    assert len(given) > 10
    for name, value in keys.items():
        kind = "SECRET" if "SECRET" in name else "ACCESS"
        assert re.fullmatch(rf"\$\{{ARCO_S3_{kind}_KEY:-[\w-]+\}}", value), name
    assert len(set(keys.values())) == 2


@pytest.mark.needs(RESOLVER)
@pytest.mark.parametrize("beside", [path.stem for path in COMPOSE if path.stem != "compose"])
def test_compose_accepts_each_file_beside_the_catalog(beside: str) -> None:
    assert resolved(beside).keys() == {*services(FOLDER / "compose.yaml"), *services(FOLDER / f"{beside}.yaml")}


def test_engines_get_the_settings_that_the_server_prints_and_the_login_of_engines() -> None:
    printed = client_config(f"http://catalog:{PORT}", "arco", "s3://lake/catalog", S3)
    lines = (FOLDER / "trino.properties").read_text().splitlines()
    wanted = printed[printed.index("connector.name") :].splitlines()
    login = [line for line in lines if "oauth2" in line or "security" in line]
    assert [line for line in lines if "aws" not in line and line not in login] == wanted
    assert login == [
        "iceberg.rest-catalog.security=OAUTH2",
        "iceberg.rest-catalog.oauth2.credential=${ENV:ARCO_CREDENTIAL}",
        "iceberg.rest-catalog.oauth2.scope=PRINCIPAL_ROLE:ALL",
        f"iceberg.rest-catalog.oauth2.server-uri=http://catalog:{PORT}/v1/oauth/tokens",
    ]
    spark = dict(line.split() for line in (FOLDER / "spark-defaults.conf").read_text().splitlines())
    named = dict(re.findall(r"--conf (\S+?)=(\S+)", printed))
    assert {**named, "spark.jars.packages": re.search(r"--packages (\S+)", printed)[1]}.items() <= spark.items()  # type: ignore[index]
    own = {name.removeprefix("spark.sql.catalog.arco.") for name in set(spark) - set(named)}
    assert own == {"spark.jars.packages", "spark.jars.ivy", "credential", "scope", "oauth2-server-uri"}


def test_servers_have_the_versions_that_tests_run() -> None:
    known = dict(all_services())
    [gateway] = re.findall(r"versitygw@(v[\d.]+)", (PROJECT / "requirements" / "go.txt").read_text())
    assert f":{gateway}@" in known["s3"]["image"]
    [trino] = re.findall(r"\.jars/trino-(\d+)/", (PROJECT / "fetch.mk").read_text())
    assert f":{trino}@" in known["trino"]["image"]
    assert ":4.1." in known["spark"]["image"]


def test_the_unit_of_systemd_names_known_variables_and_runs_without_root() -> None:
    text = (DEPLOY / "systemd" / "arco-catalog.service").read_text()
    settings = dict(re.findall(r"(?m)^(\w+)=(.*)$", text))
    assert set(re.findall(r"\bARCO_\w+", settings["Environment"])) <= VARIABLES
    assert settings["DynamicUser"] == "yes"
    assert f"ARCO_STORE=file:/var/lib/{settings['StateDirectory']}" in settings["Environment"]
    assert settings["ExecStart"] == "/opt/arco/bin/arco serve"


@pytest.mark.optional("systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "arco-catalog.service"
    text = (DEPLOY / "systemd" / "arco-catalog.service").read_text()
    unit.write_text(text.replace("/opt/arco/bin/arco", "/bin/true"))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=60, check=False
    )
    assert [line for line in checked.stderr.splitlines() if "arco" in line] == []
    assert checked.returncode == 0, checked.stderr


def test_proxies_pass_requests_on_as_they_came_and_never_send_one_twice() -> None:
    nginx = (DEPLOY / "proxy" / "nginx.conf").read_text()
    assert re.search(r"proxy_pass http://arco;", nginx), "a path behind it would have names decoded"
    assert "proxy_next_upstream off;" in nginx
    assert "proxy_set_header Host $host;" in nginx
    assert nginx.count("{") == nginx.count("}")
    caddy = (DEPLOY / "proxy" / "Caddyfile").read_text()
    assert "lb_try_duration" not in caddy
    assert caddy.count("\n\t") == sum(line.startswith("\t") for line in caddy.splitlines())


@pytest.mark.optional("caddy")
def test_caddy_takes_its_file() -> None:
    checked = subprocess.run(
        ["caddy", "validate", "--adapter", "caddyfile", "--config", DEPLOY / "proxy" / "Caddyfile"],
        env={
            "PATH": str(Path(shutil.which("caddy") or "").parent),
            "HOME": "/tmp",
            "ARCO_PASSWORD_HASH": "$2a$14$" + "x" * 53,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


def test_no_image_names_a_registry() -> None:
    """Images are named without a registry, so that the one that a machine is configured for is asked."""
    for name, service in all_services():
        assert "." not in service["image"].split("/")[0].split(":")[0], name


@pytest.mark.optional("hadolint")
def test_hadolint_has_nothing_to_say_of_the_dockerfile() -> None:
    checked = subprocess.run(
        ["hadolint", "--failure-threshold", "warning", PROJECT / "Dockerfile"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
