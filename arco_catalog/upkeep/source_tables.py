"""The tables in the source of an import, their metadata files, and the outcome of the import of one."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.properties import may_be_set
from arco_catalog.operations.namespaces import LOCATION
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import resolve_for_read
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.followed import FollowedTable
from arco_catalog.state.index import Namespace
from arco_catalog.state.locations import Location
from arco_catalog.state.pointer import missing_pointer


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table or `view` in the source of an import. For one that can't be imported, `problem` is the reason, and
    `metadata_location` may be None. `uuid` is that of the table, None if the source does not give it."""

    namespace: Namespace
    name: str
    metadata_location: str | None
    problem: str | None = None
    view: bool = False
    uuid: str | None = None

    @property
    def kind(self) -> str:
        """The kind of the entry in the registry: table or view."""
        return "view" if self.view else "table"


class Outcome(StrEnum):
    """The outcome of the import of one table: registered, to be registered, registered already, or failed; `again` in
    place of an earlier import of it."""

    REGISTERED = "registered"
    WOULD_REGISTER = "would register"
    REGISTERED_AGAIN = "registered again"
    WOULD_REGISTER_AGAIN = "would register again"
    ALREADY = "already registered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The outcome of the import of one table. `reason` is why it failed, or another note for the user."""

    table: SourceTable
    outcome: Outcome
    reason: str | None = None


def file_of(table: SourceTable) -> str:
    """Returns the URI of the metadata file of a source table or view, in this catalog's spelling; a path of the local
    file system becomes a `file:` URI. Raises `BadRequest` for one that has a `problem`, no metadata file or no
    namespace, or whose location is malformed."""
    if table.problem is not None:
        raise BadRequest(table.problem)
    if table.metadata_location is None:
        raise BadRequest("The source catalog names no metadata file for the table")
    if not table.namespace:
        raise BadRequest("The table is in no namespace: choose one with --into")
    text = table.metadata_location
    return Location.parse(f"file://{text}" if text.startswith("/") else text).uri


def copied_properties(properties: Mapping[str, object]) -> Mapping[str, str]:
    """Returns the properties of a namespace that a copy of it in another catalog has: the texts that users may set.
    The location and governance properties are left out: they are each catalog's own."""
    return {
        name: value
        for name, value in properties.items()
        if isinstance(value, str) and name != LOCATION and may_be_set(name)
    }


async def files_of(session: Session, entry: RelationEntry) -> tuple[str, str | None]:
    """Returns the current metadata file of a table in this catalog, and the file from which it was registered; None for
    the latter if the table was created here or is followed. The file of a followed table is that of the last
    notification. Raises `InternalError` if the table has no pointer."""
    followed = FollowedTable.of(entry.json)
    if followed is not None:
        return followed.metadata.location, None
    pointer = await session.state.pointer(entry.entity)
    if pointer is None:
        raise missing_pointer(session.state.paths.pointer(entry.entity))
    read = await resolve_for_read(session.state, pointer)
    return read.metadata.location, read.registered_from
