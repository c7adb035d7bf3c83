"""The check of tables' files on Spark: what `arco fsck --data` does with one table after the other, dealt out.

The driver checks what the catalog itself has stored, and cuts the tables that its registry names into parts. An
executor looks at its tables by the very code of the command (`arco_catalog.upkeep.fsck.files`). Of a table with
very many manifests it looks at the first, and leaves the others to the driver, which deals them out as parts of their
own, adds up what was found in them, and sees whether the table was changed meanwhile. A part that is lost is halved,
and its halves are tried again, until what is lost is one table, or one manifest of it: that is told of the table.
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
from arco_catalog.upkeep.fsck.check import check_stored, require_known
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination, Relation
from arco_catalog.upkeep.fsck.files import Scope, look_at_manifests, look_at_table, settle
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.report import FindingCollector, Report
from arco_catalog.upkeep.fsck.table_files import Look, Manifest
from arco_catalog.upkeep.fsck.tally import Tally
from reconciler.catalog_config import CatalogConfig
from reconciler.parts import Losses, Part, cut_by, halves, run_on_executors, why

PART = 100
"""Tables in a part."""
MANIFESTS = 200
"""Manifests of one table that one part looks at."""
BESIDE = 8
"""Tables that a part looks at side by side."""


@dataclass(frozen=True, slots=True)
class Task:
    """A table that is to be looked at; or these manifests of it, where the rest of it was looked at before."""

    relation: Relation
    manifests: tuple[Manifest, ...] = ()


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of one task, and how many objects it looked at."""

    task: Task
    look: Look
    examined: int


@dataclass(slots=True)
class _Divided:
    """A table whose manifests are dealt out: what was found by now, how many are to come, and why some never will."""

    look: Look
    waiting: int
    lost: str = ""


@dataclass(slots=True)
class FsckProgress:
    """How far a check has come: the tables up to `up_to`, in the order of their names, are all done."""

    tables: int = 0
    done: int = 0
    examined: int = 0
    findings: int = 0
    up_to: str = ""


@dataclass
class _Run:
    """What is known of the tables of one check."""

    examination: Examination
    tell: Callable[[Finding], None]
    gathered: FindingCollector
    progress: FsckProgress
    order: Sequence[Relation]
    """All tables that are looked at."""
    ended: set[str] = field(default_factory=set)
    """Entities of those that are done, behind the first that is not."""
    divided: dict[str, _Divided] = field(default_factory=dict)
    """By entities."""
    looks: dict[str, int] = field(default_factory=dict)
    """How often divided tables were looked at."""
    place: int = 0

    def add(self, finding: Finding) -> None:
        """Takes a finding in."""
        if self.gathered.add(finding):
            self.tell(finding)

    def ends(self, relation: Relation, tally: Tally) -> None:
        """Takes in what came of a table."""
        for finding in tally.findings(relation):
            self.add(finding)
        self.looks.pop(relation.entity, None)
        self.ended.add(relation.entity)
        while self.place < len(self.order) and (first := self.order[self.place]).entity in self.ended:
            self.progress.up_to = first.name
            self.ended.remove(first.entity)
            self.place += 1
        self.progress.done += 1
        self.progress.findings = self.gathered.count


async def fsck(
    spark: SparkContext,
    config: CatalogConfig,
    scope: Scope,
    *,
    part: int = PART,
    manifests: int = MANIFESTS,
    progress: Callable[[FsckProgress], None] = lambda progress: None,
    tell: Callable[[Finding], None] = lambda finding: None,
) -> Report:
    """Checks a catalog with the files of its tables, as `arco fsck --data` does; `progress` hears of each finished part
    and of what the driver itself looks at, `tell` of each finding that the report will have.

    Raises `NotFound` if there is no such catalog, `NoSuchTable`, `StoreError`, and, where more parts are lost than any
    table could be to blame for, what Spark raised.
    """
    async with config.session() as session:
        if not await session.state.has_any():
            raise NotFound(f"there is no catalog {config.warehouse!r} in {config.store}")
        now = FsckProgress()

        def of_driver(examination: Examination) -> None:
            now.examined = examination.examined
            progress(now)

        examination = Examination(session, progress=of_driver)
        run = _Run(examination, tell, FindingCollector(), now, [])
        async for finding in check_stored(examination, scope):
            run.add(finding)
        require_known(examination, scope)
        examination.progress = lambda examination: None
        run.order = scope.of(examination)
        now.tables, now.examined = len(run.order), examination.examined
        work = partial(look_at_part, config, manifests)
        queue = deque(cut_by([Task(relation) for relation in run.order], part))
        losses = Losses()
        parts = run_on_executors(spark, session.runtime.ulid(), "check files of tables", work, queue)
        async with aclosing(parts):
            async for each in parts:
                losses.note(each.lost)
                queue.extendleft(await _take(run, each, manifests))
                progress(now)
        return Report(run.gathered.findings(), [], now.examined)


async def _take(run: _Run, part: Part[Task, Looked], most: int) -> list[Sequence[Task]]:
    """Takes in what came of a part. Returns the parts that are to be done because of it."""
    if part.lost is not None:
        return await _again(run, part.items, part.lost)
    more: list[Sequence[Task]] = []
    for done in part.done:
        run.progress.examined += done.examined
        more += await _took(run, done, most)
    return more


async def _took(run: _Run, done: Looked, most: int) -> list[Sequence[Task]]:
    relation = done.task.relation
    if done.task.manifests:
        run.divided[relation.entity].look.tally.add(done.look.tally)
        return await _one_less(run, relation)
    if not done.look.left:
        run.ends(relation, done.look.tally)
        return []
    parts = [Task(relation, tuple(each)) for each in cut_by(done.look.left, most)]
    run.looks[relation.entity] = run.looks.get(relation.entity, 0) + 1
    run.divided[relation.entity] = _Divided(Look(done.look.tally, done.look.version), len(parts))
    return [[each] for each in parts]


async def _one_less(run: _Run, relation: Relation) -> list[Sequence[Task]]:
    """Counts a part of a divided table as done. The last one tells what came of the table, unless it was changed."""
    divided = run.divided[relation.entity]
    divided.waiting -= 1
    if divided.waiting:
        return []
    del run.divided[relation.entity]
    settled = await settle(run.examination, relation, divided.look, run.looks[relation.entity])
    if settled is None:
        return [[Task(relation)]]
    if divided.lost:
        settled.tally.tell(_unchecked(relation, divided.lost))
    run.ends(relation, settled.tally)
    return []


async def _again(run: _Run, tasks: Sequence[Task], lost: BaseException) -> list[Sequence[Task]]:
    """The halves of a part that was lost. One table, or one manifest of it, is told as what was not looked at."""
    if len(tasks) > 1:
        return halves(tasks)
    [task] = tasks
    relation = task.relation
    if len(task.manifests) > 1:
        run.divided[relation.entity].waiting += 1
        return [[Task(relation, tuple(half))] for half in halves(task.manifests)]
    if task.manifests:
        run.divided[relation.entity].lost = f"{task.manifests[0].path}: {why(lost)}"
        return await _one_less(run, relation)
    tally = Tally()
    tally.tell(_unchecked(relation, why(lost)))
    run.ends(relation, tally)
    return []


def _unchecked(relation: Relation, reason: str) -> Finding:
    return Finding(Code.FILES_UNCHECKED, relation.name, f"{relation.called}: {reason}")


def look_at_part(config: CatalogConfig, most: int, tasks: Iterable[Task]) -> Iterator[Looked]:
    """An executor's share: one catalog opened, and a look at each of its tables, of which so many manifests at most."""
    return iter(asyncio.run(_look_at_part(config, most, [*tasks])))


async def _look_at_part(config: CatalogConfig, most: int, tasks: Sequence[Task]) -> list[Looked]:
    async with config.session() as session:

        async def look(task: Task) -> Looked:
            examination = Examination(session)
            if task.manifests:
                found = await look_at_manifests(examination, task.relation, task.manifests)
            else:
                found = await look_at_table(examination, task.relation, most)
            return Looked(task, found, examination.examined)

        done: list[Looked] = []
        for batch in batches(tasks, BESIDE):
            done += await gather(*map(look, batch))
        return done
