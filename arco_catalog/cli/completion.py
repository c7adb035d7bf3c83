"""Writes the scripts with which shells complete commands and options of `arco`, from the parser.

Each script is a pure function of the parser. The shell completes file names for a value without known choices; bash
does so for every value of an option.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from arco_catalog.cli.parser import Parser


@dataclass(frozen=True, slots=True)
class CompletedOption:
    """An option of a command with all its names, as the completion of a shell offers it. `takes_value` is whether a
    value follows; `choices` are the possible values, empty if they are not known."""

    names: Sequence[str]
    help: str
    takes_value: bool
    choices: Sequence[str]


@dataclass(frozen=True, slots=True)
class CompletedCommand:
    """A command, as the completion of a shell offers it: name, summary, the options (`words`), and the choices of the
    first positional argument (`arguments`), empty if that has none."""

    name: str
    summary: str
    words: Sequence[CompletedOption]
    arguments: Sequence[str]


def script(shell: str, parser: Parser) -> str:
    """Returns the completion script of a parser's commands and options for a shell, which is `bash`, `zsh` or `fish`.
    Raises `KeyError` for another shell."""
    writers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    return writers[shell](parser.prog, [*_commands(parser)])


def _commands(parser: Parser) -> Iterator[CompletedCommand]:
    """Yields the commands of a parser, with the words that can follow each."""
    for name, (summary, inner) in parser.commands.items():
        yield CompletedCommand(name, summary, [*_words(inner)], [*_arguments(inner)])


def _words(parser: Parser) -> Iterator[CompletedOption]:
    """Yields the options of one command's parser, without hidden ones."""
    for action in parser.declared:
        if action.option_strings and action.help != argparse.SUPPRESS:
            choices = [str(choice) for choice in action.choices or ()]
            yield CompletedOption(action.option_strings, _one_line(action.help or ""), action.nargs != 0, choices)


def _arguments(parser: Parser) -> Iterator[str]:
    """Yields the choices for the first positional argument of a command."""
    for action in parser.declared:
        if not action.option_strings:
            yield from map(str, action.choices or ())
            return


def _one_line(text: str) -> str:
    """Returns the help text of an option on one line, without the environment variable that may be named at the end."""
    return re.sub(r" \[env .*\]$", "", " ".join(text.replace("%%", "%").split()))


def _bash(program: str, commands: Sequence[CompletedCommand]) -> str:
    """Returns the completion script for bash: it offers the commands, then the options of a command and the choices of
    the first argument, or else files, also for the values of options with known choices."""
    cases = [f"    {each.name}) words={_sh(' '.join(_all_words(each)))} ;;" for each in commands]
    names = " ".join(each.name for each in commands)
    return f"""\
# bash completion for {program}: source <({program} completion bash)
_{program}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=""
  COMPREPLY=()
  case ${{COMP_CWORD}}:${{COMP_WORDS[1]}} in 1:*) words={_sh(f"{names} --help --version")} ;; *)
    case ${{COMP_WORDS[1]}} in
{chr(10).join(cases)}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _{program} {program}
"""


def _all_words(command: CompletedCommand) -> Iterator[str]:
    """Yields the words that the completion of bash offers behind a command: the choices of the first argument, and the
    names of the options."""
    yield from command.arguments
    for word in command.words:
        yield from word.names


def _zsh(program: str, commands: Sequence[CompletedCommand]) -> str:
    """Returns the completion script for zsh, with the summaries and the help of options."""
    described = "\n".join(f"    {_sh(f'{_colons(each.name)}:{each.summary}')}" for each in commands)
    cases = "\n".join(f"    ({each.name}) _arguments {' '.join(map(_sh, _zsh_specs(each)))} ;;" for each in commands)
    return f"""\
#compdef {program}
# zsh completion for {program}: source <({program} completion zsh), below compinit
_{program}() {{
  local -a commands=(
{described}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{cases}
  esac
}}
compdef _{program} {program}
"""


def _zsh_specs(command: CompletedCommand) -> Iterator[str]:
    """Yields the arguments of zsh's `_arguments` for a command; values without known choices are completed as files."""
    for word in command.words:
        described = f"[{_brackets(word.help)}]"
        value = ""
        if word.takes_value:
            value = f":value:({' '.join(word.choices)})" if word.choices else ":value:_files"
        for name in word.names:
            yield f"*{name}{described}{value}"
    yield f"*:argument:({' '.join(command.arguments)})" if command.arguments else "*:argument:_files"


def _fish(program: str, commands: Sequence[CompletedCommand]) -> str:
    """Returns the completion script for fish, with the summaries and the help of options."""
    lines = [f"# fish completion for {program}: {program} completion fish | source"]
    lines += [
        f"complete -c {program} -n __fish_use_subcommand -f -a {each.name} -d {_fish_quoted(each.summary)}"
        for each in commands
    ]
    for each in commands:
        inside = f"complete -c {program} -n '__fish_seen_subcommand_from {each.name}'"
        if each.arguments:
            lines.append(f"{inside} -f -a {_fish_quoted(' '.join(each.arguments))}")
        for word in each.words:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in word.names)
            value = " -r" if word.takes_value else ""
            choices = f" -f -a {_fish_quoted(' '.join(word.choices))}" if word.choices else ""
            lines.append(f"{inside} {names}{value}{choices} -d {_fish_quoted(word.help)}")
    return "\n".join(lines) + "\n"


def _sh(text: str) -> str:
    """Quotes a text for bash and zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    """Quotes a text for fish, where a backslash is special inside quotes too."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _colons(text: str) -> str:
    """Escapes the colons of a text for zsh."""
    return text.replace(":", "\\:")


def _brackets(text: str) -> str:
    """Escapes the brackets, colons and backslashes of a text, which could end a description of zsh's `_arguments`."""
    return re.sub(r"([\[\]:\\])", r"\\\1", text)
