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
from arco_catalog.config.variables import (
    DELEGATION_PORT,
    DELEGATION_SERVICE,
    TLS_CERT,
    TLS_CLIENT_CA,
    TLS_KEY,
)
from tests.packaging.dockerfile import FINAL, PROJECT, environment_of, instruction

DEPLOY = PROJECT / "deploy"
COMPOSE = sorted((DEPLOY / "compose").glob("*.yaml"))
USER = instruction("USER").text
PORT = environment_of(FINAL)["ARCO_PORT"]
VARIABLES = {option.variable.name for option in SERVE}
DELEGATION_VARIABLES = {variable.name for variable in DELEGATION_SERVICE}
CALLERS_WITH_CERTIFICATES = {
    TLS_CERT.name: "/tls/tls.crt",
    TLS_KEY.name: "/tls/tls.key",
    TLS_CLIENT_CA.name: "/tls/ca.crt",
}
OF_THE_CATALOG = ("ARCO_PORT", "ARCO_METRICS_PORT", "ARCO_METRICS_HOST")
S3 = {"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": "http://s3:7070"}


def services(path: Path) -> Mapping[str, Any]:
    """The services of a compose file."""
    document = yaml.safe_load(path.read_text())
    assert set(document) <= {"name", "services", "volumes", "x-keys"}
    found: Mapping[str, Any] = document["services"]
    return found


def all_services() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in COMPOSE:
        yield from services(path).items()


def catalog() -> Mapping[str, Any]:
    found: Mapping[str, Any] = services(DEPLOY / "compose" / "compose.yaml")["catalog"]
    return found


def test_there_is_a_compose_file_for_each_engine_for_the_delegation_service_and_for_metrics() -> None:
    assert [path.stem for path in COMPOSE] == ["compose", "delegation", "metrics", "spark", "trino"]
    assert {name for name, _ in all_services()} == {
        "catalog",
        "delegation",
        "grafana",
        "prometheus",
        "s3",
        "spark",
        "trino",
    }


def test_every_service_is_a_fixed_version_and_published_on_loopback_only() -> None:
    for name, service in all_services():
        assert service["image"] == "arco-catalog" or re.search(r":v?\d+(\.\d+)*", service["image"]), name
        for port in service.get("ports", []):
            assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port), (name, port)
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name


def test_what_a_service_waits_for_is_there_and_has_a_health_check() -> None:
    known = dict(all_services())
    waited = {other for service in known.values() for other in service.get("depends_on", {})}
    assert waited == {"s3", "catalog", "prometheus"}
    assert "healthcheck" in known["s3"]
    assert any(each.name == "HEALTHCHECK" for each in FINAL)


def test_the_catalog_runs_as_its_image_says_and_writes_nothing_of_its_own() -> None:
    service = catalog()
    assert (service["user"], service["read_only"], service["tmpfs"]) == (USER, True, ["/tmp"])
    assert service["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert service["environment"]["ARCO_PORT"] == PORT
    assert (DEPLOY / "compose" / service["build"]["context"]).resolve() == PROJECT
    ours = {name for name in service["environment"] if name.startswith("ARCO_")}
    assert ours <= VARIABLES


def test_the_delegation_service_runs_as_the_catalog_does_and_lets_in_only_callers_with_certificates() -> None:
    service, beside = dict(all_services())["delegation"], catalog()
    assert service["command"] == ["delegation-service"]
    for field in ("image", "user", "read_only", "tmpfs", "cap_drop", "security_opt"):
        assert service[field] == beside[field], field
    told, of_catalog = service["environment"], beside["environment"]
    assert told.items() >= {name: each for name, each in of_catalog.items() if name not in OF_THE_CATALOG}.items()
    assert {name for name in told if name.startswith("ARCO_")} <= DELEGATION_VARIABLES
    assert told.items() >= CALLERS_WITH_CERTIFICATES.items()
    port = DELEGATION_PORT.default
    assert (told[DELEGATION_PORT.name], service["ports"]) == (port, [f"127.0.0.1:{port}:{port}"])
    [mounted] = service["volumes"]
    assert re.fullmatch(r"\$\{ARCO_TLS:\?.+\}:/tls:ro", mounted), "compose must refuse to start without the folder"


def test_what_is_mounted_is_there_read_only() -> None:
    for path in COMPOSE:
        declared = yaml.safe_load(path.read_text()).get("volumes", {})
        for service in services(path).values():
            for volume in service.get("volumes", []):
                if volume.startswith("${"):  # a folder of the user's
                    assert volume.endswith(":ro"), volume
                    continue
                source, _, *mode = volume.split(":")
                if source.startswith("."):
                    assert (path.parent / source).is_file(), volume
                    assert mode == ["ro"], volume
                else:
                    assert source in declared, volume


def test_engines_get_the_settings_that_the_server_prints() -> None:
    printed = client_config(f"http://catalog:{PORT}", "arco", "s3://lake/catalog", S3)
    trino = (DEPLOY / "compose" / "trino.properties").read_text().splitlines()
    wanted = printed[printed.index("connector.name") :].splitlines()
    assert [line for line in trino if "aws" not in line] == wanted
    spark = dict(line.split() for line in (DEPLOY / "compose" / "spark-defaults.conf").read_text().splitlines())
    told = dict(re.findall(r"--conf (\S+?)=(\S+)", printed))
    assert {**told, "spark.jars.packages": re.search(r"--packages (\S+)", printed)[1]}.items() <= spark.items()  # type: ignore[index]
    assert set(spark) - set(told) == {"spark.jars.packages", "spark.jars.ivy"}


def test_servers_have_the_versions_that_tests_run() -> None:
    known = dict(all_services())
    [gateway] = re.findall(r"versitygw@(v[\d.]+)", (PROJECT / "requirements" / "go.txt").read_text())
    assert known["s3"]["image"].endswith(f":{gateway}")
    [trino] = re.findall(r"\.jars/trino-(\d+)/", (PROJECT / "fetch.mk").read_text())
    assert known["trino"]["image"].endswith(f":{trino}")
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
