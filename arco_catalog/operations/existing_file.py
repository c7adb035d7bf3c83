"""Reads an existing metadata file that a request names, to make it the current one of a table or view."""

from collections.abc import Callable, Sequence

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.outline import let_long_parts_go, outline
from arco_catalog.iceberg.parsing import UnreadableMetadata
from arco_catalog.planning.kinds import Semantics
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.borrowed import folders_of
from arco_catalog.state.locations import Location
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ExistingFile:
    """An existing metadata file: its bytes, the outline of its document, and the folders of the file and of the
    manifest lists and statistics files that it names."""

    body: bytes
    document: JsonObject
    folders: Sequence[Location]


async def read_existing(
    session: Session, semantics: Semantics, location: str, check: Callable[[JsonObject], None]
) -> ExistingFile:
    """Reads the metadata file at a location as that of a table or view, as `semantics` selects. `check` raises for a
    document that the request may not use, which may be in a worker thread. Raises `NotFound` if the file does not
    exist, `BadRequest` if it is no such metadata or names a file by an invalid location, what `check` raises, and the
    other errors of `Files.read`."""

    def examine(parsed: JsonObject) -> ExistingFile:
        document = semantics.check_registered(parsed, session.check_deadline)
        check(document)
        folders = folders_of([location, *semantics.leading_files(document)])
        outlined = outline(document)
        let_long_parts_go(document, len(body))
        return ExistingFile(body, outlined, folders)

    try:
        body = await session.files.read(location)
        return await session.files.parse(location, body, examine)
    except UnreadableMetadata as error:
        raise BadRequest(error.message) from error
