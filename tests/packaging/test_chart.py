"""The Helm chart: what helm makes of it is valid on two versions of Kubernetes, and fits together."""

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from arco_catalog.cli.program import SERVE
from arco_catalog.config.variables import DELEGATION, DELEGATION_PORT, DELEGATION_SERVICE
from tests.packaging.chart import (
    CHART,
    EVERYTHING,
    LEAST,
    Document,
    closed,
    render,
)
from tests.packaging.dockerfile import PROJECT, instruction

pytestmark = pytest.mark.needs(".tools/helm")

VERSION = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
OF_CRDS = {"HTTPRoute": "httproutes", "ServiceMonitor": "servicemonitors"}
REALMLESS = {**LEAST, "jobs": {name: {"enabled": True} for name in ("reconcile", "gc", "fsck", "tasks")}}
PODS = {"Deployment": ("spec", "template"), "CronJob": ("spec", "jobTemplate", "spec", "template")}


def pods(objects: Any) -> Mapping[str, Document]:
    """The pods of deployments and jobs, by the objects' names."""
    found = {}
    for document in objects:
        if document["kind"] in PODS:
            pod = document
            for name in PODS[document["kind"]]:
                pod = pod[name]
            found[document["metadata"]["name"]] = pod
    return found


def variables(container: Document) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"]}


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


@pytest.mark.parametrize("values", [LEAST, EVERYTHING], ids=["least", "everything"])
def test_helm_has_nothing_to_say_of_the_chart(values: Mapping[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    checked = subprocess.run(
        [PROJECT / ".tools" / "helm", "lint", "--strict", CHART, "--values", file],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_release_has_these_objects_by_default_and_with_everything() -> None:
    assert Counter(document["kind"] for document in render(LEAST)) == {
        "ServiceAccount": 1,
        "Service": 1,
        "Deployment": 1,
        "NetworkPolicy": 1,
        "PodDisruptionBudget": 1,
        "CronJob": 2,
    }
    assert Counter(document["kind"] for document in render(EVERYTHING)) == {
        "ServiceAccount": 1,
        "Service": 4,
        "Deployment": 2,
        "NetworkPolicy": 2,
        "PodDisruptionBudget": 1,
        "HorizontalPodAutoscaler": 1,
        "Ingress": 1,
        "HTTPRoute": 1,
        "ServiceMonitor": 1,
        "CronJob": 4,
    }


@pytest.mark.parametrize("version", ["1.31", "1.36"])
@pytest.mark.parametrize("values", [LEAST, REALMLESS, EVERYTHING], ids=["least", "jobs", "everything"])
def test_kubernetes_takes_every_object(values: Mapping[str, Any], version: str) -> None:
    for document in render(values):
        if document["kind"] not in OF_CRDS:
            assert kubernetes_validate.validate(document, version, strict=True) == version


@pytest.mark.needs(".tools/crds/httproutes.yaml", ".tools/crds/servicemonitors.yaml")
def test_custom_objects_are_valid_by_their_definitions() -> None:
    for document in render(EVERYTHING):
        if document["kind"] in OF_CRDS:
            file = PROJECT / ".tools" / "crds" / f"{OF_CRDS[document['kind']]}.yaml"
            definition = yaml.safe_load(file.read_text())["spec"]
            group, version = document["apiVersion"].split("/")
            [served] = [each for each in definition["versions"] if each["name"] == version and each["served"]]
            assert group == definition["group"]
            schema = closed(served["schema"]["openAPIV3Schema"])
            jsonschema.Draft202012Validator(schema).validate(document)


def test_a_field_that_a_definition_does_not_have_is_found() -> None:
    schema = closed({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {}}}}})
    jsonschema.validate({"spec": {"a": 1}}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"spec": {"b": 1}}, schema)


def test_names_are_cut_to_what_kubernetes_takes_and_stay_apart() -> None:
    named: dict[str, set[tuple[str, str]]] = {}
    for release in ("a" * 53, "a" * 52 + "b", "lake"):
        objects = render({key: value for key, value in EVERYTHING.items() if key != "nameOverride"}, release)
        named[release] = {(document["kind"], document["metadata"]["name"]) for document in objects}
        for kind, name in named[release]:
            assert len(name) <= (52 if kind == "CronJob" else 63), name
    accounts = {("ServiceAccount", "arco")}
    first, second, short = named.values()
    assert first & second == accounts
    assert ("Deployment", "lake-arco-catalog") in short
    assert ("CronJob", "lake-arco-reconcile") in short


@pytest.mark.parametrize("values", [REALMLESS, EVERYTHING], ids=["jobs", "everything"])
def test_every_pod_runs_as_the_user_of_the_image_and_writes_only_to_its_scratch(values: Mapping[str, Any]) -> None:
    user, group = instruction("USER").text.split(":")
    for pod in pods(render(values)).values():
        spec = pod["spec"]
        assert (
            spec["securityContext"].items()
            >= {
                "runAsNonRoot": True,
                "runAsUser": int(user),
                "runAsGroup": int(group),
            }.items()
        )
        assert spec["automountServiceAccountToken"] is False
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        for container in spec["containers"]:
            security = container["securityContext"]
            assert (security["readOnlyRootFilesystem"], security["allowPrivilegeEscalation"]) == (True, False)
            assert security["capabilities"] == {"drop": ["ALL"]}
            mounted = {mount["name"]: mount for mount in container["volumeMounts"]}
            assert set(mounted) == set(volumes)
            assert {name for name, mount in mounted.items() if not mount.get("readOnly")} == {"scratch"}


def test_every_variable_is_one_of_the_program_and_none_is_there_twice() -> None:
    of_workers = {variable.name for variable in DELEGATION}
    known = {option.variable.name for option in SERVE} | of_workers
    for name, pod in pods(render(EVERYTHING)).items():
        for container in pod["spec"]["containers"]:
            names = [each["name"] for each in container["env"]]
            assert len(names) == len(set(names))
            ours = {each for each in names if each.startswith("ARCO_")}
            assert ours <= ({each.name for each in DELEGATION_SERVICE} if "delegation" in name else known), name


def test_services_routes_and_policies_name_pods_and_ports_that_there_are() -> None:
    objects = render({key: value for key, value in EVERYTHING.items() if key != "podLabels"})
    ports = {}
    for pod in pods(objects).values():
        labels = tuple(sorted(pod["metadata"]["labels"].items()))
        ports[labels] = {port["name"] for each in pod["spec"]["containers"] for port in each.get("ports", [])}
    by_kind = [(document["kind"], document["spec"]) for document in objects if "spec" in document]
    for kind, spec in by_kind:
        if kind == "Service":
            selected = ports[tuple(sorted(spec["selector"].items()))]
            assert {port["targetPort"] for port in spec["ports"]} <= selected
        if kind == "NetworkPolicy":
            selected = ports[tuple(sorted(spec["podSelector"]["matchLabels"].items()))]
            assert {port["port"] for rule in spec["ingress"] for port in rule["ports"]} == selected
    [monitor] = [spec for kind, spec in by_kind if kind == "ServiceMonitor"]
    watched = [
        document
        for document in objects
        if document["kind"] == "Service" and document["metadata"]["labels"] == monitor["selector"]["matchLabels"]
    ]
    assert len(watched) == 2, "the catalog's and the delegation service's"
    for each in watched:
        assert [port["name"] for port in each["spec"]["ports"]] == [end["port"] for end in monitor["endpoints"]]


def test_the_commands_of_the_page_set_values_that_make_pods_with_a_store_and_logins() -> None:
    page = (PROJECT / "docs" / "containers.md").read_text().replace("\\\n", " ")
    given: list[str] = []
    for command in re.findall(r"(?m)^helm .*$", page):
        given += re.findall(r"--set (\S+=\S+)", command)
    made = subprocess.run(
        [PROJECT / ".tools" / "helm", "template", "lake", CHART, *(word for each in given for word in ("--set", each))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert made.returncode == 0, made.stderr

    objects = [document for document in yaml.safe_load_all(made.stdout) if document]
    container = pods(objects)["lake-arco-catalog"]["spec"]["containers"][0]
    assert container["image"] == f"registry.example/arco-catalog:{VERSION}"
    assert f"push {container['image']}" in page
    variables_of_pod = variables(container)
    assert {name: variables_of_pod[name] for name in ("ARCO_STORE", "ARCO_AUTH", "ARCO_TOKEN_KEY_FILE")} == {
        "ARCO_STORE": "s3://bucket/prefix",
        "ARCO_AUTH": "internal",
        "ARCO_TOKEN_KEY_FILE": "/keys/token.key",
    }
    [service] = [document for document in objects if document["kind"] == "Service"]
    assert f"http://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}`" in page


def test_the_delegation_service_is_found_where_the_catalog_calls_it() -> None:
    objects = render({key: value for key, value in EVERYTHING.items() if key != "nameOverride"})
    catalog = pods(objects)["lake-arco-catalog"]["spec"]["containers"][0]
    port = DELEGATION_PORT.default
    assert variables(catalog)["ARCO_DELEGATION_URL"] == f"https://lake-arco-delegation:{port}"
    given = variables(pods(objects)["lake-arco-delegation"]["spec"]["containers"][0])
    assert (
        given.items()
        >= {
            "ARCO_DELEGATION_PORT": port,
            "ARCO_TLS_CERT": "/tls/tls.crt",
            "ARCO_TLS_KEY": "/tls/tls.key",
            "ARCO_TLS_CLIENT_CA": "/tls/ca.crt",
        }.items()
    )


def run(args: list[str], environment: Mapping[str, str]) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ARCO_", "AWS_"))}
    done = subprocess.run(
        [sys.executable, "-m", "arco_catalog.cli", *args],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, (args, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize("realms", [[], ["sales", "research"]], ids=["no realm", "realms"])
def test_the_commands_of_jobs_run(realms: list[str], tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    for realm in realms:
        run(["bootstrap", "--store", store, "--realm", realm], {})
    if not realms:
        run(["init", "--store", store], {})
    objects = render({**REALMLESS, "store": store, "realms": realms})
    jobs = {name: pod for name, pod in pods(objects).items() if name != "lake-arco-catalog"}
    assert set(jobs) == {"lake-arco-reconcile", "lake-arco-gc", "lake-arco-fsck", "lake-arco-tasks"}
    for pod in jobs.values():
        assert len(pod["spec"]["containers"]) == max(1, len(realms))
        for container in pod["spec"]["containers"]:
            run(container["args"], variables(container))
