"""How often the product uses a word, beside the libraries that it is compared with."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.language.findings import PRODUCT, ROOT, files
from tests.language.text import read, words_of

FOLDER = Path(__file__).parent
GLOSSARY_ROW = re.compile(r"(?m)^\|([^|\n]+)\|([^|\n]*)\|")
FRAGMENTS = frozenset(("arco", "md", "amz", "za"))
"""Parts of names, of file endings and of patterns: no words."""
MIN_USES = 40
FACTOR = 10


@cache
def compared() -> tuple[int, Mapping[str, int]]:
    """Lines and words of Starlette, httpx, uvicorn, trio and PyIceberg, without their tests."""
    head, *rows = (FOLDER / "compared.tsv").read_text().splitlines()
    return int(head.split("\t")[1]), {word: int(uses) for word, uses in (row.split("\t") for row in rows)}


@cache
def terms() -> frozenset[str]:
    """Words that may be frequent: names in the specifications of Iceberg and Polaris, and the glossary's terms."""
    glossary = GLOSSARY_ROW.findall((ROOT / "docs/glossary.md").read_text())
    specified = (FOLDER / "specified.txt").read_text().split()
    return frozenset((*specified, *words_of(" ".join(f"{here} {elsewhere}" for here, elsewhere in glossary))))


def is_term(word: str) -> bool:
    """Whether a word, or its singular, is a term."""
    singulars = (word, word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ies") + "y")
    return any(singular in terms() for singular in singulars)


@cache
def product_words() -> tuple[int, Counter[str]]:
    """Lines and words of everything that ships."""
    texts = [read(path) for path in files(*PRODUCT, suffix=".py")]
    words = Counter[str]()
    for text in texts:
        words.update(text.words)
    return sum(text.lines for text in texts), words


def odd_from(word: str, lines: int) -> float:
    """Uses of a word in a thousand of these many lines, from which it is odd."""
    their_lines, theirs = compared()
    return 1000 * max(MIN_USES / lines, FACTOR * theirs.get(word, 0) / their_lines)


def odd_rates(lines: int, words: Mapping[str, int]) -> dict[str, float]:
    """Uses in a thousand lines of each word that is frequent here, rare in the compared libraries, and no term."""
    return {
        word: round(rate, 2)
        for word, uses in words.items()
        if (rate := uses / lines * 1000) >= odd_from(word, lines) and not is_term(word) and word not in FRAGMENTS
    }
