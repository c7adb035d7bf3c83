"""What can be said of the Terraform module for Azure by reading it, without Terraform and without its provider."""

import json
import re
from pathlib import Path

import pytest

from arco_catalog.config.variables import AUTHENTICATION, FUNCTIONS, VENDING
from arco_catalog.http.functions_adapter import FunctionsEndpoint
from storage_backends.azure.config import AzureConfig, DefaultChain
from tools.package_azure import PLATFORMS
from tools.support.environment import PROJECT

MODULE = PROJECT / "infra" / "azure"
TEXTS = {file.name: file.read_text() for file in sorted(MODULE.glob("*.tf"))}
VARIABLES = TEXTS["variables.tf"] + TEXTS["setting_variables.tf"]
EVERYTHING = "\n".join(TEXTS.values())
ROLES = {
    "EventGrid Data Sender",
    "Key Vault Secrets User",
    "Monitoring Metrics Publisher",
    "Storage Blob Data Contributor",
    "Storage Blob Data Owner",
    "Storage Blob Delegator",
    "Storage Queue Data Contributor",
    "Storage Queue Data Message Sender",
    "Storage Table Data Contributor",
}


def blocks(kind: str, text: str) -> dict[str, str]:
    """Top-level blocks of a kind, as the formatter lays them out, by their last label."""
    found = re.findall(rf'(?ms)^{kind} (?:"[\w-]+" )*"([\w-]+)" {{\n(.*?)^}}', text)
    return dict(found)


@pytest.mark.parametrize("kind", ["variable", "output"])
def test_everything_that_goes_in_and_comes_out_is_described(kind: str) -> None:
    declared = blocks(kind, TEXTS[f"{kind}s.tf"])

    assert len(declared) > 5
    assert [name for name, body in declared.items() if not re.search(r'(?m)^  description = "[A-Z]', body)] == []


def test_a_variable_is_used_and_nothing_is_used_that_is_not_declared() -> None:
    used = set(re.findall(r"\bvar\.(\w+)", "\n".join(text for name, text in TEXTS.items() if "variables" not in name)))

    declared = set(blocks("variable", VARIABLES))
    said = {"allow_unauthenticated", "allow_any_caller"}  # only looked at by validations
    assert used == declared - said


def test_roles_are_the_few_that_are_needed_and_none_is_over_everything() -> None:
    named = set(re.findall(r'role_definition_name = "([^"]+)"', EVERYTHING))
    named |= set(re.findall(r'"([^"]+)"', re.findall(r"host_roles += \[(.*?)\]", TEXTS["permissions.tf"])[0]))
    named |= {role for roles in re.findall(r'\? "([^"]+)" : "([^"]+)"', TEXTS["permissions.tf"]) for role in roles}
    scopes = set(re.findall(r"scope +=\s+(\S+)", TEXTS["permissions.tf"]))

    assert named == ROLES
    assert scopes == {
        "local.account_id",  # no signature by delegation is had for less
        '"${var.token_key_vault_id}/secrets/${element(split("/",',
        "local.container_id",
        "each.value",  # of the queues and topics to which events go
        "azurerm_storage_account.host.id",
        "azurerm_application_insights.app.id",
        "azurerm_storage_container.package.id",
    }


def test_both_accounts_are_closed_to_keys_and_to_the_public() -> None:
    accounts = re.findall(r'(?ms)^resource "azurerm_storage_account" "\w+" {\n(.*?)^}', TEXTS["storage.tf"])

    assert len(accounts) == 2
    for account in accounts:
        assert re.search(r"shared_access_key_enabled += false", account)
        assert re.search(r"allow_nested_items_to_be_public += false", account)
        assert re.search(r'min_tls_version += "TLS1_2"', account)
        assert re.search(r"https_traffic_only_enabled += true", account)


def test_settings_are_the_application_s_own() -> None:
    names = set(re.findall(r"(?m)^ +(ARCO_\w+) +=", TEXTS["functions.tf"] + TEXTS["setting_environment.tf"]))

    assert {"ARCO_STORE", "ARCO_WAREHOUSE", "ARCO_ENDPOINT"} < names
    assert names <= {variable.name for variable in (*FUNCTIONS, *AUTHENTICATION, *VENDING)}


def test_the_app_is_told_of_authentication_exactly_when_there_is_some() -> None:
    [setting] = re.findall(r"ARCO_ENDPOINT += (.*)", TEXTS["functions.tf"])

    expected = f'var.authorization == "entra" ? "{FunctionsEndpoint.EASY_AUTH}" : "{FunctionsEndpoint.UNAUTHENTICATED}"'
    assert setting == expected
    assert 'for_each = var.authorization == "entra" ? [var.entra] : []' in TEXTS["functions.tf"]


def test_the_store_takes_the_identity_and_no_key_from_the_settings() -> None:
    names = re.findall(r"(?m)^ +(A[zZ]\w+) +=", TEXTS["functions.tf"])

    config = AzureConfig.from_environment(dict.fromkeys(names, "given"))

    assert "AZURE_CLIENT_ID" in names
    assert config.credentials == DefaultChain()


def test_the_package_holds_libraries_for_the_python_that_is_deployed() -> None:
    [version] = re.findall(r'runtime_version += "([\d.]+)"', TEXTS["functions.tf"])

    assert {platform.python for platform in PLATFORMS} == {version}


def test_alerts_search_for_what_requests_the_reconciler_and_the_worker_log() -> None:
    query = TEXTS["monitoring.tf"]
    names = ("reconcile_line", "tasks_line", "collection_line", "request_log")
    lines = (PROJECT / "arco_catalog" / "telemetry" / f"{name}.py" for name in names)
    line = "".join(file.read_text() for file in lines)

    for name in re.findall(r"line\.(\w+)", query):
        assert f'"{name}"' in line
    assert {"api", "reconcile"} == set(re.findall(r"operation_Name == '(\w+)'", query))


def test_a_run_of_the_reconciler_ends_before_the_platform_ends_it() -> None:
    host = json.loads((PROJECT / "azure_functions" / "host.json").read_text())
    source = (PROJECT / "azure_functions" / "function_app.py").read_text()
    hours, minutes, seconds = map(int, host["functionTimeout"].split(":"))
    [most] = re.findall(r"RUN_MS = (\d+) \* 60_000", source)

    assert int(most) * 60 < hours * 3600 + minutes * 60 + seconds
    assert host["extensions"]["http"]["routePrefix"] == ""


def test_each_app_runs_functions_of_its_own_and_each_function_is_one_app_s() -> None:
    source = (PROJECT / "azure_functions" / "function_app.py").read_text()
    functions = set(re.findall(r'@app\.function_name\("(\w+)"\)', source))
    disabled = set(re.findall(r'"AzureWebJobs\.(\w+)\.Disabled"', TEXTS["functions.tf"]))
    [known] = re.findall(r"functions = \[(.*?)\]", TEXTS["worker.tf"])

    assert functions - disabled == {"api", "reconcile"}
    assert re.findall(r'runs = "(\w+)"', TEXTS["worker.tf"]) == ["tasks", "collect"]
    assert set(re.findall(r"\w+", known)) == functions
    assert '"AzureWebJobs.${name}.Disabled" => "true" if name != runs' in TEXTS["worker.tf"]


def test_the_worker_alone_deletes_data_and_creates_none() -> None:
    [app], [worker] = (
        re.findall(rf"(?ms)^  {name} = (.*?)^  \]\)", TEXTS["permissions.tf"])
        for name in ("catalog_condition", "worker_condition")
    )

    assert "deletes}) OR (${local.metadata} OR ${local.in_proposals} OR ${local.in_probe})" in app
    assert "deletes}) OR (${local.among_table} OR ${local.in_hints} OR ${local.in_probe})" in worker
    assert "creates} OR (${local.in_state} OR ${local.metadata} OR ${local.in_probe})" in worker
    assert "principal_id         = azurerm_user_assigned_identity.worker[each.key].principal_id" in TEXTS["worker.tf"]
    assert re.search(r'runs = "tasks",.* condition = local\.worker_condition', TEXTS["worker.tf"])


def test_the_collector_alone_deletes_state_and_neither_manifests_nor_data() -> None:
    [collector] = re.findall(r"(?ms)^  collector_condition = (.*?)^  \]\)", TEXTS["permissions.tf"])
    [replaceable] = re.findall(r"(?m)^  replaceable += (.*)$", TEXTS["permissions.tf"])

    assert "in_state} OR ${local.in_delegated}) AND ${local.replaceable}) OR ${local.metadata}" in collector
    assert "among_table" not in collector
    assert "StringNotLike '*/core/manifest.json'" in replaceable
    assert re.search(r'runs = "collect",.* condition = local\.collector_condition', TEXTS["worker.tf"])


@pytest.mark.parametrize("file", sorted(MODULE.rglob("*.tf")), ids=lambda file: Path(file).name)
def test_no_secret_goes_through_terraform(file: Path) -> None:
    text = file.read_text()

    assert not re.search(r"access_key +=|client_secret|connection_string +=.*primary|sas_token", text)
