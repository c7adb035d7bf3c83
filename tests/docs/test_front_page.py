"""README is a front page: short, and without what other pages or commands generate."""

from tests.docs.pages import PROJECT

README = (PROJECT / "README.md").read_text()
MAX_WORDS = 1000


def test_it_is_read_in_minutes() -> None:
    assert len(README.split()) < MAX_WORDS


def test_it_repeats_no_option_and_no_variable() -> None:
    generated = (PROJECT / "docs/configuration.md").read_text()
    options = {line.split("`")[1].split()[0] for line in generated.splitlines() if line.startswith("| `--")}
    assert len(options) > 20
    assert [
        line for line in README.splitlines() if line.startswith("|") and any(f"`{name}" in line for name in options)
    ] == []


def test_it_comes_in_the_order_of_a_first_reader() -> None:
    headings = [
        "## Run it",
        "## Connect an engine",
        "## Decide who may do what",
        "## Deploy",
        "## What it does",
        "## Read on",
    ]
    assert [line for line in README.splitlines() if line.startswith("## ")] == headings
