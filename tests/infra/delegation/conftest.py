"""The delegation service's module, planned for some deployments at once, against a moto."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.infra.terraform import INFRA, Plan, Variables, Workspace, copy_module, module_block
from tools.support.s3_servers import S3Server

TLS = "arn:aws:secretsmanager:us-east-1:123456789012:secret:lake-tls-AbCdEf"
TOKEN_KEY = "arn:aws:secretsmanager:us-east-1:123456789012:secret:lake-token-key-AbCdEf"
KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
LEAST: Variables = {
    "name": "lake",
    "store": "s3://lake-123456789012-us-east-1",
    "allowed_locations": ["s3://lake-123456789012-us-east-1/main/warehouse"],
    "image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/arco-catalog:0.1.0",
    "vpc_id": "vpc-1",
    "subnet_ids": ["subnet-1", "subnet-2"],
    "caller_security_group_ids": ["sg-workers"],
    "tls_secret_arn": TLS,
}
ACCEPTED: Mapping[str, Variables] = {
    "least": {**LEAST, "warehouse": "wh"},
    "whole": {
        **LEAST,
        "store": "s3://lakes/one/two",
        "realm": ["sales", "research"],
        "warehouse": "lake",
        "allowed_locations": ["s3://lakes/tables", "s3://others/tables"],
        "kms_key_arn": KEY,
        "image": "registry.example/arco-catalog@sha256:0123",
        "architecture": "ARM64",
        "replicas": 3,
        "environment": {"ARCO_DELEGATION_REALMS": "theirs", "ARCO_TLS_CLIENT_CA": "/nowhere"},
        "caller_security_group_ids": ["sg-workers", "sg-others"],
        "token_key_secret_arn": TOKEN_KEY,
    },
}


def workspace(deployments: Mapping[str, Variables], scratch: Path) -> Workspace:
    """A configuration with these deployments of the module."""
    copy_module(INFRA / "delegation", scratch)
    blocks = [module_block(name, given, "./delegation") for name, given in deployments.items()]
    outputs = [
        f'output "{name}-{output}" {{\n  value = module.{name}.{output}\n}}\n'
        for name in deployments
        for output in ("url", "role_arn", "start_role_arn")
    ]
    return Workspace.of_blocks([*blocks, *outputs], scratch)


@pytest.fixture(scope="package")
def service_plan(aws: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Plan:
    made = workspace(ACCEPTED, tmp_path_factory.mktemp("delegation"))
    made.use(aws)
    return made.plan()
