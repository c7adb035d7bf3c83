"""The reconciler's walk of one entity: writes the missing committed receipt of every metadata file that became current.

It goes from the pointer back along the pending receipts (each has the base's location and time), which no trimmed log
can cut, and along metadata logs where a receipt is missing; it lists no folders. A committed receipt is a pure function
of the pending one, so every writer writes the same bytes at the same path: the walk may be killed anywhere, run twice
at once, and beside live writers (docs/design/reconciliation.md#reconciler).

A walk takes turns. One turn walks a limited number of files, and ends early when there is no more time; the files that
it leaves are a *span*, from which a later turn, of this run or another, continues. A span that was cut is walked before
new files, so that an entity has at most one such span. A span that failed, because a record can't be read, is walked
after them, so that it delays no other file. Where the log of a later metadata file names the file before the corrupt
one, the walk continues there, and the failed span has only the corrupt file.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from arco_catalog.iceberg.errors import CatalogError, Refusal
from arco_catalog.iceberg.json import MalformedJson
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import decide, read_decision
from arco_catalog.state.checkpoints import Span, WalkCheckpoint
from arco_catalog.state.pointer import MetadataFile, Pointer, list_logged_files
from arco_catalog.upkeep.ensure_receipt import ensure_receipt
from storage_backends import StoreError, StoreUnavailable

_LOG = logging.getLogger(__name__)

MAX_FAILED = 100
"""Files of an entity, in one span, that a walk passes over though they can't be read."""
MAX_FILES = 1_000_000
"""Files that one turn walks by default: a bound on loops, more than any table has."""

ShouldStop = Callable[[], bool]
"""Returns whether to stop now. Called before each step."""


def never() -> bool:
    """Returns false: the `ShouldStop` of runs without a time limit."""
    return False


@dataclass(frozen=True, slots=True)
class WalkResult:
    """The result of one turn in the walk of an entity: the counts of this turn, and the new checkpoint of the entity,
    None if it is unknown. `more` is whether this turn ended early, so that another is needed, and `answered` is false
    if it failed as a whole because the store did not answer."""

    stats: ReconcileStats
    checkpoint: WalkCheckpoint | None
    more: bool = False
    answered: bool = True


async def walk(
    session: Session,
    entity: str,
    known: WalkCheckpoint | None,
    *,
    dry: bool = False,
    max_files: int = MAX_FILES,
    should_stop: ShouldStop = never,
) -> WalkResult:
    """Writes the missing receipts of one entity, in one turn of its walk: first for the spans that previous turns cut,
    from the checkpoint `known`, then for the files from the pointer back to the newest file of the previous turns, to
    the entity's creation, or to the file that it was registered from, then for the spans that failed. `should_stop` is
    called before each file except the first. With `dry` it writes nothing, and the checkpoint must not be stored.

    Raises nothing: errors are counted for the entity, except errors of the store after the session's deadline. The
    checkpoint of the result is None after an error outside of a file, or if the entity has no pointer any more. A walk
    is incomplete if files are left, after a turn that was cut or for a record that can't be read, and after an
    undecided intent.
    """
    stats = ReconcileStats(walked=1)
    try:
        pointer = await session.state.pointer(entity)
        if pointer is None:
            return WalkResult(stats, None)  # collected after the listing
        pointer, decided = await _resolve(session, pointer, dry=dry)
        turn = _Turn(session, pointer, stats, max_files, should_stop, dry=dry)
        checkpoint = await turn.go(known)
    except Exception as error:  # any error: other entities must still be walked
        _count_error(session, stats, entity, error)
        stats.incomplete = 1
        return WalkResult(stats, None, session.late(), not isinstance(error, StoreUnavailable))
    if not decided:
        checkpoint = replace(checkpoint, version="")
    stats.incomplete = int(not checkpoint.complete)
    return WalkResult(stats, checkpoint, turn.cut)


async def _resolve(session: Session, pointer: Pointer, *, dry: bool) -> tuple[Pointer, bool]:
    """Returns a pointer without its intent, as the transaction's decision leaves it, and whether the transaction is
    decided; while it is not, the pointer is returned as if the transaction was aborted. A transaction without a
    decision object counts as decided and aborted: if it committed, the pointer has moved, and the next listing has
    another version. A transaction whose lease has expired is aborted, since the walk of an idle table would otherwise
    never end; with `dry`, nothing is written."""
    if pointer.intent is None:
        return pointer, True
    decision = await read_decision(session.state, pointer.intent)
    if decision is None:
        return pointer.resolved(committed=False), True
    if decision.expired and not dry and await decide(session.state, session.runtime, decision, "aborted"):
        return pointer.resolved(committed=False), True
    return pointer.resolved(decision.status == "committed"), decision.status != "pending"


class _Turn:
    """One turn in the walk of an entity. `budget` is the number of files that it may still walk, `cut` whether it
    stopped early."""

    def __init__(
        self,
        session: Session,
        pointer: Pointer,
        stats: ReconcileStats,
        budget: int,
        should_stop: ShouldStop,
        *,
        dry: bool,
    ) -> None:
        self._session = session
        self._pointer = pointer
        self._origin = pointer.registered_from
        self._stats = stats
        self._budget = budget
        self._should_stop = should_stop
        self._dry = dry
        self._newer = pointer.metadata
        """The last file that could be read. Its log names the files before it."""
        self.cut = False

    async def go(self, known: WalkCheckpoint | None) -> WalkCheckpoint:
        """Walks the spans that previous turns cut, then the new files, then the spans that failed; new files wait if
        this turn is cut before them. `known` is the checkpoint of the last turn, None if there is none. Returns the
        checkpoint after this turn, with the spans that are left, and the version of the pointer only if there are none.
        """
        before = () if known is None else known.left
        failed = [span for span in before if span.failed]
        left: list[Span] = []
        for span in before:
            left += [] if span.failed else await self._walk(span)
        if known is not None and self.cut:  # new files wait until the older spans are done
            return WalkCheckpoint("", known.file, (*left, *failed))
        newest = self._pointer.metadata
        left += await self._walk(Span(newest, None if known is None else known.file))
        for span in failed:
            left += await self._walk(span)
        version = self._pointer.version
        return WalkCheckpoint(version if version is not None and not left else "", newest.location, tuple(left))

    async def _walk(self, span: Span) -> Sequence[Span]:
        """Walks the files of a span from the newest one back, writes their missing receipts, and counts the files. A
        file that fails is counted as an error, unless the session's time is over, and, if it can't be read and a log
        names the file before, passed over as a failed span, up to `MAX_FAILED` of them. Returns the spans that are left
        for a later turn: empty if the span is done."""
        file, failed = span.newest, list[Span]()
        while file.location not in (span.until, self._origin):
            if self._budget <= 0 or (self._stats.files and self._should_stop()):
                self.cut = True
                return [*failed, replace(span, newest=file, failed=span.failed and file == span.newest)]
            self._budget -= 1
            self._stats.files += 1
            try:
                base = await ensure_receipt(self._session, self._pointer, file, self._stats, dry=self._dry)
            except Exception as error:  # any error: other spans and entities must still be walked
                late = _count_error(self._session, self._stats, self._pointer.entity, error)
                self.cut |= late
                base = None
                if isinstance(error, CatalogError | MalformedJson) and len(failed) < MAX_FAILED:
                    base = await self._logged_before(file)
                if base is None:
                    return [*failed, replace(span, newest=file, failed=not late)]
                failed.append(Span(file, base.location, failed=True))
            else:
                self._newer = file
            if base is None:
                break
            file = base
        return failed

    async def _logged_before(self, file: MetadataFile) -> MetadataFile | None:
        """Returns the metadata file that was current before `file`, which can't be read: the base in the pointer if
        `file` is current, else by the metadata log of the last file that was read, or else of the current one; None if
        none names it. Logs that can't be read are passed over."""
        if file == self._pointer.metadata:
            return self._pointer.base
        for later in dict.fromkeys((self._newer, self._pointer.metadata)):
            try:
                logged = await self._session.files.extract(later.location, list_logged_files, current=True)
            except (CatalogError, MalformedJson, StoreError):
                continue
            places = [each.location for each in logged]
            if file.location in places[1:]:
                return logged[places.index(file.location) - 1]
        return None


def _count_error(session: Session, stats: ReconcileStats, entity: str, error: Exception) -> bool:
    """Adds an error in the walk of an entity to the failures in `stats`, and logs an unexpected one. Returns whether
    its cause is that the session's own deadline has passed: for such an error it does nothing."""
    if session.late() and isinstance(error, StoreError):
        return True
    if not isinstance(error, Refusal | CatalogError | MalformedJson | StoreError):
        _LOG.error(
            "the reconciler's walk of entity %s failed unexpectedly, and other entities go on", entity, exc_info=error
        )
    stats.fails(f"{entity}: {error}" if str(error) else f"{entity}: {type(error).__name__}")
    return False
