"""CONTRIBUTING.md names files and names in them, which are there."""

import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.docs.pages import PROJECT

ROOMS = ("arco_catalog", "storage_backends", "tests", "tools")


def steps() -> list[str]:
    """The numbered steps of all recipes."""
    text = (PROJECT / "CONTRIBUTING.md").read_text()
    return re.findall(r"(?m)^\d\. .*\n(?:   .*\n)*", text)


def sources(step: str) -> Iterator[str]:
    """The text of each Python file that a step names: by its path, by the end of it, or by its name alone. Raises
    `LookupError` for a file that is not there."""
    for name in re.findall(r"`([\w/]+\.py)`", step):
        if "NAME" in name:
            continue
        found = [file for room in ROOMS for file in (PROJECT / room).rglob("*.py") if f"/{file}".endswith(f"/{name}")]
        if not found:
            raise LookupError(f"{name} is not there: {step}")
        yield from (file.read_text() for file in found)


@cache
def defined() -> set[str]:
    """Every class and function of the repository."""
    files = (file for room in ROOMS for file in (PROJECT / room).rglob("*.py"))
    return {name for file in files for name in re.findall(r"(?m)^\s*(?:class|def|async def) (\w+)", file.read_text())}


@pytest.mark.parametrize("step", steps(), ids=lambda step: step[:50].strip())
def test_a_step_names_files_and_names_that_are_there(step: str) -> None:
    texts = "\n".join(sources(step))
    for path in re.findall(r"`([\w/]+/)`", step):
        assert (PROJECT / path).is_dir(), path
    if texts:
        names = set(re.findall(r"`([A-Za-z]\w+)`", step.replace("`NameConfig`", "")))
        assert {name for name in names - defined() if not re.search(rf"\b{name}\b", texts)} == set()


def test_a_file_that_is_gone_is_found() -> None:
    with pytest.raises(LookupError, match=r"gone\.py"):
        list(sources("1. `tests/iceberg/gone.py`: examples"))
