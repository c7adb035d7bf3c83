"""The reference of all options, made from the parser: `python -m tools.configuration` writes docs/configuration.md, and
`--check` says whether it is current."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from arco_catalog.cli.options import MultiOption, Option, Switch
from arco_catalog.cli.program import SERVE, build_parser

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs" / "configuration.md"
HEAD = """\
# Configuration

<!-- Made by `python -m tools.configuration`: do not edit. -->

Every option of `arco serve` is a variable too; the option wins. A size has KB, MB or GB behind it, a switch is `true`
or `false`, and where several values may be given, commas part them in the variable. S3 stores take region, keys and
endpoint from the usual `AWS_*` variables, traces go where the usual `OTEL_*` variables say.

## arco serve

| option | variable | default | meaning |
| --- | --- | --- | --- |
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page, or with `--check` returns 1 if it is not what would be written."""
    parser = argparse.ArgumentParser(prog="configuration", description="Write docs/configuration.md.")
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if the page is not current")
    if not parser.parse_args(arguments).check:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        sys.stderr.write("docs/configuration.md is not current: run .venv/bin/python -m tools.configuration\n")
        return 1
    return 0


def page() -> str:
    """The whole page, as Markdown."""
    return HEAD + "".join(map(_row, SERVE)) + "".join(_commands())


def _row(option: Option) -> str:
    if isinstance(option, Switch):
        flag, default = option.flag, "`false`"
    else:
        many = "..." if isinstance(option, MultiOption) else ""
        flag = f"{option.flag} {option.metavar or ''}{many}".rstrip()
        default = "" if option.default is None else f"`{option.default}`"
    return f"| `{flag}` | `{option.variable}` | {default} | {_cell(option.help)} |\n"


def _commands() -> Iterator[str]:
    """A section for each other command, with what its help lists."""
    [commands] = [action for action in build_parser({})._actions if isinstance(action, argparse._SubParsersAction)]
    about = {action.dest: action.help or "" for action in commands._get_subactions()}
    for name, command in commands.choices.items():
        if name == "serve":
            continue
        yield f"\n## arco {name}\n\n{_sentence(about[name])}\n\n| argument | meaning |\n| --- | --- |\n"
        for action in command._actions:
            if action.dest != "help" and action.help != argparse.SUPPRESS:
                yield f"| `{_spelled(action)}` | {_cell(_expanded(action))} |\n"


def _spelled(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings)
    value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    return f"{names} {value}".strip()


def _expanded(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    sys.exit(main())
