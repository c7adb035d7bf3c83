"""The words of a file: of Python its docstrings, comments, string literals and the names that it defines; of Markdown
its prose. A use of a name does not count: a rate measures the writing, not how often a function is called."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

WORD = re.compile(r"[a-z]{2,}")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
STRING_OR_COMMENT = re.compile(
    r"""(?s)\"{3}(?:\\.|.)*?\"{3}|'{3}(?:\\.|.)*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(\#[^\n]*)"""
)
"""A comment is its group; a string, in which a hash begins none, has no group. `tokenize` takes ten times as long."""
MARKDOWN_CODE = re.compile(r"(?ms)^```.*?^```|`[^`\n]*`|\]\([^)]*\)|<[^>]*>")


@dataclass(frozen=True)
class Text:
    """The words of one file, what its names and docstrings are, and how many lines it has."""

    lines: int
    words: Counter[str]
    definitions: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    docstrings: tuple[str, ...] = ()


def words_of(text: str) -> Counter[str]:
    """The words of prose or of identifiers, in lower case; `snake_case` and `CamelCase` are several words."""
    return Counter(WORD.findall(CAMEL.sub(" ", text).lower().replace("_", " ")))


@cache
def read(path: Path) -> Text:
    """The text of a Python or Markdown file."""
    source = path.read_text()
    return _python(source) if path.suffix == ".py" else _markdown(source)


def _markdown(source: str) -> Text:
    return Text(source.count("\n"), words_of(MARKDOWN_CODE.sub(" ", source)))


def _python(source: str) -> Text:
    nodes = list(ast.walk(ast.parse(source)))
    definitions = tuple(_definitions(nodes))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = (ast.get_docstring(node) for node in nodes if isinstance(node, documented))
    strings = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    comments = (comment for comment in STRING_OR_COMMENT.findall(source) if comment)
    return Text(
        lines=source.count("\n"),
        words=words_of("\n".join((*definitions, *strings, *comments))),  # docstrings are strings, too
        definitions=definitions,
        classes=tuple(node.name for node in nodes if isinstance(node, ast.ClassDef)),
        docstrings=tuple(docstring for docstring in docstrings if docstring),
    )


def _definitions(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names of classes, functions, parameters, variables and attributes, each where it is defined."""
    for node in nodes:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case _:
                pass
