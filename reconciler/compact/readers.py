"""The rows of `readers`: what grants let each principal load, written anew when they come to anything else."""

import hashlib
from collections.abc import Collection, Mapping, Sequence

from pyiceberg.expressions import AlwaysTrue
from pyiceberg.manifest import DataFile

from arco_catalog.iceberg.json import dumps
from arco_catalog.planning.names import dotted
from arco_catalog.planning.readers import Reach, reaches, standings_of
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.watermarks import READERS
from reconciler.system.opened import OpenTable
from reconciler.system.writing import Writer

ReaderRow = Mapping[str, str | None]


async def readers(realm: Session, catalog: Session) -> Sequence[ReaderRow]:
    """The rows by what the registries of a realm and of one of its catalogs say now."""
    head = await realm.state.head()
    standings = await carry_out(realm.state, head.index, standings_of(head.index))
    head = await catalog.state.head()
    return reader_rows(await carry_out(catalog.state, head.index, reaches(head.index, standings)))


def reader_rows(found: Mapping[str, Collection[Reach]]) -> Sequence[ReaderRow]:
    """What principals may load, as rows in an order of their own. A table that is granted by itself is known by its
    entity alone: that survives renames."""
    rows: list[ReaderRow] = [
        {
            "principal": principal,
            "entity_type": reach.kind,
            "namespace": None if reach.namespace is None or reach.entity is not None else dotted(reach.namespace),
            "entity": reach.entity,
        }
        for principal, held in found.items()
        for reach in held
    ]
    return sorted(rows, key=lambda row: [*((value is not None, value or "") for value in row.values())])


async def tell_readers(table: OpenTable, realm: Session, catalog: Session) -> Sequence[DataFile] | None:
    """Commits what grants come to, if that is anything else than the table says. Returns the new files, None if there
    was nothing to tell. Raises `CommitSuperseded`; the table was opened before the grants are read, so what is
    committed is never older than what it says."""
    rows = await readers(realm, catalog)
    digest = hashlib.sha256(dumps([{**row} for row in rows])).hexdigest()
    if table.watermark(READERS) == digest:
        return None
    writer = Writer([table.target()], catalog.runtime.uuid)
    for row in rows:
        writer.add(table.definition.name, row)
    added = writer.finish().get(table.definition.name, ())
    gone = [each.file for each in table.files(AlwaysTrue())]
    if added or gone:
        table.commit(added, {READERS: digest}, gone)
    else:
        table.set_watermarks({READERS: digest})
    return added
