"""The restore of a catalog from a backup, as HEAD records it (docs/recovery.md#copies)."""

from dataclasses import field, replace
from typing import Self

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import integer, mapping, optional_text
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Restoration:
    """A restore of a backup. `at_ms` is a time of the store's clock by which every object of the backup was written.
    `copy_of` is the place of the backed-up catalog if the restore was into another one, until the copy is adopted.
    `adoption` records who adopted the copy, and when; empty until then."""

    at_ms: int
    copy_of: str | None
    adoption: JsonObject = field(default_factory=dict)

    @classmethod
    def parse(cls, stored: JsonObject) -> Self:
        """Reads a restore from a backup from its JSON. Raises `InternalError`."""
        return cls(integer(stored, "at_ms"), optional_text(stored, "copy_of"), mapping(stored, "adopted"))

    def to_json(self) -> JsonObject:
        """Returns the JSON of a restore from a backup."""
        return {"at_ms": self.at_ms, "copy_of": self.copy_of, "adopted": {**self.adoption}}

    def adopted(self, by: str, at_ms: int) -> "Restoration":
        """Returns the record of the restore after the principal `by` adopted the copy at `at_ms`, because its original
        no longer exists: it does not count as a copy any more, and the adoption names the place of the original."""
        return replace(self, copy_of=None, adoption={"by": by, "at_ms": at_ms, "copy_of": self.copy_of})

    def is_of_the_backup(self, written_ms: int) -> bool:
        """Whether an object that was written at this time of the store's clock may have come from the backup. If so,
        commits that the backup does not contain may refer to it."""
        return written_ms <= self.at_ms


def describe_copy(copy_of: str) -> str:
    """Returns the message that a copy of the catalog at this place deletes no files, with the command that changes
    it."""
    return (
        f"the catalog is a copy of the one at {copy_of}, which may still need the files: none is deleted until "
        "`arco adopt` records that the original no longer exists"
    )
