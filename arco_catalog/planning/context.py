"""The inputs of planning that come neither from stored state nor from the attempt: the caller, the allowed locations,
and limits of sizes."""

from collections.abc import Callable

from arco_catalog.iceberg.errors import MetadataTooLarge
from arco_catalog.iceberg.json import JsonObject, count_values
from arco_catalog.planning.access import Requirement
from arco_catalog.planning.answer_limit import AnswerLimit
from arco_catalog.state.index import Index
from arco_catalog.state.locations import AllowedLocations, Location
from arco_catalog.state.memory import max_metadata_values
from arco_catalog.state.needs import Steps, immediately
from arco_catalog.state.paths import Paths
from storage_backends.lazy_dataclass import dataclass

Holds = Callable[[Index, Requirement], Steps[bool]]
"""Returns whether the caller has a required privilege, by the index of a registry."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller and the request, in the form of stored records: `by` has the fields with the author, `source` the
    update source, and `request` describes the request."""

    by: JsonObject
    source: JsonObject
    request: JsonObject


@dataclass(frozen=True, slots=True)
class Context:
    """The context of one request's plans: the caller, the catalog's locations, and limits. `paths` are the keys of the
    catalog's stored objects, `locations` the allowed locations of tables and views, and `warehouse` the catalog's own
    location. `max_metadata_bytes` limits the size of a metadata file, unpacked. `answer_limit` is that of the host,
    None for no limit. `holds` checks the caller's privileges; None if they are not enforced."""

    caller: Caller
    paths: Paths
    locations: AllowedLocations
    warehouse: Location
    allow_location_overlap: bool
    max_metadata_bytes: int
    answer_limit: AnswerLimit | None
    holds: Holds | None = None

    def may(self, index: Index, requirement: Requirement) -> Steps[bool]:
        """Whether the caller has a required privilege; True if privileges are not enforced."""
        return immediately(True) if self.holds is None else self.holds(index, requirement)

    def check_metadata(self, metadata: bytes, name: str) -> None:
        """Checks the size of new metadata, given as the unpacked bytes of the file, of the table or view with the full
        name `name`. Raises `MetadataTooLarge` if the catalog could not read it later, because of the bytes or the
        number of JSON values, and `AnswerTooLarge` if the host could not carry an answer with it."""
        limit = self.max_metadata_bytes
        if len(metadata) > limit:
            raise MetadataTooLarge(
                f"The metadata of {name} would be {len(metadata):,} bytes, more than this catalog accepts ({limit:,}). "
                "Nothing was changed: make it smaller (for a table, expire snapshots) and try again"
            )
        values = max_metadata_values(limit)
        if len(metadata) > values and count_values(metadata) > values:
            raise MetadataTooLarge(
                f"The metadata of {name} would have more JSON values than this catalog accepts ({values:,}). Nothing "
                "was changed: make it smaller (for a table, expire snapshots) and try again"
            )
        if self.answer_limit is not None:
            self.answer_limit.check(
                metadata, f"The metadata of {name}", "make it smaller (for a table, expire snapshots) and try again"
            )

    def check_properties(self, properties: bytes, name: str) -> None:
        """Raises `AnswerTooLarge` if the host could not carry an answer with these properties, given as JSON in bytes,
        of the object with the full name `name`."""
        if self.answer_limit is not None:
            self.answer_limit.check(properties, f"The properties of {name}", "give it fewer or shorter ones")
