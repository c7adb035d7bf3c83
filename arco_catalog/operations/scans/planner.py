"""Plans a part of a scan: reads the manifests that may have matching files, and gives tasks for those files, or plan
tasks for smaller parts (docs/design/scan-planning.md#answers)."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final, NamedTuple

from arco_catalog.iceberg.content_files import ContentFile
from arco_catalog.iceberg.delete_index import DeleteIndex
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.expressions.expression_json import parse_expression
from arco_catalog.iceberg.expressions.filters import ScanFilter, SpecFilter
from arco_catalog.iceberg.manifests import DATA, ManifestFile
from arco_catalog.iceberg.partition_keys import dropped_columns
from arco_catalog.iceberg.scan_request import Scan
from arco_catalog.iceberg.schema import Column, columns_of
from arco_catalog.operations.scans import files_memory
from arco_catalog.operations.scans.answer import MAX_BYTES, TaskAnswer
from arco_catalog.operations.scans.delete_files import DeleteFiles, ScanDeletes
from arco_catalog.operations.scans.files_memory import FilesMemory
from arco_catalog.operations.scans.manifest_source import AT_ONCE, ManifestSource
from arco_catalog.operations.scans.ranges import MAX_PARTS, Piece, split, weight_of, within
from arco_catalog.operations.scans.scan_table import ScanTable
from arco_catalog.operations.scans.tokens import WHOLE, InvalidToken, Position, Range
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.avro import MAX_FILE_RECORDS
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
MAX_LISTS: Final = 16
"""Maximum manifest lists that one answer is made of."""
ENTRY_BYTES: Final = 100
"""Bytes that an entry counts as when its work is given to a thread."""


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
        self._size = size
        self._snapshot_ids = frozenset(each["snapshot-id"] for each in table.snapshots)
        self._lists: dict[int, Sequence[ManifestFile]] = {}
        self._pruned = 0
        self._stats = frozenset(scan.stats_columns)
        self._memory = FilesMemory(source.take_memory)
        self._deletes: DeleteFiles | None = None

    async def plan(self, part: Range) -> PartPlan:
        """Plans a part of the scan: gives the tasks of its files if they are few enough for an answer, else plan tasks.
        Raises `InvalidToken` for a part that the scan does not have, `Unsupported` for encrypted manifests, `NotFound`
        for a missing one, and the errors of `ManifestSource`."""
        try:
            return await self._plan(part)
        finally:
            self._memory.close()
            if self._deletes is not None:
                self._deletes.close()
                self._deletes = None  # it refers to this object, and large cycles may not be collected for a while

    async def _plan(self, part: Range) -> PartPlan:
        """Plans a part of the scan: reads its manifests, or only divides it if it is too large for one response. Of a
        whole scan with `min_rows`, it reads the first of these parts, too. Raises `InvalidToken` for a part that the
        scan does not have."""
        end = part.end.list if part.end[1:] == (0, 0) else part.end.list + 1
        lists = range(part.start.list, min(end, len(self._table.snapshots)))
        if not lists and part != WHOLE:
            raise InvalidToken("it names no part of the scan")
        if len(lists) > MAX_LISTS:
            return self._plan_of_parts(_by_lists(part, lists))
        pieces = within(await self._pieces(lists, part), part)
        if part.start.manifest and part.start.manifest >= len(self._lists[part.start.list]):
            raise InvalidToken("it names no part of the scan")
        parts = split(pieces, part, self._part_weight)
        if weight_of(pieces) <= 2 * self._part_weight or len(parts) == 1:
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
        return PartPlan(self._answer(), parts, 0, self._pruned)

    def _answer(self) -> TaskAnswer:
        """Returns a result without files."""
        return TaskAnswer(self._stats, self._types_of)

    @property
    def _part_weight(self) -> int:
        """Returns about how many entries of manifests one part may have: the fewer, the longer the JSON of a file
        is."""
        task_bytes = TASK_BYTES + STATISTICS_BYTES * len(self._stats)
        return min(PART_WEIGHT, max(MIN_PART_WEIGHT, MAX_BYTES // task_bytes))

    def _has_enough(self, tasks: TaskAnswer) -> bool:
        """Whether the plan has as many rows as the client requested (`min_rows`)."""
        return self._scan.min_rows is not None and tasks.rows >= max(1, self._scan.min_rows)

    async def _pieces(self, lists: range, part: Range) -> Sequence[Piece]:
        """Returns the manifests of these lists, in a part of the scan, that may have matching data files."""
        missing = [number for number in lists if number not in self._lists]
        for batch in batches(missing, AT_ONCE):
            found = await gather(*(self._source.manifests(self._table.snapshots[number]) for number in batch))
            self._lists.update(zip(batch, found, strict=True))
        listed = sum(len(self._lists[number]) for number in lists)
        return await off_loop(self._size + ENTRY_BYTES * listed, partial(self._matching_pieces, lists, part))

    def _matching_pieces(self, lists: range, part: Range) -> Sequence[Piece]:
        """Returns the manifests of a part that may have matching files, and counts the others."""
        pieces: list[Piece] = []
        for number in lists:
            snapshot_id = self._table.snapshots[number]["snapshot-id"]
            listed = self._lists[number]
            first = part.start.manifest if number == part.start.list else 0
            end = part.end.manifest + 1 if number == part.end.list else len(listed)
            for place, manifest in enumerate(listed[first:end], first):
                self._source.check_deadline()
                if manifest.content != DATA or not self._is_scanned(manifest, snapshot_id):
                    continue
                if self._of(manifest).manifest_may_match(manifest.partitions):
                    pieces.append(Piece(number, place, _entries(manifest)))
                else:
                    self._pruned += 1
        return pieces

    def _is_scanned(self, manifest: ManifestFile, snapshot_id: int) -> bool:
        """Whether the scan reads a manifest: for an incremental scan one that the snapshot has added, else one with
        live files."""
        if self._is_incremental:
            return manifest.added_snapshot_id == snapshot_id and manifest.added_files_count > 0
        return manifest.live_files_count > 0

    @property
    def _is_incremental(self) -> bool:
        return self._scan.after is not None

    def _of(self, manifest: ManifestFile) -> SpecFilter:
        """Returns the filter for a manifest's partition spec. Raises `BadRequest` for an unknown spec."""
        spec_id = manifest.partition_spec_id
        if spec_id not in self._table.specs:
            raise BadRequest(f"The table has no partition spec {spec_id}, which its manifests use")
        return self._filter.for_spec(spec_id)

    async def _tasks(self, pieces: Sequence[Piece], part: Range) -> PartPlan:
        """Reads the manifests of a part, and returns their matching files with the deletes for each. What exceeds the
        memory stays as further parts."""
        answer, read = self._answer(), 0
        deletes = await self._delete_files() if pieces and not self._is_incremental else None
        memory = self._memory
        index: DeleteIndex | None = None
        for group in batches(pieces, AT_ONCE if deletes is None else deletes.manifests_at_once):
            found: list[_MatchingFiles] = []
            memory.clear()
            for batch in batches(group, AT_ONCE):
                if not memory.is_full:
                    found += await gather(*(self._read(each, part, memory, each is group[0]) for each in batch))
            read += len(found)
            if deletes is not None:
                index = None  # which frees the one before
                index = await deletes.index_for([file for each in found for file in each.files])
            for piece, each in zip(group, found, strict=False):  # one that made the memory full has a rest
                work = partial(self._add, answer, self._lists[piece.list][piece.manifest], each.files, index)
                added = await self._source.work.run(ENTRY_BYTES * len(each.files), work)
                if part == WHOLE and self._has_enough(answer):
                    return PartPlan(answer, [], read, self._pruned)
                rest = each.rest
                if added < len(each.files):
                    rest = Position(piece.list, piece.manifest, each.files[added].position)
                if rest is not None:
                    return PartPlan(answer, self._rest(pieces, Range(rest, part.end)), read, self._pruned)
        return PartPlan(answer, [], read, self._pruned)

    def _rest(self, pieces: Sequence[Piece], left: Range) -> Sequence[Range]:
        """Splits what is left of these pieces behind a full answer into parts of which each fills about another one. Of
        files with long residuals or statistics an answer has few, and would read all entries behind them in vain."""
        behind = within(pieces, left)
        return split(behind, left, min(self._part_weight, max(1, weight_of(pieces) - weight_of(behind))))

    async def _read(self, piece: Piece, part: Range, memory: FilesMemory, is_first: bool) -> _MatchingFiles:
        """Reads the files of a manifest, in a part of the scan, that may have matching rows, up to a bound. Of the
        first manifest of some that are read together, these are more than none."""
        manifest, place = self._lists[piece.list][piece.manifest], (piece.list, piece.manifest)
        of_spec = self._of(manifest)
        selection = EntrySelection(
            spec=self._table.specs[manifest.partition_spec_id],
            partition_types=of_spec.partition_types,
            columns=self._columns(),
            first=part.start.entry if place == part.start[:2] else 0,
            end=part.end.entry if place == part.end[:2] else None,
            added_only=self._is_incremental,
            may_match=of_spec.partition_may_match,
            statistics_may_match=of_spec.file_may_match,
        )
        files: list[ContentFile] = []
        size = 0
        async with aclosing(self._source.entries(manifest, selection)) as chunks:
            async for chunk in chunks:
                matching = self._added(chunk) if self._is_incremental else chunk
                files += matching
                added = sum(file.memory for file in matching)
                size += added
                await memory.add(added, is_first=is_first)
                # A plan task with the only file of the first manifest would never end: it is this part again.
                is_full = len(files) > 1 and size > files_memory.MAX_FILES_BYTES if is_first else memory.is_full
                if len(files) > 2 * PART_WEIGHT or (files and is_full):
                    return _MatchingFiles(files[:-1], Position(*place, files[-1].position))
                if is_full:
                    return _MatchingFiles([], Position(*place, selection.first))
        return _MatchingFiles(files, None)

    def _added(self, files: Sequence[ContentFile]) -> Sequence[ContentFile]:
        """Returns the files that a snapshot of an incremental scan has added."""
        return [file for file in files if file.snapshot_id in self._snapshot_ids]

    def _columns(self) -> frozenset[int]:
        """Returns the ids of the columns of which statistics are read."""
        of_deletes = self._deletes.column_ids if self._deletes is not None else frozenset[int]()
        return self._filter.column_ids | self._stats | of_deletes

    def _add(
        self, answer: TaskAnswer, manifest: ManifestFile, files: Sequence[ContentFile], deletes: DeleteIndex | None
    ) -> int:
        """Adds tasks for the files, in order, and returns for how many of them the answer had room, or were needed."""
        of_spec = self._of(manifest)
        index = None if deletes is None or deletes.is_empty else deletes
        for number, file in enumerate(files):
            self._source.check_deadline()
            found = () if index is None else index.deletes_of(file)
            if not answer.add(file, found, of_spec.residual_json(file.partition)):
                return number
        return len(files)

    async def _delete_files(self) -> DeleteFiles:
        """Returns the delete files of the snapshot, opened."""
        if self._deletes is None:
            size = self._size + ENTRY_BYTES * len(self._lists[0])
            self._deletes = self._find_deletes(await off_loop(size, self._scan_deletes))
            await self._deletes.open()
        return self._deletes

    def _scan_deletes(self) -> ScanDeletes:
        """Returns the delete files of the scan, and how they are selected."""
        live = [each for each in self._lists[0] if each.content != DATA and each.live_files_count > 0]
        return ScanDeletes(
            live,
            [each for each in live if self._deletes_may_match(each)],
            self._table.specs,
            _columns_of(self._table) if live else {},
            dropped_columns(self._table.schemas) if live else frozenset(),
            self._deletes_in,
            self._types_of,
            self._may_match,
        )

    def _deletes_may_match(self, manifest: ManifestFile) -> bool:
        """Whether a manifest may have delete files for the scan."""
        self._source.check_deadline()
        return self._of(manifest).manifest_may_match(manifest.partitions)

    def _deletes_in(self, manifest: ManifestFile) -> EntrySelection:
        """Returns the selection of delete files in a manifest."""
        of_spec = self._of(manifest)
        spec = self._table.specs[manifest.partition_spec_id]
        return EntrySelection(spec, of_spec.partition_types, None, may_match=of_spec.partition_may_match)

    def _types_of(self, spec_id: int) -> Sequence[str]:
        """Returns the types of the partition fields of a spec."""
        return self._filter.for_spec(spec_id).partition_types

    def _may_match(self, file: ContentFile) -> bool:
        """Whether the statistics of a file allow matching rows."""
        return self._filter.for_spec(file.spec_id).file_may_match(file.statistics)


def _entries(manifest: ManifestFile) -> int:
    """Returns how many entries a manifest has, by its writer's counts, and no more than are read of one."""
    return min(MAX_FILE_RECORDS, manifest.live_files_count + manifest.deleted_files_count)


def _columns_of(table: ScanTable) -> Mapping[int, Column]:
    """Returns the columns of all schemas of a table by id, of the newest schema that has the id."""
    return {column.id: column for _, schema in sorted(table.schemas.items()) for column in columns_of(schema)}


def _by_lists(part: Range, lists: range) -> Sequence[Range]:
    """Splits a part of a scan of many manifest lists between lists."""
    step = max(MAX_LISTS, -(-len(lists) // MAX_PARTS))
    inner = [Position(number, 0, 0) for number in lists[step::step]]
    return [Range(*ends) for ends in zip((part.start, *inner), (*inner, part.end), strict=True)]
