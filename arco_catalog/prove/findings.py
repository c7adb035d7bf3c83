"""What the checker finds: violations, by what they break."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Breaks(StrEnum):
    """Which promise a finding shows as broken: the specification, the statements of the catalog about itself, or
    linearizability, which the specification does not require."""

    SPECIFICATION = "breaks the specification"
    DOCUMENTATION = "breaks what the catalog states of itself"
    LINEARIZABILITY = "weaker than linearizable"
    """The specification does not require this."""

    @property
    def severity(self) -> int:
        """A number that is higher for what is worse: 0 for linearizability, 1 for the documentation, 2 for the
        specification."""
        return [Breaks.LINEARIZABILITY, Breaks.DOCUMENTATION, Breaks.SPECIFICATION].index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation. `rule` names the rule of docs/prove.md that does not hold, `operations` the operations in question;
    `text` describes what was seen."""

    rule: str
    breaks: Breaks
    text: str
    operations: Sequence[str] = ()

    def __str__(self) -> str:
        return f"{self.rule}: {self.text} ({self.breaks})"
