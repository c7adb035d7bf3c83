"""Every block of code in the docs is run, or says why not."""

import time
from pathlib import Path

import pytest

from tests.docs.pages import OUTPUT, PROJECT, READ_ONLY, RUN, Block, blocks, pages
from tests.docs.running import perform


def runnable(page: Path) -> list[Block]:
    """The blocks of a page that are run, with what they print."""
    return [
        block for block in blocks(page) if block.info == OUTPUT or (block.language in RUN and block.not_run is None)
    ]


OWN_TEST = {"docs/cli.md": "tests/cli/test_cli_page.py"}
"""Pages whose blocks need a world of their own, and the test that runs them in it."""
RUNNABLE = {
    page: found
    for page in pages()
    if page.relative_to(PROJECT).as_posix() not in OWN_TEST and (found := runnable(page))
}


def name_of(page: Path) -> str:
    return page.relative_to(PROJECT).as_posix()


@pytest.mark.parametrize("page", [*pages()], ids=name_of)
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    unclear = [
        (block.line, block.info)
        for block in blocks(page)
        if block.info not in READ_ONLY
        and block.info not in RUN
        and (block.not_run is None or block.language not in RUN)
    ]
    assert unclear == []
    assert page.read_text().count("```") == 2 * len(blocks(page)), "a fence is not closed"


@pytest.mark.parametrize("page", [*RUNNABLE], ids=name_of)
def test_the_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path) -> None:
    perform(RUNNABLE[page], tmp_path)


def test_pages_that_teach_are_among_those_that_are_run() -> None:
    assert {"docs/tutorial.md", "docs/python.md", "docs/engines/pyiceberg.md", "README.md"} <= {*map(name_of, RUNNABLE)}


@pytest.mark.parametrize(
    "wrong",
    [
        [Block("sh", "false\n", 1)],
        [Block("python", "raise AssertionError\n", 1)],
        [Block("python", "print(1)\n", 1), Block(OUTPUT, "2\n", 4)],
    ],
    ids=["a shell block that fails", "a Python block that fails", "another output"],
)
def test_a_wrong_block_is_found(wrong: list[Block], tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        perform(wrong, tmp_path)


def test_what_a_block_that_fails_left_running_is_ended(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        perform([Block("sh", "sleep 600 & echo $! > pid; false\n", 1)], tmp_path)
    left = int((tmp_path / "pid").read_text())
    for _ in range(600):
        if has_ended(left):
            return
        time.sleep(0.1)
    pytest.fail("it still runs")


def has_ended(process: int) -> bool:
    try:
        return " Z " in Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_page_that_is_run_elsewhere_is_named_there() -> None:
    assert all(Path(page).name in (PROJECT / test).read_text() for page, test in OWN_TEST.items())
