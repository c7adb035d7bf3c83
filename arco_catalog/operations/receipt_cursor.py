"""Reads the commits of one table or view by their receipts, latest first: from a metadata file back to the file that
its commit replaced, and so on (docs/design/reconciliation.md)."""

from collections.abc import Sequence
from itertools import pairwise

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state import receipt
from arco_catalog.state.memory import PARSED_WEIGHT
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.worker_threads import off_loop
from storage_backends import Found
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PastCommit:
    """The commit that made a metadata file current, with its receipt, None if there is none. The receipt has a `state`:
    `committed`, or `pending` if the committed one was not written yet. `foreign` is whether the entity began here with
    the file, which another catalog or entity wrote, so that there is no receipt of it here."""

    file: MetadataFile
    receipt: JsonObject | None
    foreign: bool = False


class ReceiptCursor:
    """Reads the commits of an entity, latest first. `position` is the metadata file of the next commit, None at the
    end. It is all that another cursor needs to continue.

    `origin` is the file with which the entity was registered, None for an entity that was created. `logged` are
    metadata files of the entity, latest first, as a metadata log names them. With them the cursor reads the receipts of
    up to `ahead` commits concurrently, and passes a missing receipt. Without `logged` a missing receipt is the end.
    `max_reads` is the limit of reads of the store at which `may_read` lets the caller stop, None for no limit."""

    def __init__(
        self,
        session: Session,
        entity: str,
        position: MetadataFile | None,
        *,
        origin: str | None = None,
        logged: Sequence[MetadataFile] = (),
        ahead: int = 1,
        max_reads: int | None = None,
    ) -> None:
        self.position = position
        self._session = session
        self._entity = entity
        self._origin = origin
        self._before = {later.location: file for later, file in pairwise(logged)}
        self._ahead = ahead
        self._reads_left = max_reads
        self._committed: dict[str, JsonObject | None] = {}
        """The committed receipts that were read and not used yet, by the metadata file; None for each that is
        missing."""

    @property
    def may_read(self) -> bool:
        """Whether the reads that are left suffice for the next commit, which needs two if its committed receipt was not
        read ahead, and one if that receipt was missing. True for a cursor without a limit, at the end, and at the file
        with which the entity was registered."""
        if self._reads_left is None or self.position is None or self.position.location == self._origin:
            return True
        if self.position.location not in self._committed:
            return self._reads_left >= 2
        return self._committed[self.position.location] is not None or self._reads_left >= 1

    async def step(self) -> PastCommit | None:
        """Returns the next commit, and moves the position to the one before it; returns None at the end. Does not stop
        at the limit of reads: `may_read` is for the caller. Raises `InternalError` for a receipt that is corrupt."""
        file = self.position
        if file is None:
            return None
        if file.location == self._origin:
            self.position = None
            return PastCommit(file, None, foreign=True)
        found = await self._read(file)
        self.position = self._before.get(file.location) if found is None else receipt.base_of(found)
        return PastCommit(file, found)

    async def _read(self, file: MetadataFile) -> JsonObject | None:
        """Returns the receipt for a metadata file, committed or else pending; None without one. Reads the committed
        receipts of the next files in the log in advance, and counts all reads against the limit."""
        if file.location not in self._committed:
            files = self._next_files(file)
            self._count(len(files))
            reads = (read_receipt(self._session, self._entity, ahead, receipt.COMMITTED) for ahead in files)
            self._committed = dict(zip((ahead.location for ahead in files), await gather(*reads), strict=True))
        found = self._committed.pop(file.location)
        if found is not None:
            return found
        self._count(1)
        return await read_receipt(self._session, self._entity, file, receipt.PENDING)

    def _next_files(self, file: MetadataFile) -> list[MetadataFile]:
        """Returns a file and the ones before it in the log, latest first, as many as may be read concurrently and
        within the limit of reads, at least one; ends before the file with which the entity was registered."""
        limit = self._ahead if self._reads_left is None else min(self._ahead, self._reads_left)
        files = [file]
        while len(files) < limit and (before := self._before.get(files[-1].location)) is not None:
            if before.location == self._origin:
                break
            files.append(before)
        return files

    def _count(self, reads: int) -> None:
        """Counts reads against the limit, if there is one."""
        if self._reads_left is not None:
            self._reads_left -= reads


async def read_receipt(session: Session, entity: str, file: MetadataFile, stage: receipt.Stage) -> JsonObject | None:
    """Returns the receipt of one stage for a metadata file of an entity, with its `state` and with the field names of
    the current version; None if there is none. Raises `InternalError` for a corrupt one."""
    return await read_receipt_at(session, commit_key(entity, file.location), file.ms, stage)


async def read_receipt_at(session: Session, key: str, ms: int, stage: receipt.Stage) -> JsonObject | None:
    """Returns the receipt of one stage by its commit key and the time of its metadata file, as `read_receipt` does.
    It takes memory for the receipt after it was read, to parse it. Raises `OutOfMemory`."""
    path = session.state.paths.receipt(stage, key, ms)
    answer = await session.state.store.get(path)
    if not isinstance(answer, Found):
        return None
    body = answer.body  # with the kinds of up to 50,000 updates
    await session.hold.take(PARSED_WEIGHT * len(body))
    parsed = await off_loop(len(body), lambda: receipt.parse(body, path))
    return {**receipt.with_current_names(parsed, stage), "state": stage}
