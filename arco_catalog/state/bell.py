"""The bell of a registry, by which processes learn that proposals were stored
(docs/design/registry.md#proposals)."""

from typing import Self

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.state.fields import parse_record, text
from storage_backends import Version
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Bell:
    """The bell: an object that gets a new id when a process stores a proposal while HEAD has the present id. Both are
    None if it does not exist, and the id if it is damaged."""

    id: str | None = None
    version: Version | None = None

    @classmethod
    def parse(cls, body: bytes, version: Version, where: str) -> Self:
        """Reads the bell of a registry. A damaged one has no id; the next process that rings writes it anew."""
        try:
            return cls(text(parse_record(body, where), "id"), version)
        except InternalError:
            return cls(None, version)

    def has_rung(self, considered: str | None) -> bool:
        """Whether proposals may wait: the registry's bell has an id, and another than `considered`, the one that HEAD
        has. HEAD gets the bell's id from a leader that took in one proposal at most, and left none."""
        return self.id is not None and self.id != considered
