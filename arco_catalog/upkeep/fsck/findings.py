"""Inconsistencies that a check reports, and their repairs."""

from dataclasses import dataclass, field
from typing import Protocol

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.upkeep.fsck.codes import Code


class Repair(Protocol):
    """The interface of a function that repairs one inconsistency. It is safe while clients write, and for a finding of
    any age."""

    async def __call__(self, session: Session) -> bool:
        """Rereads the object of a finding, and repairs it if that is still necessary. Returns whether it did
        repair. Raises `StoreError`, and `CatalogError`."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """One inconsistency that a check reports: its code, the key or location of the object, a description, and a repair
    if there is one that is safe for every possible cause."""

    code: Code
    where: str
    found: str
    repair: Repair | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> JsonObject:
        """Returns the fields of the finding in `--json`."""
        return {
            "code": self.code,
            "severity": self.code.severity,
            "where": self.where,
            "found": self.found,
            "meaning": self.code.meaning,
            "remedy": self.code.remedy,
            "repair": None if self.repair is None else self.code.repair,
        }
