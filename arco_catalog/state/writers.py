"""Which programs have committed to a registry, so that its version is not raised while an older program is at work
(docs/design/registry.md#versions)."""

from collections.abc import Mapping
from typing import Self

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.fields import integer, mapping, optional_text
from storage_backends.lazy_dataclass import dataclass

FIRST_VERSION = 1
"""The highest version that a program without this field can read."""


@dataclass(frozen=True, slots=True)
class LastCommit:
    """The id and time of the last registry commit by programs of one kind."""

    id: str
    at_ms: int

    def to_json(self) -> list[JsonValue]:
        """Returns the form in which HEAD stores the last commit of a kind of programs."""
        return [self.id, self.at_ms]

    @classmethod
    def parse(cls, stored: JsonValue) -> Self | None:
        """Reads the last commit of a kind of programs from HEAD, None if it has another form."""
        match stored:
            case [str(commit), int(at_ms)]:
                return cls(commit, at_ms)
        return None


@dataclass(frozen=True, slots=True)
class Writers:
    """The programs that have committed to a registry: the last commit by those that can read versions of a registry up
    to a number, by this number."""

    last: Mapping[int, LastCommit]

    @classmethod
    def of(cls, document: JsonObject) -> Self:
        """Returns the programs that have committed, up to the commit with this document. A program without the field
        repeats it as it was: so if the field does not have this commit, it counts as one by a program of
        `FIRST_VERSION`. Raises `InternalError` if such a commit has no time."""
        stored = mapping(document, "writers")
        parsed = {int(version): LastCommit.parse(each) for version, each in stored.items() if version.isdecimal()}
        last = {version: commit for version, commit in parsed.items() if commit is not None}
        commit = optional_text(document, "id")
        if commit is not None and commit not in [each.id for each in last.values()]:
            last[FIRST_VERSION] = LastCommit(commit, integer(document, "at_ms"))
        return cls(last)

    def after(self, commit: LastCommit, highest: int) -> "Writers":
        """Returns the programs after one more commit, by a program that reads versions up to `highest`, in place of the
        last one with that number."""
        return Writers({**self.last, highest: commit})

    def older_than(self, version: int) -> LastCommit | None:
        """Returns the last commit, by time, by a program that cannot read this version of a registry, None if there was
        none."""
        older = (commit for highest, commit in self.last.items() if highest < version)
        return max(older, key=lambda commit: commit.at_ms, default=None)

    def to_json(self) -> JsonObject:
        """Returns the form in which HEAD stores the programs."""
        return {str(version): self.last[version].to_json() for version in sorted(self.last)}
