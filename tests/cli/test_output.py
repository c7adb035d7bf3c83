"""Tables on a terminal: whole words and whole ids at any width."""

import io
from types import SimpleNamespace

import pytest

from arco_catalog.cli import output
from arco_catalog.cli.output import table

TIME = "2026-11-28 03:51:46.574"
TASK = "ae7d817f-50b3-4acb-8597-3a6627e3913c"
HISTORY = ("TIME (UTC)", "COMMIT", "WHAT", "NAME", "BY", "ENTITY")
RENAME = (TIME, "12", "rename-table", "sales.orders -> sales.orders2", "anonymous (PyIceberg/0.12.0)", "01M8G4FJFXB4M")
PURGE = (TIME, "10", "drop-table (purge)", "sales_of_europe.t3", "operator (arco)", "01M8G4FM9H3V")
TASKS = ("TASK", "TYPE", "ABOUT", "STATUS", "ATTEMPTS", "NEXT (UTC)", "RESULT")
PURGE_TASK = (TASK, "TABLE_PURGE", "sales.t3", "RETRY_SCHEDULED", "2", TIME, "the store did not answer in time")
CHECKS = ("CHECK", "STATUS", "FOUND", "WHAT TO DO")
CHECK = (
    "conditional writes",
    "ok",
    "file:/lake answered two calls in 7 ms, and kept what it refused",
    "nothing at all",
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(params=[60, 80, 130])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(output, "sys", SimpleNamespace(stdout=Terminal()))
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


@pytest.mark.parametrize(
    ("headings", "lines"),
    [(HISTORY, [RENAME, PURGE]), (TASKS, [PURGE_TASK]), (CHECKS, [CHECK])],
    ids=["history", "tasks", "doctor"],
)
def test_no_word_is_broken_and_no_line_is_wider_than_the_terminal(
    width: int, headings: tuple[str, ...], lines: list[tuple[str, ...]]
) -> None:
    text = table(headings, lines)

    assert max(map(len, text.splitlines())) <= width
    words = set(text.split())
    for cell in (*headings, *(cell for line in lines for cell in line)):
        assert words >= {*cell.split()}, cell
    for whole in (TIME, TASK, "sales.orders -> sales.orders2"):
        assert (whole in text) == any(whole in line for line in lines), "times, ids and names are copied whole"


def test_columns_for_wide_terminals_are_left_out_one_after_the_other(width: int) -> None:
    text = table(HISTORY, [RENAME], wide=False, wide_only=("ENTITY", "BY"))

    assert ("ENTITY" in text.splitlines()[0]) == (width == 130)
    assert text.endswith("(--wide shows ENTITY, BY)") == (width < 130)


def test_a_table_that_is_too_wide_has_a_line_for_each_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "sys", SimpleNamespace(stdout=Terminal()))
    monkeypatch.setenv("COLUMNS", "60")

    assert table(("NAME", "NOTE"), [("a" * 50, "b" * 20), ("c" * 3, "")]).splitlines() == [
        f"NAME  {'a' * 50}",
        f"NOTE  {'b' * 20}",
        "",
        f"NAME  {'c' * 3}",
    ]


def test_without_rich_nothing_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "sys", SimpleNamespace(stdout=Terminal()))
    monkeypatch.setattr(output, "_terminal", lambda: None)
    monkeypatch.setenv("COLUMNS", "60")

    assert table(CHECKS, [CHECK]).splitlines()[0] == "CHECK       conditional writes"
    assert table(("NAME", "NOTE"), [("a", "b")]).splitlines() == ["NAME  NOTE", "a     b"]
