"""What happened in a run, in order: for whoever debugs it, and for auditors."""

from collections.abc import Iterable
from typing import NamedTuple

from storage_backends import Absent, Anything, Applied, Found, Matches, Page, PreconditionFailed, Unknown
from tests.simulation.faults import Kind


class Event(NamedTuple):
    """One step in the life of a call, or of a process. `at` is in virtual seconds, `number` counts the calls of the
    process from 1; `detail` is the condition under which a write was sent, or the answer to what landed."""

    at: float
    process: str
    number: int = 0
    kind: Kind | None = None
    key: str = ""
    step: str = ""
    detail: object = None

    def __str__(self) -> str:
        call = f"{self.process} #{self.number}" if self.number else self.process
        detail = "" if self.detail is None else f": {_brief(self.detail)}"
        return f"{self.at:12.6f}  {call:<8} {self.kind or '':<9} {self.key}  {self.step}{detail}"


def render(events: Iterable[Event]) -> str:
    """One line an event."""
    return "\n".join(map(str, events))


def _brief(detail: object) -> str:
    match detail:
        case Absent():
            return "if absent"
        case Matches(version):
            return f"if at {version}"
        case Anything():
            return "whatever is there"
        case Found(body, version):
            return f"Found {version} ({len(body)} bytes)"
        case Applied(version):
            return f"Applied {version}"
        case PreconditionFailed(version):
            return f"PreconditionFailed, now at {version}"
        case Unknown(reason):
            return f"Unknown, {reason}"
        case Page(entries, after):
            return f"{len(entries)} entries{'' if after is None else ' and more'}"
        case _:
            return f"{detail}"
