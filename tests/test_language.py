"""The project is written in the words of its field. Each file has the findings that the committed table allows it, or
fewer; a file that is new to the table has none. `python -m tests.language` prints the rooms' rates."""

import re
from pathlib import Path

import pytest

from tests.language.findings import ROOT, findings
from tests.language.rates import compared, is_term, odd_from, odd_rates, product_words
from tests.language.table import Table, measure
from tests.language.text import Text, read, words_of
from tests.language.trial import SIZES, sample

MEASURED = measure()
ROUNDING = 0.1
"""Uses in a thousand lines by which a rate may differ: seven, in a tree that changes in many places at once."""


def test_no_file_has_more_findings_than_the_table_allows() -> None:
    allowed = Table.load().files
    risen = {path: found for path, found in MEASURED.files.items() if found > allowed.get(path, 0)}
    shown = {
        f"{path}: {found}, allowed {allowed.get(path, 0)}": findings(read(ROOT / path)) for path, found in risen.items()
    }
    assert shown == {}, "Write plainer, or move the entry in tests/language/table.json where a file was only renamed"


def test_no_word_is_used_oddly_often() -> None:
    allowed = Table.load().rates
    lines, _ = product_words()
    risen = {
        word: (rate, allowed.get(word))
        for word, rate in MEASURED.rates.items()
        if rate > max(allowed.get(word, 0), odd_from(word, lines)) + ROUNDING
    }
    assert risen == {}, "A term goes into docs/glossary.md with its source; another word is replaced"


def test_the_table_names_only_files_that_exist() -> None:
    assert [path for path in Table.load().files if not (ROOT / path).is_file()] == []


def test_words_that_the_glossary_takes_from_elsewhere_name_a_source() -> None:
    section = (ROOT / "docs/glossary.md").read_text().partition("## Words of other projects")[2]
    rows = re.findall(r"(?m)^\| (?!---|word)([^|]+) \| ([^|]+) \|", section)
    assert len(rows) > 10
    assert [word for word, source in rows if "](https://" not in source] == []


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        ("def f():\n    pass  # nobody reads this", "nobody"),
        ('raise ValueError("it was told so")', "told"),
        ("def who_asks(): ...", "asks"),
        ('"""Says it."""', "says"),
        ("class _Seen: ...", "class _Seen"),
        ("class Held: ...", "class Held"),
        ("MOST_KEYS = 3", "a maximum called MOST_KEYS"),
        ("def f(most: int): ...", "a maximum called most"),
        ('def f():\n    """The same for g."""', 'a docstring that begins with "The same": The same for g.'),
    ],
)
def test_each_kind_of_finding_is_found(tmp_path: Path, source: str, finding: str) -> None:
    (tmp_path / "file.py").write_text(source)
    assert findings(read(tmp_path / "file.py")) == [finding]


def test_nouns_and_errors_are_no_findings(tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text("class ReadSet: ...\nclass CommitFailed(Exception): ...\nALMOST = 1")
    assert findings(read(tmp_path / "file.py")) == []


def test_prose_counts_and_code_in_it_does_not(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("It was told.\n```python\ntold = 1\n```\n`told` [x](told.md)\n")
    assert findings(read(tmp_path / "page.md")) == ["told"]


def test_a_word_that_libraries_hardly_use_is_odd_and_a_term_is_not() -> None:
    lines, theirs = compared()
    assert lines > 50_000
    assert odd_rates(1000, {"beside": 40, "manifest": 40, "request": 40}) == {"beside": 40.0}
    assert not is_term("beside")
    assert is_term("manifests")
    assert theirs["request"] > 100


def test_words_of_names_are_words() -> None:
    assert words_of("MAX_HeldLeases readSet") == {"max": 1, "held": 1, "leases": 1, "read": 1, "set": 1}
    assert Text(1, words_of("")).definitions == ()


def test_a_trial_draws_the_same_items_for_the_same_seed() -> None:
    drawn = sample("seed")

    assert drawn == sample("seed")
    assert drawn != sample("another")
    assert len({*drawn}) == sum(SIZES.values())
    for item in drawn:
        path, line = item.place.rsplit(":", 1)
        assert (ROOT / path).read_text().count("\n") >= int(line) - 1
