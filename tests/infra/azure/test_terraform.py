"""The module for Azure by Terraform itself: its form, and what the provider says of it where the provider is.

No account is needed: the provider is mocked, as `terraform test` does, so its schema and its own checks of values hold,
and nothing that it would ask of Azure is.
"""

import json
import re
from pathlib import Path

import pytest

from tests.infra.terraform import INFRA, Workspace, copy_module

MODULE = INFRA / "azure"
CLIENT = "11111111-2222-3333-4444-555555555555"
ACCOUNT = "/subscriptions/0/resourceGroups/lakes/providers/Microsoft.Storage/storageAccounts/there"
QUEUE = f"{ACCOUNT}/queueServices/default/queues/changes"
GRID = "/subscriptions/0/resourceGroups/lakes/providers/Microsoft.EventGrid/topics/changes"
VAULT = "/subscriptions/0/resourceGroups/lakes/providers/Microsoft.KeyVault/vaults/lake"

with_provider = pytest.mark.optional("terraform-provider-azurerm")

ACCEPTED: dict[str, dict[str, object]] = {
    "fresh": {},
    "flat": {"hierarchical_namespace": False, "replication": "GRS", "retention_days": 7, "always_ready": 2},
    "existing": {
        "storage_account_id": ACCOUNT,
        "resource_group_name": "lakes",
        "prefix": "lakes/one",
        "engine_principal_ids": [CLIENT],
        "operator_principal_ids": [CLIENT],
        "source_principals": [CLIENT],
        "events": True,
        "event_receivers": [QUEUE, GRID],
        "idempotency_enabled": False,
        "idempotency_lifetime": "PT1H30M",
        "idempotency_cleanup_enabled": False,
    },
    "anyone": {"authorization": "none", "entra": None, "allow_unauthenticated": True},
    "realm": {"auth": ["gateway"], "engine_principal_ids": [CLIENT], "entra": {"client_id": CLIENT}},
    "clients": {
        "auth": ["internal"],
        "authorization": "none",
        "entra": None,
        "token_key_secret": "https://lake.vault.azure.net/secrets/token-key",
        "token_key_vault_id": VAULT,
        "hierarchical_namespace": False,
        "engine_principal_ids": [CLIENT],
    },
    "pages": {"authorization": "none", "entra": None, "allow_unauthenticated": True, "console": True},
    "any-caller": {"entra": {"client_id": CLIENT}, "allow_any_caller": True},
}
_APP = "azurerm_function_app_flex_consumption.app"
_WORKER = 'azurerm_function_app_flex_consumption.worker["work"]'
_POLICY = "azurerm_storage_management_policy.store[0]"
_ROLE = "azurerm_role_assignment"


def _creates(assignment: str, key: str) -> str:
    """The part of a role's condition that is on what may be created."""
    return f'split(" AND (!(ActionMatches", {_ROLE}.{assignment}["{key}"].condition)[0]'


PLANNED = {
    "fresh": [
        "azurerm_storage_account.store[0].is_hns_enabled",
        "!azurerm_storage_account.store[0].blob_properties[0].versioning_enabled",
        f"length({_POLICY}.rule) == 1",
        "azurerm_resource_group.group[0].name == var.name",
        "strcontains(output.store, azurerm_storage_account.store[0].name)",
        f"{_APP}.auth_settings_v2[0].require_authentication",
        f'{_APP}.auth_settings_v2[0].unauthenticated_action == "Return401"',
        f'{_APP}.app_settings["ARCO_ENDPOINT"] == "easy-auth"',
        "length(azurerm_role_assignment.engine) == 0",
    ],
    "flat": [
        "azurerm_storage_account.store[0].blob_properties[0].versioning_enabled",
        f"{_POLICY}.rule[1].actions[0].version[0].delete_after_days_since_creation == 7",
        f"{_APP}.always_ready[0].instance_count == 2",
    ],
    "existing": [
        f'{_ROLE}.events["{QUEUE}"].role_definition_name == "Storage Queue Data Message Sender"',
        f'{_ROLE}.events["{GRID}"].role_definition_name == "EventGrid Data Sender"',
        f'{_WORKER}.app_settings["ARCO_EVENTS"] == "true"',
        "length(azurerm_storage_account.store) == 0 && length(azurerm_resource_group.group) == 0",
        'output.store == "abfss://lake@there.dfs.core.windows.net/lakes/one"',
        f'endswith({_ROLE}.engine["{CLIENT}"].scope, "/there/blobServices/default/containers/lake")',
        "strcontains(output.engine_condition, \"StringLike 'lakes/one/main/warehouse/*'\")",
        f'{_ROLE}.catalog["{CLIENT}"].condition == {_ROLE}.catalog["app"].condition',
        f"{_creates('worker', 'work')} == {_creates('catalog', 'app')}",
        f'!strcontains({_creates("worker", "collect")}, ".metadata.json")',
        f'{_APP}.app_settings["ARCO_SOURCE_PRINCIPALS"] == var.source_principals[0]',
        f'{_APP}.app_settings["ARCO_IDEMPOTENCY_ENABLED"] == "false"',
        f'{_APP}.app_settings["ARCO_IDEMPOTENCY_LIFETIME"] == "PT1H30M"',
        f'{_APP}.app_settings["ARCO_IDEMPOTENCY_CLEANUP_ENABLED"] == "false"',
    ],
    "anyone": [
        f"length({_APP}.auth_settings_v2) == 0",
        f'{_APP}.app_settings["ARCO_ENDPOINT"] == "unauthenticated"',
        '!strcontains(output.settings.spark, "credential")',
    ],
    "realm": [
        f"length({_ROLE}.engine) == 0",
        f'strcontains({_ROLE}.catalog["app"].condition, "StringLike \'_realm/core/proposals/*\'")',
        f'{_ROLE}.delegator[0].role_definition_name == "Storage Blob Delegator"',
        f"length({_ROLE}.token_key) == 0",
        f'{_APP}.app_settings["ARCO_AUTH"] == "gateway"',
        f'{_APP}.app_settings["ARCO_GATEWAY_APIS"] == "easyauth"',
        f'strcontains({_ROLE}.catalog["app"].condition, "StringLike \'_realm/*\'")',
        'strcontains(output.settings.spark, "X-Iceberg-Access-Delegation=vended-credentials")',
        "output.storage.storageConfigInfo.hierarchical",
    ],
    "clients": [
        f"length({_ROLE}.engine) == 1 && length({_ROLE}.delegator) == 0",
        f'{_ROLE}.token_key[0].scope == "{VAULT}/secrets/token-key"',
        f'{_ROLE}.token_key[0].role_definition_name == "Key Vault Secrets User"',
        f'{_APP}.app_settings["ARCO_TOKEN_KEY_SECRET"] == var.token_key_secret',
        f'{_APP}.app_settings["ARCO_ENDPOINT"] == "unauthenticated"',
        'strcontains(output.settings.spark, "/v1/oauth/tokens")',
    ],
    "pages": [f'{_APP}.app_settings["ARCO_CONSOLE"] == "true"'],
    "any-caller": [f"length({_APP}.auth_settings_v2[0].active_directory_v2[0].allowed_applications) == 0"],
}
"""What must hold of the plan of each, as conditions of Terraform's language."""
REFUSED: dict[str, dict[str, object]] = {
    "name": {"name": "Lake"},
    "container": {"container": "a--b"},
    "prefix": {"prefix": "/lakes/"},
    "warehouse": {"warehouse": "_probe"},
    "storage_account_id": {"storage_account_id": "there"},
    "idempotency_dialect": {"idempotency_dialect": "ours"},
    "idempotency_lifetime": {"idempotency_lifetime": "P2D"},
    "replication": {"replication": "TWICE"},
    "retention_days": {"retention_days": 0},
    "authorization": {"authorization": "none", "entra": None},
    "entra": {"entra": {"client_id": "lake", "applications": [CLIENT]}},
    "source_principals": {"source_principals": ["a,b"]},
    "memory_mb": {"memory_mb": 100},
    "max_instances": {"max_instances": 0},
    "always_ready": {"always_ready": 200},
    "log_level": {"log_level": "LOUD"},
    "event_receivers": {"events": True, "event_receivers": [ACCOUNT]},
    "auth": {"auth": ["internal"], "authorization": "none", "entra": None},
    "token_key_secret": {"token_key_secret": "lake/token-key"},
    "vending": {"vending": True},
    "app_settings": {"app_settings": {"ARCO_TOKEN_KEY": "k"}},
    "log_retention_days": {"log_retention_days": 1},
}
REFUSED_TOGETHER: dict[str, dict[str, object]] = {
    "entra-without-registration": {"entra": None},
    "callers-not-named": {"entra": {"client_id": CLIENT}},
    "word-of-nobody": {"auth": ["gateway"], "authorization": "none", "entra": None},
    "own-tokens-behind-app-service": {
        "auth": ["oidc"],
        "oidc_issuers": ["https://id.example.com"],
        "oidc_audiences": ["lake"],
    },
    "pages-behind-app-service": {"console": True},
    "registration-nobody-looks-at": {"authorization": "none", "allow_unauthenticated": True},
}


def test_the_alert_on_5xx_does_not_count_stale_keys() -> None:
    text = (MODULE / "monitoring.tf").read_text()
    [query] = re.findall(r'"5xx" = {.*?query += "(.*?)"\n', text, re.DOTALL)
    [lines] = re.findall(r'(?m)^  stale_keys += "(.*)"$', text)

    errors, but = query.split(" | join kind=leftanti ")
    assert "toint(resultCode) >= 500" in errors
    assert but == "(${local.stale_keys}) on operation_Id", "a request and its line have this id in common"
    assert lines.endswith(" | where toint(line.StaleKeys) == 1")


def test_the_formatter_has_nothing_to_change() -> None:
    Workspace(MODULE).run("fmt", "-check", "-recursive")


@with_provider
@pytest.mark.parametrize("module", [".", "examples/fresh-account"])
def test_the_module_and_its_example_are_valid(module: str, tmp_path: Path) -> None:
    workspace = _workspace(tmp_path, module)

    checked = json.loads(workspace.run("validate", "-json"))

    assert (checked["valid"], checked["diagnostics"]) == (True, [])


@with_provider
def test_deployments_are_planned_and_contradictions_refused(tmp_path: Path) -> None:
    workspace = _workspace(tmp_path, ".")
    package = tmp_path / "package.zip"
    package.touch()
    usual = {"name": "lake", "location": "westeurope", "package": str(package)}
    usual |= {"entra": json.dumps({"client_id": CLIENT, "applications": [CLIENT]})}
    runs = [_run(name, given) for name, given in ACCEPTED.items()]
    runs += [_run(f"refused-{name}", given, refused=name) for name, given in REFUSED.items()]
    runs += [_run(name, given, refused=_refusing(name)) for name, given in REFUSED_TOGETHER.items()]
    variables = "".join(f"  {name} = {_expression(value)}\n" for name, value in usual.items())
    (workspace.folder / "plans.tftest.hcl").write_text(f"{MOCK}\nvariables {{\n{variables}}}\n{''.join(runs)}")

    said = workspace.run("test", "-no-color")

    assert f"{len(runs)} passed, 0 failed" in said


MOCK = """
mock_provider "azurerm" {
  mock_data "azurerm_client_config" {
    defaults = {
      subscription_id = "00000000-0000-0000-0000-000000000000"
      tenant_id       = "00000000-0000-0000-0000-000000000001"
      object_id       = "00000000-0000-0000-0000-000000000002"
    }
  }
}
"""


def _refusing(name: str) -> str:
    """Each of these is said of the one variable that decides."""
    return "authorization" if name in REFUSED_TOGETHER else name


def _run(name: str, given: dict[str, object], *, refused: str | None = None) -> str:
    variables = "".join(f"    {key} = {_expression(value)}\n" for key, value in given.items())
    expected = f"  expect_failures = [var.{refused}]\n" if refused else ""
    for condition in PLANNED.get(name, []):
        expected += f'  assert {{\n    condition = {condition}\n    error_message = "not so"\n  }}\n'
    label = name.replace("-", "_")
    return f'run "{label}" {{\n  command = plan\n  variables {{\n{variables}  }}\n{expected}}}\n'


def _expression(value: object) -> str:
    return value if isinstance(value, str) and value.startswith("{") else json.dumps(value)


def _workspace(scratch: Path, module: str) -> Workspace:
    workspace = Workspace(copy_module(MODULE, scratch) / module)
    workspace.initialise("azurerm")
    return workspace
