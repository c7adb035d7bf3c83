"""Finds the versions of a table or view: each is a metadata file that was current. The metadata log names the last
ones, and receipts lead to earlier ones, as long as they are kept."""

import re
from collections.abc import Mapping, Sequence

from arco_catalog.iceberg.errors import BadRequest, NotFound
from arco_catalog.iceberg.files import metadata_version
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.load import CurrentState, load_current
from arco_catalog.operations.receipt_cursor import PastCommit, ReceiptCursor, read_receipt_at
from arco_catalog.operations.version_entries import version_id
from arco_catalog.protocol.catalog import Session
from arco_catalog.state import receipt
from arco_catalog.state.fields import integer, objects, text
from arco_catalog.state.followed import FollowedTable
from arco_catalog.state.index import Namespace
from arco_catalog.state.pointer import MetadataFile, list_logged_files
from storage_backends.lazy_dataclass import dataclass

MAX_RECEIPT_READS = 16
"""Maximum number of receipts that a request reads. With all else that it reads, it makes at most 25 calls to the
store."""
MAX_LOOKUP_READS = 8
"""Maximum number of receipts that the search for one version reads."""
END_OF_TIME_MS = 253_402_300_800_000
"""The beginning of the year 10000, in milliseconds since 1970: the day of a receipt has a year of four digits."""
_NUMBER = re.compile(r"[0-9]{1,9}")
_ID = re.compile(r"([0-9]{1,15})-([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class RelationHistory:
    """A table or view with its versions. `files` are the current metadata file and those that its log names,
    latest first, back to the one with which it was registered, if the log has that; `document` is the current metadata,
    and `snapshots` are its snapshots by their ids."""

    session: Session
    kind: str
    state: CurrentState
    document: JsonObject
    files: Sequence[MetadataFile]
    snapshots: Mapping[int, JsonObject]

    @property
    def entity(self) -> str:
        """The entity id of the table or view that has this history."""
        return self.state.entry.entity

    @property
    def current(self) -> MetadataFile:
        """The current metadata file of the table or view that has this history."""
        return self.state.pointer.metadata

    @property
    def follows(self) -> bool:
        """Whether the table follows one of another catalog: then this catalog knows no version but the current one."""
        return FollowedTable.of(self.state.entry.json) is not None

    @property
    def origin(self) -> str | None:
        """The location of the metadata file with which the history here starts: the one that was registered, or for a
        table that follows another catalog's the current one; None if the history starts with a create."""
        return _origin(self.state)

    def cursor(
        self, position: MetadataFile, *, ahead: int = MAX_RECEIPT_READS, max_reads: int = MAX_RECEIPT_READS
    ) -> ReceiptCursor:
        """Returns a cursor over the commits of the table or view that starts with the one of this metadata file, and
        goes back by receipts and by the metadata log. It reads up to `ahead` receipts concurrently. It does not stop by
        itself: for a caller that stops when `may_read` is false it reads `max_reads` at most in all, or one more."""
        return ReceiptCursor(
            self.session,
            self.entity,
            position,
            origin=self.origin,
            logged=self.files,
            ahead=ahead,
            max_reads=max_reads,
        )


async def read_history(session: Session, namespace: Namespace, name: str, kind: str) -> RelationHistory:
    """Loads the table or view, as `kind` selects, and returns it with the versions that the `metadata-log` in its
    metadata names, back to the file with which it was registered. Reads no receipts. Raises the errors of `load_table`
    and `load_view`."""
    state = await load_current(session, namespace, name, kind)
    current, origin = state.pointer.metadata, _origin(state)

    def outline(document: JsonObject) -> RelationHistory:
        files = [current, *reversed(list_logged_files(document))]
        here = next((place for place, file in enumerate(files) if file.location == origin), len(files))
        snapshots = {integer(snapshot, "snapshot-id"): snapshot for snapshot in objects(document, "snapshots")}
        return RelationHistory(session, kind, state, document, files[: here + 1], snapshots)

    return await session.files.parse(current.location, state.metadata, outline)


def _origin(state: CurrentState) -> str | None:
    """Returns the location of the metadata file from which the relation was registered, or of the current one of a
    table that follows another catalog's; None without one."""
    followed = FollowedTable.of(state.entry.json)
    return state.pointer.registered_from if followed is None else followed.metadata.location


async def find_version(history: RelationHistory, wanted: str) -> PastCommit:
    """Returns a version by its number, or by the id in its timeline entry. A number is found for the current file, the
    files in its log, and the versions before them to which `MAX_LOOKUP_READS` reads of receipts lead. Raises `NotFound`
    if it is not found, and `BadRequest` for a text that is no number and no id."""
    identified = _ID.fullmatch(wanted)
    if identified is None and _NUMBER.fullmatch(wanted) is None:
        raise BadRequest(f"A version is a number of at most 9 digits, or an id of the timeline, not {wanted[:100]!r}")
    file = next((file for file in history.files if _is_named(history, file, wanted)), None)
    if file is not None:
        step = await history.cursor(file, ahead=1).step()
        assert step is not None
        return step
    found = await (
        _search(history, int(wanted))
        if identified is None
        else _find_by_key(history, int(identified[1]), identified[2])
    )
    if found is None:
        raise NotFound(f"Version does not exist, or its receipt was deleted because of its age: {wanted}")
    return found


def _is_named(history: RelationHistory, file: MetadataFile, wanted: str) -> bool:
    """Whether a version id, or a version number, is that of a metadata file."""
    if "-" in wanted:
        return version_id(history.entity, file) == wanted
    return metadata_version(file.location) == int(wanted)


async def _find_by_key(history: RelationHistory, ms: int, key: str) -> PastCommit | None:
    """Returns the commit of this entity whose receipt, a committed one or else a pending one, has this key; None
    without one."""
    if ms >= END_OF_TIME_MS:
        return None
    for stage in (receipt.COMMITTED, receipt.PENDING):
        found = await read_receipt_at(history.session, key, ms, stage)
        if found is not None and found.get("entity") == history.entity:
            return PastCommit(MetadataFile(text(found, "metadata_location"), integer(found, "metadata_ms")), found)
    return None


async def _search(history: RelationHistory, number: int) -> PastCommit | None:
    """Searches the version with a number, which metadata files have in their names, in the commits to which
    `MAX_LOOKUP_READS` reads of receipts lead back from the oldest file in the metadata log; None if none of them is it.
    Raises `NotFound` if it may be an older one that was not reached."""
    cursor = history.cursor(history.files[-1], ahead=1, max_reads=MAX_LOOKUP_READS)
    version: int | None = None
    while cursor.may_read and (commit := await cursor.step()) is not None:
        version = metadata_version(commit.file.location)
        if version == number:
            return commit
    if not cursor.may_read and version is not None and number < version:
        raise NotFound(
            f"Version {number} is too far back to be found by its number: its entry in the timeline has an id, which "
            "finds it. It may also not exist"
        )
    return None
