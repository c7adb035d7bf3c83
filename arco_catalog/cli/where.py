"""Reads a condition as SQL has it after WHERE, and returns it as a filter in Iceberg's JSON form: comparisons of a
column with a value, IN, BETWEEN, LIKE with a prefix, IS NULL, IS NAN, and AND, OR and NOT."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from arco_catalog.cli.errors import CliError
from arco_catalog.iceberg.json import JsonObject, JsonValue

MAX_LEVELS: Final = 100
"""A condition with so many levels of brackets and NOT, or more, is rejected."""
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>"[^"]+"|`[^`]+`)|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"""
    r"""|(?P<word>[^\W\d][\w.]*)|(?P<sign><=|>=|<>|!=|[=<>(),]))"""
)
_COMPARISONS: Final = {
    **{"=": "eq", "!=": "not-eq", "<>": "not-eq"},
    **{"<": "lt", "<=": "lt-eq", ">": "gt", ">=": "gt-eq"},
}
_TYPED: Final = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "DECIMAL", "UUID")


class Token(NamedTuple):
    """A part of the text: its kind, a name of a group of the pattern, or `end`, and its text."""

    kind: str
    text: str

    @property
    def word(self) -> str:
        """The word in upper case, the sign, or empty text for anything else."""
        return self.text.upper() if self.kind in ("word", "sign") else ""


def parse_where(text: str) -> JsonValue:
    """Returns the filter that a condition means. Raises `CliError` for a text that can't be read."""
    parser = _Parser(_tokens(text))
    found = parser.disjunction(MAX_LEVELS)
    parser.expect_end()
    return found


def _tokens(text: str) -> Sequence[Token]:
    """Splits an expression into tokens, with one of the kind `end` last. Raises `CliError`."""
    found: list[Token] = []
    place = 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            raise CliError(f"--where can't be read from here on: {text[place : place + 50].strip()}")
        place = match.end()
        kind = str(match.lastgroup)
        found.append(Token(kind, match[kind]))
    return [*found, Token("end", "")]


class _Parser:
    """Parses the tokens of a condition. Methods consume the tokens that they read; those that read a part return it
    as a filter or value in Iceberg's JSON form, and raise `CliError` for other tokens."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._place = 0

    @property
    def _next(self) -> Token:
        """The next token, which is not consumed; the one of the kind `end` after all others."""
        return self._tokens[self._place]

    def _take(self) -> Token:
        """Consumes the next token, and returns it; the one of the kind `end` may be returned any number of times."""
        token = self._next
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def _takes(self, *words: str) -> bool:
        """Whether these words come next, which are then taken."""
        found = [token.word for token in self._tokens[self._place : self._place + len(words)]]
        if found != [*words]:
            return False
        self._place += len(words)
        return True

    def _expect(self, word: str) -> None:
        """Takes this word. Raises `CliError` if another one is next."""
        if not self._takes(word):
            raise CliError(f"--where needs {word} before: {self._next.text or 'its end'}")

    def expect_end(self) -> None:
        """Raises `CliError` unless the whole text was read."""
        if self._next.kind != "end":
            raise CliError(f"--where can't be read from here on: {self._next.text[:50]}")

    def disjunction(self, levels: int) -> JsonValue:
        """Reads conditions joined by OR, and returns the filter. At most `levels - 1` levels of brackets and NOT may be
        inside. Raises `CliError`."""
        found = self._conjunction(levels)
        while self._takes("OR"):
            found = {"type": "or", "left": found, "right": self._conjunction(levels)}
        return found

    def _conjunction(self, levels: int) -> JsonValue:
        """Reads conditions that are joined by AND, and returns the filter. At most `levels - 1` levels of brackets and
        NOT may be inside. Raises `CliError`."""
        found = self._condition(levels)
        while self._takes("AND"):
            found = {"type": "and", "left": found, "right": self._condition(levels)}
        return found

    def _condition(self, levels: int) -> JsonValue:
        """Reads one condition (NOT, brackets, TRUE, FALSE or a predicate), and returns the filter. Raises `CliError`,
        also for `levels` or more levels of brackets and NOT."""
        if levels == 0:
            raise CliError(f"--where has {MAX_LEVELS} levels of brackets and NOT, or more")
        if self._takes("NOT"):
            return {"type": "not", "child": self._condition(levels - 1)}
        if self._takes("("):
            found = self.disjunction(levels - 1)
            self._expect(")")
            return found
        for constant in (True, False):
            if self._takes(str(constant).upper()):
                return constant
        return self._predicate()

    def _predicate(self) -> JsonValue:
        """Reads a predicate about one column, and returns the filter. Raises `CliError`."""
        token = self._take()
        if token.kind not in ("word", "quoted"):
            raise CliError(f"--where needs the name of a column before: {token.text or 'its end'}")
        column = token.text[1:-1] if token.kind == "quoted" else token.text
        if self._takes("IS"):
            return self._unary(column)
        negated = self._takes("NOT")
        if self._takes("IN"):
            return {"type": "not-in" if negated else "in", "term": column, "values": self._values()}
        if self._takes("LIKE"):
            return self._like(column, negated=negated)
        if self._takes("BETWEEN"):
            return self._between(column, negated=negated)
        comparison = _COMPARISONS.get(self._take().word)
        if comparison is None or negated:
            raise CliError(
                f"--where needs a comparison (=, <>, <, <=, >, >=, IN, BETWEEN, LIKE or IS) after the column {column}, "
                "and after a NOT there IN, BETWEEN or LIKE"
            )
        return {"type": comparison, "term": column, "value": self._value()}

    def _unary(self, column: str) -> JsonValue:
        """Reads the words after `column IS`, and returns the filter. Raises `CliError` for others than NULL and NAN,
        with or without NOT."""
        form = "not" if self._takes("NOT") else "is"
        for word in ("NULL", "NAN"):
            if self._takes(word):
                return {"type": f"{form}-{word.lower()}", "term": column}
        raise CliError(f"--where needs NULL or NAN before: {self._next.text or 'its end'}")

    def _like(self, column: str, *, negated: bool) -> JsonValue:
        """Reads the pattern after `column LIKE`, and returns the filter. Raises `CliError` for a pattern that is not a
        prefix and %."""
        pattern = self._value()
        if not isinstance(pattern, str) or not pattern.endswith("%") or re.search("[%_]", pattern[:-1]):
            raise CliError("--where may have LIKE only with a prefix and %, such as 'abc%'")
        return {"type": "not-starts-with" if negated else "starts-with", "term": column, "value": pattern[:-1]}

    def _between(self, column: str, *, negated: bool) -> JsonValue:
        """Reads two values joined by AND after `column BETWEEN`, and returns the filter. Raises `CliError`."""
        first = self._value()
        self._expect("AND")
        left: JsonObject = {"type": "gt-eq", "term": column, "value": first}
        right: JsonObject = {"type": "lt-eq", "term": column, "value": self._value()}
        between: JsonObject = {"type": "and", "left": left, "right": right}
        return {"type": "not", "child": between} if negated else between

    def _values(self) -> list[JsonValue]:
        """Reads a list of values in brackets, at least one. Raises `CliError`."""
        self._expect("(")
        values = [self._value()]
        while self._takes(","):
            values.append(self._value())
        self._expect(")")
        return values

    def _value(self) -> JsonValue:
        """Reads one value: a number, a boolean, or a text. The name of a type before a text is ignored. Raises
        `CliError`."""
        token = self._take()
        if token.word in _TYPED and self._next.kind == "text":
            token = self._take()
        if token.word in ("TRUE", "FALSE"):
            return token.word == "TRUE"
        match token.kind:
            case "text":
                return token.text[1:-1].replace("''", "'")
            case "number":
                return int(token.text) if token.text.lstrip("-").isdecimal() else float(token.text)
        raise CliError(
            f"--where needs a number, TRUE, FALSE or a text in single quotes before: {token.text or 'its end'}"
        )
