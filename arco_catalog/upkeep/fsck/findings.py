"""What a check of a catalog finds, and what may be done about it without a thought."""

from dataclasses import dataclass, field
from typing import Protocol

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.upkeep.fsck.codes import Code, Diagnosis
from arco_catalog.upkeep.fsck.diagnoses import DIAGNOSES


class Repair(Protocol):
    """What mends one finding, safe beside live writers and however old the finding is by then."""

    async def __call__(self, session: Session) -> bool:
        """Looks again, and mends what is still to be mended. Returns whether it did. Raises `StoreError`, and
        `CatalogError`."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """One inconsistency: its code, the key or location of the object, what was found there, and the repair, where there
    is one that is safe whatever the reason was."""

    code: Code
    where: str
    found: str
    repair: Repair | None = field(default=None, compare=False, repr=False)

    @property
    def diagnosis(self) -> Diagnosis:
        """What it means, and what to do."""
        return DIAGNOSES[self.code]

    def to_json(self) -> JsonObject:
        """For `--json`."""
        diagnosis = self.diagnosis
        return {
            "code": self.code,
            "severity": diagnosis.severity,
            "where": self.where,
            "found": self.found,
            "meaning": diagnosis.meaning,
            "remedy": diagnosis.remedy,
            "repair": None if self.repair is None else diagnosis.repair,
        }
