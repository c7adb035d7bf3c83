"""`python -m tests.language`: findings of each room in a thousand lines, and the words that are used oddly often.
With `--lower`, what fell is written to the table; it never rises."""

import sys
from collections import Counter

from tests.language.findings import ROOT, measured_files
from tests.language.rates import odd_rates, product_words
from tests.language.table import Table, measure
from tests.language.text import read


def main(arguments: list[str]) -> None:
    measured = measure()
    lines, found = Counter[str](), Counter[str]()
    for path in measured_files():
        parts = path.relative_to(ROOT).parts
        room = "/".join(parts[: 2 if len(parts) > 2 else 1])
        lines[room] += read(path).lines
        found[room] += measured.files.get(path.relative_to(ROOT).as_posix(), 0)
    for room in sorted(lines, key=lambda room: -found[room] / max(lines[room], 1)):
        print(f"{found[room] / max(lines[room], 1) * 1000:7.1f}  {found[room]:5}  {room}")
    rates = odd_rates(*product_words())
    print(
        "Often here, hardly elsewhere:",
        ", ".join(f"{word} {rates[word]}" for word in sorted(rates, key=lambda w: -rates[w])),
    )
    if arguments == ["--lower"]:
        Table.load().lowered(measured).save()


main(sys.argv[1:])
