"""What the module of the delegation service makes: a container that only some may connect to."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from arco_catalog.config.variables import DELEGATION_PORT, DELEGATION_SERVICE, PORT
from tests.infra.delegation.conftest import ACCEPTED, LEAST, TLS, TOKEN_KEY, workspace
from tests.infra.policies import statements
from tests.infra.terraform import Plan, Variables
from tests.packaging.dockerfile import instruction
from tools.support.s3_servers import S3Server

OTHERS = {"AWS_REGION", "TMPDIR", "HOME"}
ALL = pytest.mark.parametrize("deployment", ACCEPTED)
REFUSED: Mapping[str, tuple[Variables, str]] = {
    "no_caller": ({"caller_security_group_ids": []}, "at least one id of a security group"),
    "callers_by_address": ({"caller_security_group_ids": ["10.0.0.0/8"]}, "at least one id of a security group"),
    "nowhere_to_delete": ({"allowed_locations": []}, "at least one place"),
    "a_whole_bucket": ({"allowed_locations": ["s3://lake"]}, "at least one place"),
    "store_with_a_slash": ({"store": "s3://lake/"}, "without a slash at its end"),
    "secret_by_its_name": ({"tls_secret_arn": "lake-tls"}, "the whole ARN"),
    "another_processor": ({"architecture": "arm64"}, "ARM64 or X86_64"),
    "name_of_a_class": ({"name": "Lake"}, "3 to 28 lower-case letters"),
}


def container(plan: Plan, deployment: str) -> Mapping[str, Any]:
    [task] = plan.of_type(deployment, "aws_ecs_task_definition")
    [found] = json.loads(task.values["container_definitions"])
    return dict(found)


@ALL
def test_only_the_security_groups_of_callers_can_connect_and_only_to_the_port(
    service_plan: Plan, deployment: str
) -> None:
    rules = service_plan.of_type(deployment, "aws_vpc_security_group_ingress_rule")

    assert {rule.values["referenced_security_group_id"] for rule in rules} == {
        *ACCEPTED[deployment]["caller_security_group_ids"]  # type: ignore[misc]
    }
    for rule in rules:
        assert rule.values["from_port"] == rule.values["to_port"] == int(DELEGATION_PORT.default or 0)
        assert (rule.values["cidr_ipv4"], rule.values["cidr_ipv6"], rule.values["prefix_list_id"]) == (None,) * 3
    [out] = service_plan.of_type(deployment, "aws_vpc_security_group_egress_rule")
    assert (out.values["from_port"], out.values["to_port"]) == (443, 443)
    [service] = service_plan.of_type(deployment, "aws_ecs_service")
    [network] = service.values["network_configuration"]
    assert network["assign_public_ip"] is False


@ALL
def test_the_container_runs_as_the_image_does_and_gets_variables_that_there_are(
    service_plan: Plan, deployment: str
) -> None:
    given, made = ACCEPTED[deployment], container(service_plan, deployment)
    variables = {each["name"]: each["value"] for each in made["environment"]}

    assert (made["user"], made["readonlyRootFilesystem"]) == (instruction("USER").text, True)
    assert [mount["containerPath"] for mount in made["mountPoints"]] == [instruction("VOLUME").text]
    assert variables.keys() <= {each.name for each in DELEGATION_SERVICE} | OTHERS
    assert variables[DELEGATION_PORT.name] == DELEGATION_PORT.default != PORT.default
    assert [mapping["containerPort"] for mapping in made["portMappings"]] == [int(DELEGATION_PORT.default or 0)]
    assert variables["ARCO_STORE"] == given["store"]
    assert variables["ARCO_DELEGATION_ALLOWED_LOCATIONS"].split(",") == given["allowed_locations"]
    assert variables["ARCO_TLS_CLIENT_CA"] == f"{instruction('VOLUME').text}/ca.crt", (
        "no variable may replace the authority of callers"
    )
    assert variables.get("ARCO_REALM", "").split(",") == given.get("realm", [""])


def test_secrets_are_named_and_never_in_the_plan_and_a_token_is_needed_where_there_is_a_key(service_plan: Plan) -> None:
    tls = {name: f"{TLS}:{key}::" for name, key in (("TLS_CERTIFICATE", "certificate"), ("TLS_KEY", "key"))}
    least, whole = (container(service_plan, name) for name in ("least", "whole"))

    def secrets(made: Mapping[str, Any]) -> Mapping[str, str]:
        return {each["name"]: each["valueFrom"] for each in made["secrets"]}

    assert secrets(least) == {**tls, "TLS_AUTHORITY": f"{TLS}:authority::"}
    assert secrets(whole) == {**secrets(least), "TOKEN_KEY": TOKEN_KEY}
    assert {"name": "ARCO_AUTH", "value": "internal"} in whole["environment"]
    assert not any(each["name"] == "ARCO_AUTH" for each in least["environment"])


@ALL
def test_callers_find_it_by_its_name_and_operators_its_roles(service_plan: Plan, deployment: str) -> None:
    [namespace] = service_plan.of_type(deployment, "aws_service_discovery_private_dns_namespace")
    [found] = service_plan.of_type(deployment, "aws_service_discovery_service")
    roles = {role.values["name"] for role in service_plan.of_type(deployment, "aws_iam_role")}

    host = f"{found.values['name']}.{namespace.values['name']}"
    assert service_plan.output(f"{deployment}-url") == f"https://{host}:{DELEGATION_PORT.default}"
    shown = {service_plan.output(f"{deployment}-{name}") for name in ("role_arn", "start_role_arn")}
    assert shown == {f"arn:aws:iam::123456789012:role/{role}" for role in roles}


@ALL
def test_no_role_has_a_right_on_files_or_a_wildcard_in_an_action(service_plan: Plan, deployment: str) -> None:
    allowed = [
        statement
        for policy in service_plan.of_type(deployment, "aws_iam_role_policy")
        for statement in statements(policy.address, policy.values["policy"])
    ]

    assert len(allowed) > 6
    assert not [statement for statement in allowed if any("*" in action for action in statement.actions)]
    objects = [
        (statement.id, resource)
        for statement in allowed
        for resource in statement.resources
        if resource.startswith("arn:aws:s3:::") and "/" in resource
    ]
    assert all(any(f"/{folder}/" in name for folder in ("_catalog", "_realm", "_probe")) for _, name in objects)
    anywhere = [statement.id for statement in allowed if "*" in statement.resources]
    assert anywhere == (["LogInAtTheRegistry"] if deployment == "least" else [])


def test_what_cannot_be_right_is_refused(aws: S3Server, tmp_path_factory: pytest.TempPathFactory) -> None:
    scratch = tmp_path_factory.mktemp("refused")
    made = workspace({name: {**LEAST, **given} for name, (given, _) in REFUSED.items()}, scratch)
    messages = [" ".join(error["detail"].split()) for error in made.refusals("validate")]

    missing = {name for name, (_, reason) in REFUSED.items() if not any(reason in message for message in messages)}
    assert missing == set()
    assert len(messages) == len(REFUSED)
