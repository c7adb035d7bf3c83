"""Examines the files of live tables for `--data`, one table after the other, or parts of tables in other processes. The
module table_files.py examines one table."""

from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.protocol.decisions import resolve_for_read
from arco_catalog.upkeep.fsck.examination import LIVE, Examination, Findings, Relation
from arco_catalog.upkeep.fsck.table_files import Look, Manifest, TableFiles

MAX_LOOKS = 3
"""The maximum number of examinations of a table that changes while it is examined."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The tables of which a check examines the files: the ones named in `tables`, or all if it is empty; and only
    tables with names after `after`."""

    tables: frozenset[str] = frozenset()
    after: str = ""

    @property
    def is_part(self) -> bool:
        """Whether the scope selects only some tables. The check then examines only their files and the registry."""
        return bool(self.tables or self.after)

    def has(self, relation: Relation) -> bool:
        """Whether a relation is a live table in the scope. Views and dropped tables never are."""
        is_selected = not self.tables or relation.name in self.tables
        return relation.kind == "table" and relation.state == LIVE and is_selected and relation.name > self.after

    def of(self, examination: Examination) -> Sequence[Relation]:
        """Returns the live tables of the registry that are in the scope, in the order of their names."""
        return sorted(filter(self.has, examination.relations.values()), key=lambda each: each.name)


async def examine_files(examination: Examination, scope: Scope) -> Findings:
    """Examines the files of the tables in the scope, one table after the other, and yields the findings."""
    for relation in scope.of(examination):
        examination.at = relation.name
        for finding in (await look_at_table(examination, relation)).tally.findings(relation):
            yield finding
    examination.at = ""


async def look_at_table(examination: Examination, relation: Relation, max_manifests: int | None = None) -> Look:
    """Examines the files of a table, and returns the result. Repeats this if there are findings and the table has
    changed meanwhile, with at most `MAX_LOOKS` examinations in all, since files of expired snapshots are deleted. At
    most `max_manifests` manifests are read (None: all): the others are in `left` of the result, for the caller to
    examine, and then to call `settle` with the sum."""
    looks = 1
    while True:
        look = await _look(examination, relation, max_manifests)
        settled = look if look.left else await settle(examination, relation, look, looks)
        if settled is not None:
            return settled
        looks += 1


async def look_at_manifests(examination: Examination, relation: Relation, manifests: Sequence[Manifest]) -> Look:
    """Examines these manifests of a table, and the files that they name. Returns the findings without a version of the
    table."""
    files = TableFiles(examination, relation)
    await files.look_at_manifests(manifests)
    return Look(files.tally)


async def settle(examination: Examination, relation: Relation, look: Look, looks: int) -> Look | None:
    """Decides whether the findings about a table can be reported. Returns `look` if it has no finding, if the table is
    unchanged since, or if this was examination number `MAX_LOOKS` (`looks` counts them). Returns None if the table has
    changed and must be examined again. Returns a result without findings if the pointer can't be read, or the registry
    no longer has the table."""
    if not look.tally:
        return look
    try:
        now = await examination.session.state.pointer(relation.entity)
    except InternalError:
        return Look()
    if (now is None or now.version != look.version) and looks < MAX_LOOKS:
        return None
    return look if await examination.is_still(relation) else Look()


async def _look(examination: Examination, relation: Relation, max_manifests: int | None) -> Look:
    """Examines the files of one table once, with at most `max_manifests` manifests (None: all). Without findings if the
    pointer is missing or corrupt, which is a finding of another examination."""
    state = examination.session.state
    try:
        pointer = await state.pointer(relation.entity)
        if pointer is None or pointer.entity != relation.entity:
            return Look()  # a finding of the examination of pointers
        return await TableFiles(examination, relation).look(await resolve_for_read(state, pointer), max_manifests)
    except InternalError:
        return Look()
