"""The table of today's findings and rates, which may only fall."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.language.findings import ROOT, findings, measured_files
from tests.language.rates import odd_rates, product_words
from tests.language.text import read

PATH = Path(__file__).parent / "table.json"


@dataclass(frozen=True)
class Table:
    """Findings of each file that has any, and uses of each odd word in a thousand lines of the product."""

    files: dict[str, int]
    rates: dict[str, float]

    @classmethod
    def load(cls) -> Self:
        """The committed table."""
        return cls(**json.loads(PATH.read_text()))

    def save(self) -> None:
        """Write the table, a line for each file and word."""
        PATH.write_text(json.dumps({"files": self.files, "rates": self.rates}, indent=1, sort_keys=True) + "\n")

    def lowered(self, measured: "Table") -> "Table":
        """This table with everything that fell since; what is new or rose stays out."""
        files = {path: min(allowed, measured.files.get(path, 0)) for path, allowed in self.files.items()}
        rates = {word: min(allowed, measured.rates.get(word, 0.0)) for word, allowed in self.rates.items()}
        return Table(
            {path: allowed for path, allowed in files.items() if allowed},
            {word: allowed for word, allowed in rates.items() if allowed},
        )


def measure() -> Table:
    """The findings and rates of the tree as it is."""
    counted = {path.relative_to(ROOT).as_posix(): len(findings(read(path))) for path in measured_files()}
    return Table({path: found for path, found in counted.items() if found}, odd_rates(*product_words()))
