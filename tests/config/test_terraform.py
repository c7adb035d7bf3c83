"""The Terraform of three clouds that is made from the table of settings."""

import pytest

from arco_catalog.config.variables import IDEMPOTENCY_DIALECT, LOG_LEVEL, OIDC_ALGORITHMS, PURGE_MODE, TOKEN_LIFETIME
from tools.terraform import __main__ as terraform
from tools.terraform.clouds import CLOUDS, Cloud
from tools.terraform.hcl import TerraformVariable
from tools.terraform.settings import checks_of, default_of, environment_of, of_setting, of_settings


@pytest.mark.parametrize("cloud", CLOUDS, ids=[cloud.folder.name for cloud in CLOUDS])
def test_the_files_are_those_that_the_table_gives(cloud: Cloud) -> None:
    made = dict(terraform.files_of(cloud))

    assert {file: file.read_text() for file in made} == made
    assert terraform.main(["--check"]) == 0


def test_types_and_defaults_are_those_of_the_settings() -> None:
    assert of_setting(TOKEN_LIFETIME).type == "number"
    assert default_of(TOKEN_LIFETIME) == "3600"
    assert default_of(OIDC_ALGORITHMS) == '["RS256", "ES256", "EdDSA"]'
    assert environment_of(OIDC_ALGORITHMS, "var.oidc_algorithms") == 'join(",", var.oidc_algorithms)'


def test_choices_and_ranges_are_checked_as_their_parsers_check_them() -> None:
    [dialect] = checks_of(IDEMPOTENCY_DIALECT, "idempotency_dialect")
    [level] = checks_of(LOG_LEVEL, "log_level")
    [lifetime] = checks_of(TOKEN_LIFETIME, "token_lifetime")

    assert dialect.condition == 'contains(["iceberg", "polaris"], var.idempotency_dialect)'
    assert level.condition == 'contains(["debug", "info", "warning", "error"], lower(var.log_level))'
    assert lifetime.condition == "var.token_lifetime >= 10 && var.token_lifetime <= 86400"
    assert lifetime.message == "token_lifetime must be 10 to 86400 seconds."


def test_an_object_has_a_field_for_each_setting() -> None:
    variable = of_settings("purge", "Purges.", {"mode": PURGE_MODE})

    assert variable.block() == (
        'variable "purge" {\n'
        '  description = "Purges."\n'
        "  type = object({\n"
        '    mode = optional(string, "async")\n'
        "  })\n"
        "  default = {}\n"
        "\n"
        "  validation {\n"
        '    condition     = contains(["async", "sync", "off"], var.purge.mode)\n'
        '    error_message = "purge.mode must be async, sync or off."\n'
        "  }\n"
        "}\n"
    )


def test_a_variable_without_a_default_is_required() -> None:
    assert "default" not in TerraformVariable("name", "Prefix.").block()
