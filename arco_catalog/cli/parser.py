"""The parser of the command line. It reports an error in two lines: the mistake with the most similar valid word, and
the command that prints help."""

import argparse
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

REQUIRED = "the following arguments are required: "
INVALID_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from .*", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """argparse's parser with short errors: its own prints the usage of every option. `declared` are its options and
    arguments; `commands` are its subcommands by name, each with its summary."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self.declared: list[argparse.Action] = []
        self.commands: dict[str, tuple[str, Parser]] = {}
        # an abbreviation would become another option's, or ambiguous, when an option is added
        super().__init__(*arguments, **{"allow_abbrev": False, **settings})

    def add_argument(self, *arguments: Any, **settings: Any) -> argparse.Action:
        """Declares an option or argument as argparse does, and records it in `declared`."""
        action = super().add_argument(*arguments, **settings)
        self.declared.append(action)
        return action

    def error(self, message: str) -> NoReturn:
        """Prints the message on stderr, for an unknown word with a similar valid one if there is any, and the command
        that prints help, and raises `SystemExit` with 2."""
        choice = INVALID_CHOICE.search(message)
        options = message.split() if message.startswith("unrecognized arguments") else ()
        words = [choice[1]] if choice else [word.partition("=")[0] for word in options if word.startswith("-")]
        near = [match for word in words for match in self._similar(word) if match != word]
        if message.startswith(REQUIRED):
            message = REQUIRED + ", ".join(map(self._described, message.removeprefix(REQUIRED).split(", ")))
        if choice is not None and not choice[1].startswith("-"):
            message = message.replace(choice[0], f"there is no {choice[1]!r}") if near else message
        hint = f" (did you mean {' '.join(near)}?)" if near else ""
        self.exit(2, f"{self.prog}: error: {message}{hint}\n`{self.prog} --help` describes it\n")

    def take_rest(self, parsed: argparse.Namespace, words: list[str]) -> bool:
        """Assigns the words that no argument took to the first positional argument that is optional, has no value yet
        and can take all of them. argparse itself assigns such words only directly behind the argument before it.
        Returns whether an argument took them; false if a word is an option."""
        if any(word.startswith("-") for word in words):
            return False
        for action in self.declared:
            empty = not action.option_strings and not getattr(parsed, action.dest)
            if empty and (action.nargs == "*" or (action.nargs == "?" and len(words) == 1)):
                setattr(parsed, action.dest, words if action.nargs == "*" else words[0])
                return True
        return False

    def _similar(self, word: str) -> list[str]:
        """Returns a list with the valid word of the same kind (option or not) that is most similar to a word; empty if
        none is similar. Dashes don't count: with them any two short options would be similar."""
        dashes = word[: len(word) - len(word.lstrip("-"))]
        kind = [each.removeprefix(dashes) for each in self._words() if each.startswith("-") == bool(dashes)]
        return [f"{dashes}{match}" for match in get_close_matches(word.lstrip("-"), kind, n=1)]

    def _described(self, name: str) -> str:
        """Returns the name of an argument, with the words that it takes if it has choices."""
        action = next((each for each in self.declared if each.dest == name and each.choices), None)
        return name if action is None else f"{name} ({', '.join(map(str, action.choices or ()))})"

    def _words(self) -> Iterator[str]:
        """Yields the words that are valid on the command line: commands, and the options and choices in `declared`."""
        yield from self.commands
        for action in self.declared:
            yield from action.option_strings
            yield from map(str, action.choices or ())


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the command line, and returns the values. Exits with 2 for a word that no option or argument takes, with
    the message of the command's own parser, which knows its options."""
    parsed, unknown = parser.parse_known_args(arguments)
    own: Parser = getattr(parsed, "parser", parser)
    if unknown and not own.take_rest(parsed, unknown):
        own.error(f"unrecognized arguments: {' '.join(unknown)}")
    return parsed
