"""Plans a part of a scan: reads the manifests that may have matching files, and gives tasks for those files, or plan
tasks for smaller parts (docs/design/scan-planning.md#answers)."""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final, NamedTuple

from arco_catalog.iceberg.content_files import ContentFile, FileBatch, Partition
from arco_catalog.iceberg.delete_index import DeleteIndex
from arco_catalog.iceberg.expressions.expression_json import parse_expression
from arco_catalog.iceberg.expressions.filters import ScanFilter
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.iceberg.manifests import ManifestFile
from arco_catalog.iceberg.scan_request import Scan
from arco_catalog.operations.scans import files_memory
from arco_catalog.operations.scans.answer import MAX_BYTES, TaskAnswer
from arco_catalog.operations.scans.delete_files import DeleteFiles
from arco_catalog.operations.scans.delete_memory import TooManyDeletes
from arco_catalog.operations.scans.files_memory import FilesMemory
from arco_catalog.operations.scans.manifest_source import AT_ONCE, ManifestSource
from arco_catalog.operations.scans.ranges import MAX_PARTS, Piece, split, weight_of, within
from arco_catalog.operations.scans.scan_deletes import ScanDeletes
from arco_catalog.operations.scans.scan_manifests import ENTRY_BYTES, ScanManifests
from arco_catalog.operations.scans.scan_table import ScanTable
from arco_catalog.operations.scans.tokens import WHOLE, InvalidToken, Position, Range
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.manifest_entries import EntrySelection
from arco_catalog.state.worker_threads import off_loop

PART_WEIGHT: Final = 5_000
"""About how many entries one answer is made of."""
MIN_PART_WEIGHT: Final = 100
"""About how many entries an answer is made of at least, however long their statistics are: what does not fit is left to
a plan task."""
STATISTICS_BYTES: Final = 120
"""Bytes of JSON that the statistics of one column take in a task, roughly."""
TASK_BYTES: Final = 400
"""Bytes of JSON of a task without statistics, roughly."""
MAX_COMPARISONS: Final = 1_000_000
"""Comparisons of data files with delete files with which an answer ends: they take about a second."""
MAX_LISTS: Final = 16
"""Maximum manifest lists that one answer is made of."""


class PartPlan(NamedTuple):
    """What an answer has: tasks for files, and parts of the scan that are left for plan tasks. `manifests` is how many
    were read, `pruned` how many were not, as no file in them matches."""

    tasks: TaskAnswer
    parts: Sequence[Range]
    manifests: int = 0
    pruned: int = 0


class _MatchingFiles(NamedTuple):
    """The matching files of a manifest in a part of a scan; `rest` is where a part begins that was not read, None if
    all of it was."""

    files: Sequence[ContentFile]
    rest: Position | None


def scan_filter(scan: Scan, table: ScanTable) -> ScanFilter:
    """Returns the filter of a scan. Raises `BadRequest` if it can't be read, or does not fit the schema."""
    return ScanFilter(parse_expression(scan.filter), table.schema, table.specs, scan.case_sensitive)


class Planner:
    """Plans parts of one scan of a table by its filter. `find_deletes` makes what finds the delete files. The filter
    and the table's metadata have `size` bytes, by which long work is given to threads."""

    def __init__(
        self,
        source: ManifestSource,
        table: ScanTable,
        scan: Scan,
        of_scan: ScanFilter,
        size: int,
        find_deletes: Callable[[ScanDeletes], DeleteFiles],
    ) -> None:
        self._source = source
        self._find_deletes = find_deletes
        self._table = table
        self._scan = scan
        self._filter = of_scan
        self._manifests = ScanManifests(source, table, scan, of_scan, size)
        self._snapshot_ids = frozenset(each["snapshot-id"] for each in table.snapshots)
        self._stats = frozenset(scan.stats_columns)
        self._memory = FilesMemory(source.take_memory)
        self._deletes: DeleteFiles | None = None

    async def plan(self, part: Range) -> PartPlan:
        """Plans a part of the scan: gives the tasks of its files as far as an answer has room, and plan tasks for the
        rest, or only plan tasks for a part that is too large. A whole scan with `min_rows` may have tasks even then,
        and has no plan tasks once there are that many certain rows. Frees the memory of files. Raises `InvalidToken`
        for a part that the scan does not have, `Unsupported` for encrypted manifests, and for deletes too many for the
        memory or too long for an answer, `NotFound` for a missing manifest, and the errors of `ManifestSource`."""
        try:
            return await self._plan(part)
        finally:
            self._memory.close()
            if self._deletes is not None:
                self._deletes.close()
                self._deletes = None  # frees the index, whose memory is given back

    async def _plan(self, part: Range) -> PartPlan:
        """Plans a part of the scan: reads its manifests, or only divides it if it is too large for one response. Of a
        whole scan with `min_rows`, it then reads the first of these parts, too, unless the scan has more than
        `MAX_LISTS` lists. Raises `InvalidToken` for a part that the scan does not have."""
        end = part.end.list if part.end[1:] == (0, 0) else part.end.list + 1
        lists = range(part.start.list, min(end, len(self._table.snapshots)))
        if not lists and part != WHOLE:
            raise InvalidToken("the plan task names no part of this scan: plan the scan again")
        if len(lists) > MAX_LISTS:
            return self._plan_of_parts(_by_lists(part, lists))
        matching = await self._manifests.pieces(lists, part)
        if part.start.manifest and part.start.manifest >= self._manifests.count(part.start.list):
            raise InvalidToken("the plan task names no part of this scan: plan the scan again")
        divide = partial(_divided, matching, part, self._part_weight)
        pieces, parts = await off_loop(ENTRY_BYTES * len(matching), divide)
        if len(parts) == 1:
            return await self._tasks(pieces, part)
        if part == WHOLE and self._scan.min_rows is not None:
            first = await self._tasks(within(pieces, parts[0]), parts[0])
            if self._has_enough(first.tasks):
                return first._replace(parts=[])
            left = [Range(first.parts[0].start, parts[0].end)] if first.parts else []
            return first._replace(parts=[*left, *parts[1:]])
        return self._plan_of_parts(parts)

    def _plan_of_parts(self, parts: Sequence[Range]) -> PartPlan:
        """Returns a plan without files, of parts that are left for later."""
        return PartPlan(self._answer(), parts, 0, self._manifests.pruned)

    def _answer(self) -> TaskAnswer:
        """Returns a new answer, without files yet, for the statistics columns of this scan."""
        return TaskAnswer(self._stats, self._filter.types_of)

    @property
    def _part_weight(self) -> int:
        """Returns about how many entries of manifests one part may have: the fewer, the longer the JSON of a file
        is."""
        task_bytes = TASK_BYTES + STATISTICS_BYTES * len(self._stats)
        return min(PART_WEIGHT, max(MIN_PART_WEIGHT, MAX_BYTES // task_bytes))

    def _has_enough(self, tasks: TaskAnswer) -> bool:
        """Whether these tasks have as many certain rows as the client requested (`min_rows`), at least one; False if it
        requested no number."""
        return self._scan.min_rows is not None and tasks.rows >= max(1, self._scan.min_rows)

    async def _tasks(self, pieces: Sequence[Piece], part: Range) -> PartPlan:
        """Reads the manifests of a part, and returns their matching files with the deletes for each, without deletes
        for an incremental scan. Files for which the answer or the memory has no room, or with too many comparisons with
        delete files, stay as further parts. Of the whole scan it stops once there are `min_rows` rows."""
        answer, read = self._answer(), 0
        await self._manifests.open(pieces)
        deletes = await self._delete_files() if pieces and not self._manifests.is_incremental else None
        index: DeleteIndex | None = None
        for group in batches(pieces, AT_ONCE if deletes is None else deletes.manifests_at_once):
            found: list[_MatchingFiles] = []
            self._memory.clear()
            for batch in batches(group, AT_ONCE):
                if not self._memory.is_full:
                    found += await gather(*(self._read(each, part, each is group[0]) for each in batch))
            read += len(found)
            files = [file for each in found for file in each.files]
            indexed = len(files)
            if deletes is not None:
                index = None  # which frees the one before
                index, indexed = await _index_for(deletes, files)
            add = partial(self._add_until_full, answer, group, found, indexed, index, is_whole=part == WHOLE)
            rest = await self._source.work.run(ENTRY_BYTES * indexed, add)
            if part == WHOLE and self._has_enough(answer):
                break
            if rest is not None:
                return PartPlan(answer, self._rest(pieces, Range(rest, part.end)), read, self._manifests.pruned)
        return PartPlan(answer, [], read, self._manifests.pruned)

    def _add_until_full(
        self,
        answer: TaskAnswer,
        pieces: Sequence[Piece],
        found: Sequence[_MatchingFiles],
        count: int,
        deletes: DeleteIndex | None,
        *,
        is_whole: bool,
    ) -> Position | None:
        """Adds tasks for the matching files of some manifests to the answer, in order, while it has room, and for
        the first `count` of them. Returns the position of the first file that was not added, or of the first entry that
        was not read; None if there is neither, and after a manifest with which the answer to a whole scan has enough
        rows."""
        for piece, each in zip(pieces, found, strict=False):  # one that made the memory full has a rest
            files = each.files[:count]
            count -= len(files)
            added = self._add(answer, self._manifests.of(piece), files, deletes)
            if is_whole and self._has_enough(answer):
                return None
            if added < len(each.files):
                return Position(piece.list, piece.manifest, each.files[added].position)
            if each.rest is not None:
                return each.rest
        return None

    def _rest(self, pieces: Sequence[Piece], left: Range) -> Sequence[Range]:
        """Splits what is left of these pieces behind a full answer into parts of which each fills about another one. Of
        files with long residuals or statistics an answer has few, and would read all entries behind them in vain."""
        behind = within(pieces, left)
        return split(behind, left, min(self._part_weight, max(1, weight_of(pieces) - weight_of(behind))))

    async def _read(self, piece: Piece, part: Range, is_first: bool) -> _MatchingFiles:
        """Reads the files of a manifest, in a part of the scan, that may have matching rows, and takes memory for them.
        Stops at a bound of files or memory, and then returns the position from which the rest is left. `is_first` is
        whether the manifest is the first of some that are read together: of that one at least one file is returned, if
        any matches."""
        manifest, place = self._manifests.of(piece), (piece.list, piece.manifest)
        of_spec = self._manifests.filter_of(manifest)
        selection = EntrySelection(
            spec=self._table.specs[manifest.partition_spec_id],
            partition_types=of_spec.partition_types,
            columns=self._columns(),
            first=part.start.entry if place == part.start[:2] else 0,
            end=part.end.entry if place == part.end[:2] else None,
            added_only=self._manifests.is_incremental,
            may_match=of_spec.partition_may_match,
            statistics_may_match=of_spec.file_may_match,
        )
        files: list[ContentFile] = []
        size = 0
        async with aclosing(self._source.entries(manifest, selection)) as read:
            async for batch in read:
                matching = self._added(batch) if self._manifests.is_incremental else batch
                files += matching.files
                size += matching.memory
                await self._memory.add(matching.memory, is_first=is_first)
                # A plan task with the only file of the first manifest would never end: it is this part again.
                is_full = len(files) > 1 and size > files_memory.MAX_FILES_BYTES if is_first else self._memory.is_full
                if len(files) > 2 * PART_WEIGHT or (files and is_full):
                    return _MatchingFiles(files[:-1], Position(*place, files[-1].position))
                if is_full:
                    return _MatchingFiles([], Position(*place, selection.first))
        return _MatchingFiles(files, None)

    def _added(self, batch: FileBatch) -> FileBatch:
        """Returns the files of a batch that were added by one of the snapshots of an incremental scan."""
        return FileBatch.of([file for file in batch.files if file.snapshot_id in self._snapshot_ids])

    def _columns(self) -> frozenset[int]:
        """Returns the ids of the columns of which statistics are read: the ones of the filter, the ones that the client
        requested, and the ones of equality deletes."""
        of_deletes = self._deletes.column_ids if self._deletes is not None else frozenset[int]()
        return self._filter.column_ids | self._stats | of_deletes

    def _add(
        self, answer: TaskAnswer, manifest: ManifestFile, files: Sequence[ContentFile], deletes: DeleteIndex | None
    ) -> int:
        """Adds tasks for these files of a manifest to the answer, in order, until it has no room, or there were too
        many comparisons with delete files. Returns the number of files that were added."""
        of_spec = self._manifests.filter_of(manifest)
        index = None if deletes is None or deletes.is_empty else deletes
        partition: Partition | None = None
        residual: JsonValue = None
        for number, file in enumerate(files):
            is_of_next = file.partition is not partition  # files one after the other share one
            if index is not None:
                self._source.check_deadline_at_intervals()
                if index.comparisons > MAX_COMPARISONS and answer.files:
                    return number
            if is_of_next:
                self._source.check_deadline()
                partition, residual = file.partition, of_spec.residual_json(file.partition)
            found = () if index is None else index.deletes_of(file)
            if not answer.add(file, found, residual):
                return number
        return len(files)

    async def _delete_files(self) -> DeleteFiles:
        """Returns the finder of the snapshot's delete files, which the first call makes and opens."""
        if self._deletes is None:
            self._deletes = self._find_deletes(await self._manifests.deletes())
            await self._deletes.open()
        return self._deletes


async def _index_for(deletes: DeleteFiles, files: Sequence[ContentFile]) -> tuple[DeleteIndex, int]:
    """Returns an index with the delete files that may apply to the first of these data files, and how many these are:
    all, or as many as there is memory for the delete files of. Raises `TooManyDeletes` if those of one data file take
    too much, and the errors of `DeleteFiles.index_for`."""
    count = len(files)
    while True:
        try:
            return await deletes.index_for(files[:count]), count
        except TooManyDeletes:
            if count <= 1:
                raise
            count = -(-count // 4)


def _divided(matching: Sequence[Piece], part: Range, target: int) -> tuple[Sequence[Piece], Sequence[Range]]:
    """Returns those of the matching manifests that a part of the scan has, and smaller parts of about the weight
    `target`; the part itself if it weighs at most twice that."""
    pieces = within(matching, part)
    is_small = weight_of(pieces) <= 2 * target
    return pieces, [part] if is_small else split(pieces, part, target)


def _by_lists(part: Range, lists: range) -> Sequence[Range]:
    """Splits a part of a scan between manifest lists into at most `MAX_PARTS` parts, of at least `MAX_LISTS` lists
    except the last."""
    step = max(MAX_LISTS, -(-len(lists) // MAX_PARTS))
    inner = [Position(number, 0, 0) for number in lists[step::step]]
    return [Range(*ends) for ends in zip((part.start, *inner), (*inner, part.end), strict=True)]
