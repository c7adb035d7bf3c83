"""Objects that a plan wants written, as values: each under a key that holds an id of its writer's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from arco_catalog.state.locations import Location
from arco_catalog.state.pointer import Pointer


@dataclass(frozen=True, slots=True)
class FileWrite:
    """A metadata file; `packed` says whether it is compressed."""

    location: str
    body: bytes
    packed: bool


@dataclass(frozen=True, slots=True)
class RecordWrite:
    """A record of the catalog that never changes."""

    key: str
    body: bytes


@dataclass(frozen=True, slots=True)
class PointerWrite:
    """The first pointer of a new entity."""

    pointer: Pointer


@dataclass(frozen=True, slots=True)
class FileRemoval:
    """Metadata files that left an entity's log, to be removed if nobody else has them."""

    entity: str
    files: Sequence[Location]


PlannedWrite: TypeAlias = FileWrite | RecordWrite | PointerWrite | FileRemoval
