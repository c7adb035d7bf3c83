"""One table of the catalog's environment variables, which all that read or set one go by."""

import ast
import re
from pathlib import Path

import pytest

from arco_catalog.cli.options import MultiOption, Option, Switch
from arco_catalog.cli.program import SERVE
from arco_catalog.config.variable import Variable
from arco_catalog.config.variables import (
    AUTHENTICATION,
    AZURE_CLIENT,
    CACHE_MEMORY,
    DELEGATION,
    DELIVERY,
    DIALECTS,
    FILE_CONFIRMED,
    FUNCTIONS,
    GCS_CLIENT,
    IDEMPOTENCY_DIALECT,
    IDEMPOTENCY_ENABLED,
    IDEMPOTENCY_LIFETIME,
    MAX_BODY,
    MAX_METADATA,
    NAMESPACE_SEPARATOR,
    POLICY,
    REQUEST_MEMORY,
    SERVER,
    STORE,
    STORE_SETTINGS,
    VENDING,
    VENDING_LIFETIME,
    WAREHOUSE,
)
from arco_catalog.http.options import HttpOptions
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.key_settings import Dialect
from storage_backends.azure.config import AzureConfig, ClientKind
from storage_backends.gcs.config import GcsClient, GcsConfig
from tools.support.environment import PROJECT

EVERY_ROW = (*SERVER, *FUNCTIONS, *AUTHENTICATION, *POLICY, *VENDING, *DELEGATION, *STORE_SETTINGS, *DELIVERY)
EVERY = {variable.name: variable for variable in EVERY_ROW}
NAME = re.compile(r"\bARCO_[A-Z0-9_]*[A-Z]\b")


def test_a_name_is_in_the_table_once() -> None:
    assert len(EVERY) == len({id(variable) for variable in EVERY_ROW})


def test_stores_read_the_variables_that_the_table_says_they_do() -> None:
    configurations = (PROJECT / "storage_backends").rglob("config.py")
    read = {name for file in configurations for name in NAME.findall(file.read_text())}

    assert read == {variable.name for variable in STORE_SETTINGS}


def test_the_server_has_an_option_for_each_of_its_variables() -> None:
    assert [option.variable for option in SERVE] == [*SERVER]


def test_a_flag_is_made_of_its_variable_in_the_singular_where_values_are_given_one_by_one() -> None:
    kinds = {option.flag: type(option) for option in SERVE}

    assert kinds["--idempotency-enabled"] is Option
    assert kinds["--gzip"] is Switch
    assert {flag for flag, kind in kinds.items() if kind is MultiOption} == {
        *("--allowed-location", "--allowed-host", "--allowed-origin", "--console-client", "--console-origin"),
        *("--task-property", "--realm", "--auth"),
    }


def test_no_module_spells_a_variable_that_the_table_has() -> None:
    shipped = [file for room in ("arco_catalog", "lambda", "reconciler") for file in (PROJECT / room).rglob("*.py")]
    spelled = {file for file in shipped if any(NAME.fullmatch(text) for text in texts_in(file))}

    assert spelled == {PROJECT / "arco_catalog" / "config" / "variables.py"}


def texts_in(file: Path) -> list[str]:
    """All string literals of a module."""
    nodes = ast.walk(ast.parse(file.read_text()))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


@pytest.mark.parametrize("folder", ["arco_catalog", "lambda", "infra", "deploy/helm", "deploy/systemd"])
def test_whatever_is_told_of_a_variable_is_of_one_in_the_table(folder: str) -> None:
    files = [
        file for file in (PROJECT / folder).rglob("*") if file.suffix in (".py", ".tf", ".md", ".yaml", ".service")
    ]
    named = {name for file in files if ".terraform" not in file.parts for name in NAME.findall(file.read_text())}

    assert named
    assert named <= set(EVERY)


def test_terraform_sets_what_functions_read() -> None:
    texts = [(PROJECT / "infra" / file).read_text() for file in ("functions.tf", "setting_environment.tf", "realm.tf")]
    set_there = set(re.findall(r"[ {](ARCO_\w+) += ", "".join(texts)))

    assert {"ARCO_STORE", "ARCO_WAREHOUSE", "ARCO_ENDPOINT"} <= set_there
    assert set_there <= {variable.name for variable in (*FUNCTIONS, *AUTHENTICATION)}


@pytest.mark.parametrize("kind", ClientKind)
def test_a_store_reads_the_clients_that_the_table_has(kind: ClientKind) -> None:
    environment = {AZURE_CLIENT.name: kind.value}

    assert AZURE_CLIENT.read(environment) == AzureConfig.from_environment(environment).client == kind
    assert AZURE_CLIENT.read({}) == AzureConfig().client


@pytest.mark.parametrize("client", GcsClient)
def test_a_store_on_gcs_reads_the_clients_that_the_table_has(client: GcsClient) -> None:
    environment = {GCS_CLIENT.name: client.value}

    assert GCS_CLIENT.read(environment) == GcsConfig.from_environment(environment).client == client
    assert GCS_CLIENT.read({}) == GcsConfig().client


def test_who_embeds_the_catalog_gets_the_defaults_of_who_serves_it() -> None:
    settings, http = Settings("wh"), HttpOptions()

    assert settings.max_metadata_bytes == MAX_METADATA.read({})
    assert settings.cache_bytes == CACHE_MEMORY.read({})
    assert settings.file_confirmed_ms == FILE_CONFIRMED.read({})
    assert http.max_body_bytes == MAX_BODY.read({})
    assert http.request_memory_bytes == REQUEST_MEMORY.read({})
    assert http.dialect == IDEMPOTENCY_DIALECT.read({})
    assert http.keys_enabled == IDEMPOTENCY_ENABLED.read({})
    assert http.namespace_separator == NAMESPACE_SEPARATOR.read({})
    assert http.key_lifetime_ms == IDEMPOTENCY_LIFETIME.read({})
    assert tuple(Dialect) == DIALECTS


@pytest.mark.parametrize("variable", EVERY.values(), ids=EVERY)
def test_a_default_is_a_text_that_may_be_set(variable: Variable[object]) -> None:
    if variable.default is None:
        with pytest.raises(KeyError, match=variable.name):
            variable.read({})
    else:
        assert variable.read({}) == variable.read({variable.name: ""}) == variable.parse(variable.default)


def test_a_variable_that_has_to_be_set_has_no_default() -> None:
    assert WAREHOUSE.read({}) == "arco"
    with pytest.raises(KeyError, match="ARCO_WAREHOUSE"):
        WAREHOUSE.require({})
    with pytest.raises(ValueError, match="ARCO_WAREHOUSE: a warehouse's name"):
        WAREHOUSE.require({"ARCO_WAREHOUSE": ""})
    assert STORE.require({"ARCO_STORE": "memory:"}) == "memory:"


@pytest.mark.parametrize("text", ["59", "43201", "", "1h", "-60", "६०"])
def test_vended_credentials_live_from_a_minute_to_what_sts_gives_at_most(text: str) -> None:
    assert (VENDING_LIFETIME.parse("60"), VENDING_LIFETIME.parse("43200")) == (60, 43_200)
    with pytest.raises(ValueError, match="expected a number of seconds from 60 to 43200, got"):
        VENDING_LIFETIME.parse(text)


def test_a_text_that_cannot_be_read_is_told_with_the_name_of_its_variable() -> None:
    with pytest.raises(ValueError, match="ARCO_IDEMPOTENCY_DIALECT: expected iceberg or polaris, got 'x'"):
        IDEMPOTENCY_DIALECT.read({"ARCO_IDEMPOTENCY_DIALECT": "x"})
