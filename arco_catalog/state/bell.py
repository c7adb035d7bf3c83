"""The bell of a registry, by which processes learn that proposals were stored
(docs/design/registry.md#proposals)."""

from dataclasses import dataclass

from storage_backends import Version


@dataclass(frozen=True, slots=True)
class Bell:
    """The bell: an object that gets a new id when a process stores a proposal which no registry commit has
    considered. Both are None if it does not exist."""

    id: str | None = None
    version: Version | None = None

    def has_rung(self, considered: str | None) -> bool:
        """Whether proposals were stored since a registry commit considered all of them; `considered` is the bell's id
        in that commit."""
        return self.id is not None and self.id != considered
