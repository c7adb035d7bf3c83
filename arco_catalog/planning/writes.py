"""The writes and removals that a plan consists of, as values. protocol/writing.py carries them out."""

from collections.abc import Sequence
from typing import TypeAlias

from arco_catalog.state.locations import Location
from arco_catalog.state.pointer import Pointer
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FileWrite:
    """The write of a metadata file or manifest list, which is compressed with gzip if `packed`."""

    location: str
    body: bytes
    packed: bool


@dataclass(frozen=True, slots=True)
class RecordWrite:
    """The write of a record that never changes, such as a receipt."""

    key: str
    body: bytes


@dataclass(frozen=True, slots=True)
class PointerWrite:
    """The write of a new entity's first pointer."""

    pointer: Pointer


@dataclass(frozen=True, slots=True)
class FileRemoval:
    """The removal, at best effort, of metadata files that left the log of a table's metadata. A file stays if another
    entity was registered from it, or has or had a location around it; all stay in a copy of a catalog."""

    entity: str
    files: Sequence[Location]


PlannedWrite: TypeAlias = FileWrite | RecordWrite | PointerWrite | FileRemoval
