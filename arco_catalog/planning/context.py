"""What planning relies on besides what was read: who asks, where files may lie, how large metadata may become."""

from collections.abc import Callable
from dataclasses import dataclass

from arco_catalog.iceberg.errors import MetadataTooLarge
from arco_catalog.iceberg.json import JsonObject, count_values
from arco_catalog.planning.access import Requirement
from arco_catalog.planning.answer_limit import AnswerLimit
from arco_catalog.state.index import Index
from arco_catalog.state.locations import AllowedLocations, Location
from arco_catalog.state.memory import max_metadata_values
from arco_catalog.state.needs import Steps, immediately
from arco_catalog.state.paths import Paths

Holds = Callable[[Index, Requirement], Steps[bool]]
"""Whether the caller has what is required, by an index."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asked, and what: `by` and `request` are what records say of it."""

    by: JsonObject
    source: JsonObject
    request: JsonObject


@dataclass(frozen=True, slots=True)
class Context:
    """One request's. `max_metadata_bytes` is how large a metadata file may be, unpacked; `answer_limit` is what the
    host can carry back, None for everything; `holds` says what the caller may do, None where nobody asks."""

    caller: Caller
    paths: Paths
    locations: AllowedLocations
    warehouse: Location
    allow_location_overlap: bool
    max_metadata_bytes: int
    answer_limit: AnswerLimit | None
    holds: Holds | None = None

    def may(self, index: Index, requirement: Requirement) -> Steps[bool]:
        """Whether the caller has what is required."""
        return immediately(True) if self.holds is None else self.holds(index, requirement)

    def check_metadata(self, metadata: bytes, name: str) -> None:
        """Raises `AnswerTooLarge` if the host could not carry back what a change is about to make current, and
        `MetadataTooLarge` if it could not be read again."""
        most = self.max_metadata_bytes
        if len(metadata) > most:
            raise MetadataTooLarge(
                f"The metadata of {name} would be {len(metadata):,} bytes, more than this catalog accepts ({most:,}). "
                "Nothing was changed: expire snapshots and commit again"
            )
        values = max_metadata_values(most)
        if len(metadata) > values and count_values(metadata) > values:
            raise MetadataTooLarge(
                f"The metadata of {name} would have more values than this catalog accepts ({values:,}). Nothing was "
                "changed: expire snapshots and commit again"
            )
        if self.answer_limit is not None:
            self.answer_limit.check(metadata, f"The metadata of {name}", "expire snapshots, and commit again")

    def check_properties(self, properties: bytes, name: str) -> None:
        """The same for those of a namespace."""
        if self.answer_limit is not None:
            self.answer_limit.check(properties, f"The properties of {name}", "give it fewer or shorter ones")
