"""docs/fsck.md has every code, with what `arco fsck` says of it."""

from pathlib import Path

from arco_catalog.upkeep.fsck.codes import Code
from tests.upkeep.fsck.damage_table import as_markdown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fsck.md"


def test_the_table_of_damages_is_what_the_tests_of_them_expect() -> None:
    assert as_markdown() in PAGE.read_text()


def test_the_table_of_codes_is_what_the_command_tells() -> None:
    rows = [f"| `{code}` | {code.severity} | {code.meaning} | {code.remedy} | {code.repair} |" for code in Code]

    assert PAGE.read_text().endswith("\n".join(["| --- | --- | --- | --- | --- |", *rows, ""]))
