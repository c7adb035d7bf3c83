"""A function reads its environment as `arco serve` reads the same variables."""

import pytest

from arco_catalog.cli.program import build_parser
from arco_catalog.operations.environment import settings_in

STORE = {"ARCO_STORE": "memory:", "ARCO_WAREHOUSE": "wh"}


@pytest.mark.parametrize("text", ["true", "True", "yes", "1", "false", "no", "0", ""])
def test_a_function_takes_a_switch_for_what_the_command_line_takes_it_for(text: str) -> None:
    environment = {**STORE, "ARCO_ALLOW_LOCATION_OVERLAP": text}

    served = build_parser(environment).parse_args(["serve"])

    assert settings_in(environment).allow_location_overlap is served.allow_location_overlap


def test_a_switch_that_is_neither_on_nor_off_is_named() -> None:
    with pytest.raises(ValueError, match="ARCO_ALLOW_LOCATION_OVERLAP: choose true or false"):
        settings_in({**STORE, "ARCO_ALLOW_LOCATION_OVERLAP": "maybe"})


@pytest.mark.parametrize("name", ["", "a/b", "..", "_probe", "ü"])
def test_a_function_takes_no_name_that_the_command_line_refuses(name: str) -> None:
    with pytest.raises(ValueError, match="warehouse's name"):
        settings_in({**STORE, "ARCO_WAREHOUSE": name})
