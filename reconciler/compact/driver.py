"""The driver of `compact`: it lists new objects of the store, sends them to executors in parts, and commits the rows of
a batch at a time (docs/design/pipeline.md).

It may be killed at any point and started again, and two drivers may run at once: a commit has both the rows and the
watermark that covers them, and requires the state at which the driver has read the table. A driver that loses a commit
reads anew.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from pyiceberg.manifest import DataFile

from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches
from arco_catalog.protocol.decisions import resolve_for_read
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.index import relations_in
from arco_catalog.state.late_receipts import late_marks, unmark
from arco_catalog.state.listing import list_objects
from arco_catalog.state.paths import commit_key
from arco_catalog.state.watermarks import BATCH, CLOSED_BEFORE, EVENTS_BATCH, NAMESPACE, REGISTRY_SEQUENCE
from reconciler.catalog_config import CatalogConfig
from reconciler.compact.current import demote, known_newest
from reconciler.compact.joining import Join
from reconciler.compact.readers import write_readers
from reconciler.compact.registry import commits_after
from reconciler.compact.rewriting import NOTHING, FileReplacement, without
from reconciler.compact.sources import LINEAGE_EVENTS, RECEIPTS, REPORTS, Batch, Source, find_new
from reconciler.compact.stats import CompactStats
from reconciler.compact.versions import COLUMNS as VERSION_COLUMNS
from reconciler.compact.versions import version_of, with_newest
from reconciler.compact.work import (
    PartResult,
    WriteDated,
    write_commits,
    write_events,
    write_lineage_events,
    write_reports,
    write_tasks,
    write_versions,
)
from reconciler.executors import Executors, cut
from reconciler.system import questions, tables, visible
from reconciler.system.conditions import equal, one_of
from reconciler.system.definition import Row, SystemTable
from reconciler.system.opened import CommitSuperseded, OpenTable, SystemTables
from reconciler.system.questions import Question
from reconciler.system.views import write_views
from reconciler.system.writing import Writer

BATCH_SIZE = 50_000
"""How many objects are in one batch, which is one commit to a table."""
MIN_PART, MAX_PART = 200, 10_000
"""How many objects are in one part: seconds of work, and files that are not small if there is much to write."""
MAX_ATTEMPTS = 10
"""How often a step is tried that commits of other runs supersede."""
PROJECTED = (
    *(tables.COLUMNS, tables.REFS, tables.SNAPSHOTS, tables.FILES_HEALTH, tables.VIEWS),
    tables.TABLES,
)
"""The tables with rows that are made from metadata files, in the order in which a batch is committed to them. The last
one gets a commit for every batch: another one with a lower watermark had no rows (docs/design/pipeline.md#rule-5)."""


Progress = Callable[[CompactStats], None]


@dataclass
class Compaction:
    """One run of the job `compact` over one catalog: writes the rows of new receipts, registry commits, tasks, reports
    and OpenLineage events to the tables of `system`."""

    config: CatalogConfig
    session: Session
    system: SystemTables
    executors: Executors
    realm: Session | None = None
    """A session with the registry of the catalog's realm; None without a realm."""
    batch_size: int = BATCH_SIZE
    progress: Progress = lambda stats: None
    stats: CompactStats = field(default_factory=CompactStats)
    opened: Sequence[OpenTable] = ()
    """All system tables, opened before the run reads receipts."""

    async def run(self) -> CompactStats:
        """Writes rows for the receipts, registry commits, ended tasks, reports and OpenLineage events that the system
        tables do not have, the views of the usual questions, in a realm the table `readers`, and edges of lineage, and
        returns the counts. Raises `CommitSuperseded` if commits of other runs supersede a step `MAX_ATTEMPTS` times,
        and the errors of Spark, the store and PyIceberg."""
        await self._repeat_superseded(self._add_lineage_events)
        self.opened = [self.system.open(table) for table in self._tables]
        await asyncio.to_thread(
            write_views, self.system.catalog, self.system.trino_catalog, self.views, self.system.trino_owner
        )
        await self._repeat_superseded(self._readers)
        joinable = self.system.open(tables.LINEAGE_EVENTS).number(BATCH)
        for step in (
            self._add_receipts,
            self._add_registry_commits,
            self._add_metadata,
            self._add_tasks,
            self._add_reports,
        ):
            await self._repeat_superseded(step)
        await self._repeat_superseded(partial(self._lineage, joinable))
        return self.stats

    @property
    def _tables(self) -> Sequence[SystemTable]:
        """Returns the tables that this run maintains; those about rights only in a realm."""
        return tables.ALL if self.realm is None else (*tables.ALL, tables.READERS)

    @property
    def views(self) -> Sequence[Question]:
        """The usual questions for which the namespace `system` gets views; in a realm also those that hide rows."""
        return questions.ALL if self.realm is None else (*questions.ALL, *visible.ALL)

    async def _readers(self) -> None:
        """Replaces the rows of `readers` if the grants have changed, before the rows of the run that views for callers
        show, so that a grant that is revoked by now hides the new rows, too. After a commit the grants are reread, up
        to `MAX_ATTEMPTS` times, since another run may have written older ones. Does nothing without a realm."""
        if self.realm is None:
            return
        for _ in range(MAX_ATTEMPTS):
            table = self.system.open(tables.READERS)
            added = await write_readers(table, self.realm, self.session)
            if added is None:
                return
            self.stats.committed(table.definition, added)
            self.progress(self.stats)

    async def _repeat_superseded(self, step: Callable[[], Awaitable[None]]) -> None:
        """Carries out a step, up to `MAX_ATTEMPTS` times: again if another run has superseded the commit, which it
        counts. Raises `CommitSuperseded` after the last time."""
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return await step()
            except CommitSuperseded:
                self.stats.overtaken += 1
                await self.session.state.pause()
        return await step()

    async def _add_receipts(self) -> None:
        """Adds the new receipts to `system.commits`, without receipts of the system tables and views themselves.
        Removes the old marks of late days that were listed."""
        marks, now_ms = await late_marks(self.session.state)
        own = await self._own_entities()
        commits = self.system.open(tables.COMMITS)
        late = {mark.day for mark in marks}
        own_keys = self._own_keys(own) | await self._last_commit_keys_of_views(own)
        found = find_new(self.session, RECEIPTS, commits, now_ms, self.batch_size, late=late, own=own_keys)
        await self._write_by_day("receipts", commits, found, partial(write_commits, frozenset(own.values())))
        for mark in marks:
            if mark.old:
                await unmark(self.session.state, mark)

    async def _add_lineage_events(self) -> None:
        """Adds the rows of new OpenLineage events to the table `lineage_events`."""
        await self._without_marks("OpenLineage events", LINEAGE_EVENTS, tables.LINEAGE_EVENTS, write_lineage_events)

    async def _add_reports(self) -> None:
        """Adds the new metrics reports to their table."""
        await self._without_marks("reports", REPORTS, tables.REPORTS, write_reports)

    async def _without_marks(self, name: str, source: Source, definition: SystemTable, write: WriteDated) -> None:
        """Writes the rows of a source to its table, for a source that gets no new objects in days that are closed, so
        that no closed day is marked as having some."""
        table = self.system.open(definition)
        _, now_ms = await late_marks(self.session.state)
        await self._write_by_day(name, table, find_new(self.session, source, table, now_ms, self.batch_size), write)

    async def _write_by_day(
        self, name: str, table: OpenTable, found: AsyncGenerator[Batch, None], write: WriteDated
    ) -> None:
        """Writes batches of objects that are found by day, and commits every batch with the watermarks, unless it made
        no files."""
        async with aclosing(found):
            async for batch in found:
                number = table.number(BATCH) + 1
                parts = await self._execute(name, partial(write, self.config, table.target(), number), batch.keys)
                self._append(table, parts, {BATCH: str(number), CLOSED_BEFORE: batch.closed_before.isoformat()})

    async def _lineage(self, joinable: int) -> None:
        """Writes rows of `lineage`: the edges of the batches of events up to number `joinable`, the edges of Servo's
        receipts, and anew edges with commits that were written after them. `joinable` was read before receipts were:
        all commits that these events may refer to are in `commits` by now, except late ones."""
        lineage, commits = self.system.open(tables.LINEAGE), self.system.open(tables.COMMITS)
        events, versions = self.system.open(tables.LINEAGE_EVENTS), self.system.open(tables.TABLES)
        join = Join(events, commits, versions, lineage, {self.config.warehouse, *self.system.names})
        for number in range(lineage.number(EVENTS_BATCH) + 1, joinable + 1):
            self._commit_rows(lineage, join.new_edges(number), {EVENTS_BATCH: str(number)})
        reached, since = commits.number(BATCH), lineage.number(BATCH)
        if reached > since:
            matched = join.newly_matched(since)
            rewritten = without(lineage, matched.where, "edge_id", matched.replaced, self.session.runtime.uuid)
            rows = chain(join.servo_edges(since), matched.edges)
            self._commit_rows(lineage, rows, {BATCH: str(reached)}, rewritten)

    def _commit_rows(
        self, table: OpenTable, rows: Iterable[Row], watermarks: Mapping[str, str], rewritten: FileReplacement = NOTHING
    ) -> None:
        """Writes rows to files in the driver, commits these with the rewritten files and the watermarks, and counts the
        commit. Without rows, only the watermarks are committed, and `rewritten` is ignored."""
        writer = Writer([table.target()], self.session.runtime.uuid)
        for row in rows:
            writer.add(table.definition.name, row)
        added = writer.finish().get(table.definition.name, ())
        if added:
            table.commit([*added, *rewritten.added], watermarks, rewritten.removed)
            self.stats.committed(table.definition, added)
        else:
            table.set_watermarks(watermarks)
            self.stats.commits += 1
        self.progress(self.stats)

    async def _add_registry_commits(self) -> None:
        """Adds the new commits of the registry to `system.catalog_events`, a batch at a time with the watermark.
        A batch without rows gets no commit, and does not move the watermark."""
        events = self.system.open(tables.CATALOG_EVENTS)
        new = await commits_after(self.session, events.number(REGISTRY_SEQUENCE))
        for batch in batches(new, self.batch_size):
            write = partial(write_events, self.config, events.target())
            parts = await self._execute("registry", write, [commit.id for commit in batch])
            self._append(events, parts, {REGISTRY_SEQUENCE: str(batch[-1].sequence)})

    async def _add_metadata(self) -> None:
        """Adds what the metadata files of new commits have to the tables in `PROJECTED`: those about tables, views,
        snapshots, refs, columns and the health of files."""
        commits = self.system.open(tables.COMMITS)
        while True:
            opened = {table.name: self.system.open(table) for table in PROJECTED}
            reached = opened[tables.TABLES.name].number(BATCH)
            if reached >= commits.number(BATCH):
                return
            await self._project(commits, opened, reached + 1)

    async def _project(self, commits: OpenTable, opened: Mapping[str, OpenTable], number: int) -> None:
        """Writes the rows of one batch of commits to every table that is made of metadata files and has a watermark
        before that batch. Older rows of the same entities lose the mark `current`. A table that gets no
        rows, and of which no older rows lose the mark, gets no commit; of such tables only `tables` gets the
        watermark."""
        behind = {name: table for name, table in opened.items() if table.number(BATCH) < number}
        rows = commits.rows(equal("batch", number), *VERSION_COLUMNS).to_pylist()
        versions = [version_of(row) for row in rows]
        changed = sorted({version.entity for version in versions})
        known = known_newest([opened[tables.TABLES.name], opened[tables.VIEWS.name]], changed)
        versions = with_newest(versions, known, known_newest([opened[tables.COLUMNS.name]], changed))
        write = partial(write_versions, self.config, [table.target() for table in behind.values()])
        parts = await self._execute(f"metadata of batch {number}", write, versions)
        watermark = {BATCH: str(number)}
        for table in PROJECTED:
            if table.name not in behind:
                continue
            entities = {
                version.entity
                for version in versions
                if (version.newest_schema if table is tables.COLUMNS else version.newest)
            }
            target, added = behind[table.name], _files(parts, table)
            rewritten = demote(target, entities, self.session.runtime.uuid) if table.has_current else NOTHING
            if added or rewritten.removed:
                target.commit([*added, *rewritten.added], watermark, rewritten.removed)
                self.stats.committed(table, added)
            elif table is tables.TABLES:
                target.set_watermarks(watermark)
                self.stats.commits += 1
            self.progress(self.stats)

    async def _add_tasks(self) -> None:
        """Writes rows for the tasks that have ended, by their last versions, unless the table `tasks` has them."""
        table = self.system.open(tables.TASKS)
        paths = self.session.state.paths
        newest: dict[str, int] = {}
        async for each in list_objects(self.session.state, paths.tasks):
            task, _, version = each.key.removeprefix(paths.tasks).removesuffix(".json").partition("/")
            if version.isdecimal():
                newest[task] = max(newest.get(task, 0), int(version))
        known: set[tuple[object, ...]] = set()
        for some in batches(sorted(newest), 1_000):
            rows = table.rows(one_of("task_id", some), "task_id", "task_version").to_pylist()
            known |= {(row["task_id"], row["task_version"]) for row in rows}
        new = [task for task, version in newest.items() if (task, version) not in known]
        for batch in batches(new, self.batch_size):
            parts = await self._execute("tasks", partial(write_tasks, self.config, table.target()), batch)
            self._append(table, parts, {})

    def _append(self, table: OpenTable, parts: Sequence[PartResult], watermarks: Mapping[str, str]) -> None:
        """Commits the files of a batch that executors have written for a table, with the watermarks, and counts the
        commit. If there are no files, nothing is committed, and the watermarks do not move. Reports the counts in both
        cases."""
        added = _files(parts, table.definition)
        if added:
            table.commit(added, watermarks)
            self.stats.committed(table.definition, added)
        self.progress(self.stats)

    async def _execute(
        self, name: str, work: Callable[[Sequence[object]], PartResult], items: Sequence[object]
    ) -> list[PartResult]:
        """Deals out work on items to the executors, adds the counts of the parts to the run, and returns the results of
        the parts in order."""
        parts = cut(items, self.executors.parallelism, MIN_PART, MAX_PART)
        done = await asyncio.to_thread(self.executors.run, f"compact: {name}", work, parts)
        self.stats.add(done)
        return done

    async def _own_entities(self) -> Mapping[str, str]:
        """Returns the entity of each table and view in the namespace `system`, by its name."""
        head = await self.session.state.head()
        found: dict[str, str] = {}
        prefix = relations_in((NAMESPACE,))
        async with aclosing(entries_in(self.session.state, head.index, prefix)) as entries:
            async for key, entry in entries:
                found[key.removeprefix(prefix)] = RelationEntry(entry).entity
        return found

    def _own_keys(self, own: Mapping[str, str]) -> set[str]:
        """Returns the commit keys of commits to the system tables themselves, as far back as their metadata logs go.
        `own` has the entities by name."""
        return {
            commit_key(own[table.definition.name], location)
            for table in self.opened
            if table.definition.name in own
            for location in table.entity_files
        }

    async def _last_commit_keys_of_views(self, own: Mapping[str, str]) -> set[str]:
        """Returns the commit keys of the last two commits to each view of the usual questions. `own` has the entities
        by name."""
        keys = set[str]()
        for question in self.views:
            pointer = await self.session.state.pointer(own[question.name]) if question.name in own else None
            if pointer is not None:
                current = await resolve_for_read(self.session.state, pointer)
                files = (current.metadata, current.base)
                keys.update(commit_key(pointer.entity, file.location) for file in files if file is not None)
        return keys


async def compact(
    system: SystemTables,
    config: CatalogConfig,
    executors: Executors,
    *,
    batch_size: int = BATCH_SIZE,
    progress: Progress = lambda stats: None,
) -> CompactStats:
    """Brings the tables of `system` up to date with the catalog that `config` describes, and returns the counts. One
    batch has at most `batch_size` objects, and is one commit to a table. `progress` is called with the counts after
    each commit, and where a batch has no rows for a table. Raises `CommitSuperseded` if commits of other runs supersede
    a step `MAX_ATTEMPTS` times, `NotFound` if the realm has no such catalog, and the errors of Spark, the store and
    PyIceberg."""
    async with config.session() as session, config.realm_session() as realm:
        return await Compaction(config, session, system, executors, realm, batch_size, progress).run()


def _files(parts: Sequence[PartResult], table: SystemTable) -> list[DataFile]:
    """Returns the data files that the parts have written for a table."""
    return [file for part in parts for file in part.files.get(table.name, ())]
