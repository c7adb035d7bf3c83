"""The files of live tables, as `--data` looks at them: a table after the other, or dealt out to other processes
(table_files.py says what one look is)."""

from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.protocol.decisions import resolve_for_read
from arco_catalog.upkeep.fsck.examination import LIVE, Examination, Findings, Relation
from arco_catalog.upkeep.fsck.table_files import Look, Manifest, TableFiles

LOOKS = 3
"""How often a table is looked at because it was changed while it was looked at."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which tables' files are looked at, by their names in order: these, or all; only those behind `after`."""

    tables: frozenset[str] = frozenset()
    after: str = ""

    @property
    def is_part(self) -> bool:
        """Whether tables were chosen: then nothing else of the catalog is looked at."""
        return bool(self.tables or self.after)

    def has(self, relation: Relation) -> bool:
        """Whether this one is looked at."""
        wanted = not self.tables or relation.name in self.tables
        return relation.kind == "table" and relation.state == LIVE and wanted and relation.name > self.after

    def of(self, examination: Examination) -> Sequence[Relation]:
        """Those of the registry that are looked at, in order."""
        return sorted(filter(self.has, examination.relations.values()), key=lambda each: each.name)


async def examine_files(examination: Examination, scope: Scope) -> Findings:
    """All findings about them, a table after the other."""
    for relation in scope.of(examination):
        examination.at = relation.name
        for finding in (await look_at_table(examination, relation)).tally.findings(relation):
            yield finding
    examination.at = ""


async def look_at_table(examination: Examination, relation: Relation, most: int | None = None) -> Look:
    """What is wrong with the files of a table that nobody changed meanwhile: snapshots expire beside us, and their
    files go. Of a table with more manifests than `most` the rest is left to who deals it out, who also has to `settle`
    what came of it."""
    looks = 1
    while True:
        look = await _look(examination, relation, most)
        settled = look if look.left else await settle(examination, relation, look, looks)
        if settled is not None:
            return settled
        looks += 1


async def look_at_manifests(examination: Examination, relation: Relation, manifests: Sequence[Manifest]) -> Look:
    """What is wrong with these manifests of a table, and with the files that they name."""
    files = TableFiles(examination, relation)
    await files.look_at_manifests(manifests)
    return Look(files.tally)


async def settle(examination: Examination, relation: Relation, look: Look, looks: int) -> Look | None:
    """What a whole look at a table comes to, after so many: itself; nothing, where the registry no longer has the table
    as it had; or None, if the table was changed meanwhile, and is to be looked at again."""
    if not look.tally:
        return look
    try:
        now = await examination.session.state.pointer(relation.entity)
    except InternalError:
        return Look()
    if (now is None or now.version != look.version) and looks < LOOKS:
        return None
    return look if await examination.is_still(relation) else Look()


async def _look(examination: Examination, relation: Relation, most: int | None) -> Look:
    state = examination.session.state
    try:
        pointer = await state.pointer(relation.entity)
        if pointer is None or pointer.entity != relation.entity:
            return Look()  # told where pointers are looked at
        return await TableFiles(examination, relation).look(await resolve_for_read(state, pointer), most)
    except InternalError:
        return Look()
