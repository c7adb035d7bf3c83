"""`python -m tests.language.trial SEED`: a sample of the product's writing for a trial with two readers.

Reader A has this sample alone and writes a sentence for each item: what the function does, what a message means for its
reader, what a paragraph or a docstring means. Reader B compares the sentences with the code: right, partly right or
wrong. The seed is the commit id of main at the start of the trial: the sample cannot be chosen.
"""

import ast
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from tests.language.findings import PRODUCT, ROOT, files

SIZES = {"function": 60, "message": 30, "paragraph": 20, "docstring": 40}
MIN_PARAGRAPH = 200
"""Characters."""


@dataclass(frozen=True, order=True)
class Item:
    """A piece of writing, and where reader B finds it."""

    kind: str
    place: str
    text: str


def functions_and_docstrings() -> Iterator[Item]:
    """Each documented function by its name, signature and docstring, and each docstring of a module or class."""
    for path in files(*PRODUCT, suffix=".py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() if docstring := ast.get_docstring(node):
                    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                    signature = f"{node.name}({ast.unparse(node.args)}){returns}"
                    yield Item("function", f"{path.relative_to(ROOT)}:{node.lineno}", f"{signature}\n{docstring}")
                case ast.ClassDef() if docstring := ast.get_docstring(node):
                    yield Item("docstring", f"{path.relative_to(ROOT)}:{node.lineno}", f"{node.name}\n{docstring}")
                case ast.Module() if docstring := ast.get_docstring(node):
                    module = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
                    yield Item("docstring", f"{path.relative_to(ROOT)}:1", f"{module}\n{docstring}")


def messages() -> Iterator[Item]:
    """Each text of three words or more with which an exception is raised, behind the exception's type."""
    for path in files(*PRODUCT, suffix=".py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                text = ast.unparse(node.exc.args[0])
                if isinstance(node.exc.args[0], ast.Constant | ast.JoinedStr) and text.count(" ") > 1:
                    raised = f"{ast.unparse(node.exc.func)}: {text}"
                    yield Item("message", f"{path.relative_to(ROOT)}:{node.lineno}", raised)


def paragraphs() -> Iterator[Item]:
    """Each longer paragraph of the documentation, without decisions, tables, lists and code."""
    for path in files("README.md", "docs", suffix=".md"):
        if "decisions" in path.parts:
            continue
        source = re.sub(r"(?ms)^```.*?^```", "", path.read_text())
        for paragraph in re.split(r"\n\s*\n", source):
            if len(paragraph) >= MIN_PARAGRAPH and paragraph[:1].isalpha():
                line = path.read_text().partition(paragraph)[0].count("\n") + 1
                yield Item("paragraph", f"{path.relative_to(ROOT)}:{line}", paragraph)


@cache
def everything() -> Sequence[Item]:
    """All that a trial draws from, in order."""
    return sorted({*functions_and_docstrings(), *messages(), *paragraphs()})


def sample(seed: str) -> list[Item]:
    """The items of a trial, the same for the same tree and seed."""
    chance = random.Random(seed)
    return [
        item
        for kind, size in SIZES.items()
        for item in chance.sample([each for each in everything() if each.kind == kind], size)
    ]


def main(seed: str) -> None:
    """Prints the sample for reader A, and on standard error the places for reader B."""
    for number, item in enumerate(sample(seed), 1):
        print(f"## {number} ({item.kind})\n{item.text}\n")
        print(number, item.kind, item.place, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
