"""What the language test counts in a file: words and forms that the compared libraries do not use."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.language.text import CAMEL, Text

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("arco_catalog", "storage_backends", "reconciler", "lambda", "azure_functions")
PYTHON = (*PRODUCT, "tests", "tools")
PROSE = ("docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", *PYTHON)

LISTED = frozenset(
    ("told", "tells", "said", "says", "asked", "asks", "whom", "whoever", "nobody", "somebody", "looked")
)
"""At most 0.1 in a thousand lines of the compared libraries; each has a plainer word or a name that says more."""

IRREGULAR = (
    "Begun|Bound|Bought|Brought|Built|Chosen|Done|Found|Given|Gone|Held|Hidden|Kept|Known|Laid|Left|Lent|Lost|Made|Meant"
    "|Paid|Read|Said|Seen|Sent|Set|Shown|Spent|Spoken|Taken|Taught|Thought|Told|Understood|Unread|Written"
)
PARTICIPLE = re.compile(rf"(?:[A-Z][a-z]*ed|{IRREGULAR})")
"""A class that is called by a participle alone, as `Asked`. `ReadSet` and `CommitFailed` pass: they have a noun."""


def maximum_called_most(name: str) -> bool:
    """Whether a name calls a maximum `most`, as `MOST_KEYS` does: the field writes `MAX_KEYS`."""
    return "most" in CAMEL.sub("_", name).lower().split("_")


def findings(text: Text) -> list[str]:
    """Each listed word, participle and other form of one file, as often as it is there."""
    return sorted(
        [
            *(word for word in LISTED for _ in range(text.words[word])),
            *(f"class {name}" for name in text.classes if PARTICIPLE.fullmatch(name.lstrip("_"))),
            *(f"a maximum called {name}" for name in text.definitions if maximum_called_most(name)),
            *(
                f'a docstring that begins with "The same": {doc[:40]}'
                for doc in text.docstrings
                if doc.startswith("The same")
            ),
        ]
    )


def files(*rooms: str, suffix: str) -> Iterator[Path]:
    """The files of rooms that end so, in order; a room may be one file."""
    for room in rooms:
        path = ROOT / room
        yield from [path] if path.suffix == suffix else sorted(path.rglob(f"*{suffix}"))


def measured_files() -> Iterator[Path]:
    """Every file whose findings are counted; the two that list the words are not."""
    listing = (Path(__file__), ROOT / "tests/test_language.py")
    yield from (path for path in files(*PYTHON, suffix=".py") if path not in listing)
    yield from files(*PROSE, suffix=".md")
