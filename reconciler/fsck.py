"""The check of tables' files on Spark: `arco fsck --data` with tables distributed to executors.

The driver checks the catalog's own objects (only the registry, if the check is limited to some tables), and cuts the
tables of the registry into parts. An executor examines the tables of a part with the code of the command
(`arco_catalog.upkeep.fsck.files`). Of a table with very many manifests it examines the first ones, and returns the
others to the driver, which distributes them as further parts, adds up their findings, and, if there are any, examines
the table anew if it has changed in between. If a part fails, the halves are tried again, until a part of one table or
of one manifest fails: that is a finding of the table.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial

from pyspark import SparkContext

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.upkeep.fsck.check import check_stored
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination, Relation
from arco_catalog.upkeep.fsck.files import Scope, look_at_manifests, look_at_table, settle
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.report import FindingCollector, Report
from arco_catalog.upkeep.fsck.table_files import Look, Manifest
from arco_catalog.upkeep.fsck.tally import Tally
from reconciler.catalog_config import CatalogConfig
from reconciler.parts import Losses, Part, cut_by, halves, reason, run_on_executors

PART = 100
"""How many tables are in a part."""
MANIFESTS = 200
"""How many manifests of one table are examined at most in one part."""
CONCURRENCY = 8
"""How many tables of a part are read concurrently."""


@dataclass(frozen=True, slots=True)
class Task:
    """The work on one table for an executor in a check: to examine the table's files; or, if there are `manifests`,
    only these manifests, while other parts examine the table's other manifests."""

    relation: Relation
    manifests: tuple[Manifest, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What an executor returns in a check for one task: in `look` the findings, and the manifests that are left to
    further parts, and in `examined` how many objects it read."""

    task: Task
    look: Look
    examined: int


@dataclass(slots=True)
class _SplitTable:
    """A table with manifests that are examined in more than one part: the findings so far, how many parts are left, and
    in `failure` why a manifest could not be read."""

    look: Look
    parts_left: int
    failure: str = ""


@dataclass(slots=True)
class FsckProgress:
    """The counts of a check on Spark so far: tables (0 while the catalog's own objects are examined), tables that are
    done, read objects and findings. All tables up to the name `up_to`, in the order of names, are done."""

    tables: int = 0
    done: int = 0
    examined: int = 0
    findings: int = 0
    up_to: str = ""


@dataclass
class _Run:
    """The state of one check of tables' files in the driver."""

    examination: Examination
    on_finding: Callable[[Finding], None]
    collector: FindingCollector
    progress: FsckProgress
    order: Sequence[Relation]
    """All tables of the check, in the order of their names."""
    done: set[str] = field(default_factory=set)
    """Entities of the tables that are done, after the first one that is not."""
    split: dict[str, _SplitTable] = field(default_factory=dict)
    """Tables that are read in more than one part, by entity."""
    looks: dict[str, int] = field(default_factory=dict)
    """How often the examination of a split table was started, by entity."""
    next_in_order: int = 0
    """The position in `order` of the first table that is not done."""

    def add(self, finding: Finding) -> None:
        """Adds a finding to the report, and passes it to `on_finding` if the report takes it."""
        if self.collector.add(finding):
            self.on_finding(finding)

    def finish(self, relation: Relation, tally: Tally) -> None:
        """Adds the findings of a table, counts the table as done, and updates the progress, with the name up to which
        all tables are done."""
        for finding in tally.findings(relation):
            self.add(finding)
        self.looks.pop(relation.entity, None)
        self.done.add(relation.entity)
        while self.next_in_order < len(self.order) and (first := self.order[self.next_in_order]).entity in self.done:
            self.progress.up_to = first.name
            self.done.remove(first.entity)
            self.next_in_order += 1
        self.progress.done += 1
        self.progress.findings = self.collector.count


async def fsck(
    spark: SparkContext,
    config: CatalogConfig,
    scope: Scope,
    *,
    part: int = PART,
    manifests: int = MANIFESTS,
    progress: Callable[[FsckProgress], None] = lambda progress: None,
    on_finding: Callable[[Finding], None] = lambda finding: None,
) -> Report:
    """Checks a catalog and the files of the tables in `scope`, as `arco fsck --data` does, and returns the report. A
    Spark job examines a part of `part` tables, and at most `manifests` manifests of a table; many parts run at once.
    `progress` is called after a part and during the driver's own examination, `on_finding` with every finding that the
    report will have. If `scope` selects only some tables, of the catalog's own objects only the registry is examined.

    Raises `NotFound` if the store has no such catalog, `NoSuchTable` if the scope names a table that does not exist,
    `StoreError`, and the error of Spark if so many parts fail that no table can be the cause (`Losses`).
    """
    async with config.session() as session:
        if not await session.state.has_any():
            raise NotFound(
                f"fsck found no catalog {config.warehouse!r} in {config.store}: check --store, --warehouse and --realm"
            )
        now = FsckProgress()

        def show(examination: Examination) -> None:
            now.examined = examination.examined
            progress(now)

        examination = Examination(session, progress=show)
        run = _Run(examination, on_finding, FindingCollector(), now, [])
        async for finding in check_stored(examination, scope):
            run.add(finding)
        examination.progress = lambda examination: None
        run.order = scope.of(examination)
        now.tables, now.examined = len(run.order), examination.examined
        work = partial(check_part, config, manifests)
        queue = deque(cut_by([Task(relation) for relation in run.order], part))
        losses = Losses()
        parts = run_on_executors(spark, session.runtime.ulid(), "check files of tables", work, queue)
        async with aclosing(parts):
            async for each in parts:
                losses.note(each.lost)
                queue.extendleft(await _add_results(run, each, manifests))
                progress(now)
        return Report(run.collector.findings(), [], now.examined)


async def _add_results(run: _Run, part: Part[Task, TaskResult], max_manifests: int) -> list[Sequence[Task]]:
    """Adds the results of a part to the run; of a part that failed, the failure, if it has one table or manifest.
    Returns the further parts that must be done: those that the results require, or the halves of the part that
    failed."""
    if part.lost is not None:
        return await _split_lost(run, part.items, part.lost)
    more: list[Sequence[Task]] = []
    for result in part.done:
        run.progress.examined += result.examined
        more += await _add_result(run, result, max_manifests)
    return more


async def _add_result(run: _Run, result: TaskResult, max_manifests: int) -> list[Sequence[Task]]:
    """Adds the findings of a table or of some manifests to the run. Returns the further parts that must be done: one
    for every `max_manifests` manifests that the executor left, or the whole table if `_finish_part` requires it."""
    relation = result.task.relation
    if result.task.manifests:
        run.split[relation.entity].look.tally.add(result.look.tally)
        return await _finish_part(run, relation)
    if not result.look.left:
        run.finish(relation, result.look.tally)
        return []
    parts = [Task(relation, tuple(each)) for each in cut_by(result.look.left, max_manifests)]
    run.looks[relation.entity] = run.looks.get(relation.entity, 0) + 1
    run.split[relation.entity] = _SplitTable(Look(result.look.tally, result.look.version), len(parts))
    return [[each] for each in parts]


async def _finish_part(run: _Run, relation: Relation) -> list[Sequence[Task]]:
    """Counts one part of a table that was split into parts as done. After the last one, the table is done, with a
    finding if a part failed, or must be read again, if it has findings and has changed, for a few times (`settle`).
    Returns the further parts that must be done because of it."""
    table = run.split[relation.entity]
    table.parts_left -= 1
    if table.parts_left:
        return []
    del run.split[relation.entity]
    settled = await settle(run.examination, relation, table.look, run.looks[relation.entity])
    if settled is None:
        return [[Task(relation)]]
    if table.failure:
        settled.tally.count(_unchecked(relation, table.failure))
    run.finish(relation, settled.tally)
    return []


async def _split_lost(run: _Run, tasks: Sequence[Task], lost: BaseException) -> list[Sequence[Task]]:
    """Returns the halves of a part that failed with the exception `lost`: of the tables, or of one table's manifests. A
    part of one table without manifests adds the finding that its files could not be examined, and returns no parts. A
    part of one manifest adds that finding when the table's other parts are done; it returns the table if it must be
    read again."""
    if len(tasks) > 1:
        return halves(tasks)
    [task] = tasks
    relation = task.relation
    if len(task.manifests) > 1:
        run.split[relation.entity].parts_left += 1
        return [[Task(relation, tuple(half))] for half in halves(task.manifests)]
    if task.manifests:
        run.split[relation.entity].failure = f"{task.manifests[0].path}: {reason(lost)}"
        return await _finish_part(run, relation)
    tally = Tally()
    tally.count(_unchecked(relation, reason(lost)))
    run.finish(relation, tally)
    return []


def _unchecked(relation: Relation, cause: str) -> Finding:
    """Returns the finding that files of a table could not be examined, with the cause."""
    return Finding(Code.FILES_UNCHECKED, relation.name, f"{relation.called}: {cause}")


def check_part(config: CatalogConfig, max_manifests: int, tasks: Iterable[Task]) -> Iterator[TaskResult]:
    """Examines the tables or manifests of a part on an executor with one opened catalog, and returns the results in the
    order of the tasks. Of a table, at most `max_manifests` manifests are examined; the others are in `look.left` of the
    result. Raises `ValueError` for a bad URL, `NotFound` if the realm has no such catalog, and `StoreError`."""
    return iter(asyncio.run(_check_part(config, max_manifests, [*tasks])))


async def _check_part(config: CatalogConfig, max_manifests: int, tasks: Sequence[Task]) -> list[TaskResult]:
    """Examines tables, or manifests of tables, in an executor, `CONCURRENCY` at a time, and returns the results in the
    order of the tasks."""
    async with config.session() as session:

        async def check(task: Task) -> TaskResult:
            examination = Examination(session)
            if task.manifests:
                look = await look_at_manifests(examination, task.relation, task.manifests)
            else:
                look = await look_at_table(examination, task.relation, max_manifests)
            return TaskResult(task, look, examination.examined)

        done: list[TaskResult] = []
        for batch in batches(tasks, CONCURRENCY):
            done += await gather(*map(check, batch))
        return done
