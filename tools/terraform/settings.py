"""Turns a setting of the catalog into a variable of Terraform, with the type, default, description and checks of the
table of settings."""

from collections.abc import Iterable, Mapping

from arco_catalog.config.durations import parse_duration
from arco_catalog.config.parsing import Choice, Seconds, parse_bool, parse_key_lifetime, split_csv
from arco_catalog.config.variable import Variable
from tools.terraform.hcl import Check, TerraformVariable, object_type, quoted

DURATION = r"^P(\\d+D)?(T(\\d+H)?(\\d+M)?(\\d+S)?)?$"
DURATION_TO_A_DAY = r"^P(1D|T(\\d+H)?(\\d+M)?(\\d+S)?)$"


def of_setting(
    setting: Variable[object],
    *checks: Check,
    description: str | None = None,
    default: str | None = None,
) -> TerraformVariable:
    """The variable named after a setting, with more checks than its type has. `description` and `default` replace
    those of the table."""
    name = terraform_name(setting)
    return TerraformVariable(
        name,
        description or sentence(setting.help),
        type_of(setting),
        default or default_of(setting),
        (*checks_of(setting, name), *checks),
    )


def of_settings(name: str, description: str, fields: Mapping[str, Variable[object]]) -> TerraformVariable:
    """A variable that is an object with a setting in each field."""
    types = {field: f"optional({type_of(setting)}, {default_of(setting)})" for field, setting in fields.items()}
    checks = [check for field, setting in fields.items() for check in checks_of(setting, f"{name}.{field}")]
    return TerraformVariable(name, description, object_type(types), "{}", tuple(checks))


def terraform_name(setting: Variable[object]) -> str:
    """The name of a setting's variable."""
    return setting.name.removeprefix("ARCO_").lower()


def type_of(setting: Variable[object]) -> str:
    """The type that holds a setting's value."""
    if setting.parse is parse_bool:
        return "bool"
    if setting.parse is split_csv:
        return "list(string)"
    return "number" if isinstance(setting.parse, Seconds) else "string"


def default_of(setting: Variable[object]) -> str:
    """A setting's default as an expression."""
    default = setting.default
    if default is None:
        return "null"
    match type_of(setting):
        case "bool" | "number":
            return default
        case "list(string)":
            return f"[{', '.join(map(quoted, split_csv(default)))}]"
    return quoted(default)


def checks_of(setting: Variable[object], name: str) -> list[Check]:
    """Checks that a value satisfies the setting's parser, as far as Terraform can express them."""
    value, parse = f"var.{name}", setting.parse
    if isinstance(parse, Choice):
        given = f"lower({value})" if parse.any_case else value
        return [Check(f"contains({list_of(parse.words)}, {given})", f"{name} must be {words_of(parse.words)}.")]
    if isinstance(parse, Seconds):
        in_range = f"{value} >= {parse.low} && {value} <= {parse.high}"
        return [Check(in_range, f"{name} must be {parse.low} to {parse.high} seconds.")]
    if parse is parse_duration:
        return [
            Check(
                rf'can(regex("{DURATION}", {value})) && can(regex("\\d", {value}))',
                f"{name} must be a duration such as {setting.default}, P7D or PT0S.",
            )
        ]
    if parse is parse_key_lifetime:
        return [
            Check(
                f'can(regex("{DURATION_TO_A_DAY}", {value})) && can(regex("[1-9]", {value}))',
                f"{name} must be a duration such as {setting.default}, P1D at most.",
            )
        ]
    return []


def environment_of(setting: Variable[object], value: str) -> str:
    """The expression of a setting's text in the environment, of an expression of its value."""
    match type_of(setting):
        case "bool" | "number":
            return f"tostring({value})"
        case "list(string)":
            return f'join(",", {value})'
    return value


def sentence(help_text: str) -> str:
    """A help text as a description: without the remark on how the variable lists several values."""
    text = help_text.replace("; comma-separated", "")
    return f"{text[0].upper()}{text[1:]}."


def list_of(words: Iterable[str]) -> str:
    """A list of texts."""
    return f"[{', '.join(map(quoted, words))}]"


def words_of(words: Iterable[str]) -> str:
    """Words as prose: `a, b or c`."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
