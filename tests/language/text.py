"""The words of a file: of Python its docstrings, comments, string literals and the names that it defines; of Markdown
its prose. A use of a name does not count: a rate measures the writing, not how often a function is called."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORD = re.compile(r"[a-z]{2,}")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
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


def read(path: Path) -> Text:
    """The text of a Python or Markdown file."""
    source = path.read_text()
    return _python(source) if path.suffix == ".py" else _markdown(source)


def _markdown(source: str) -> Text:
    return Text(source.count("\n"), words_of(MARKDOWN_CODE.sub(" ", source)))


def _python(source: str) -> Text:
    tree = ast.parse(source)
    definitions = tuple(_definitions(tree))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented))
    strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = (token.string for token in tokens if token.type == tokenize.COMMENT)
    return Text(
        lines=source.count("\n"),
        words=words_of("\n".join((*definitions, *strings, *comments))),  # docstrings are strings, too
        definitions=definitions,
        classes=tuple(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)),
        docstrings=tuple(docstring for docstring in docstrings if docstring),
    )


def _definitions(tree: ast.Module) -> Iterator[str]:
    """The names of classes, functions, parameters, variables and attributes, each where it is defined."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case _:
                pass
