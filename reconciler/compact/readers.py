"""Writes the rows of the system table `readers`: for each principal of a realm, where it may load tables or views by
its grants. A row is about one table or view, all tables or all views of a namespace and below it, or all of the
catalog. All rows are replaced when the grants change."""

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
    """Returns the rows of `readers` for the present grants in the registries of a realm and of one of its catalogs."""
    head = await realm.state.head()
    standings = await carry_out(realm.state, head.index, standings_of(head.index))
    head = await catalog.state.head()
    return reader_rows(await carry_out(catalog.state, head.index, reaches(head.index, standings)))


def reader_rows(found: Mapping[str, Collection[Reach]]) -> Sequence[ReaderRow]:
    """Returns the rows of `readers` for what each principal may load, sorted, so that equal grants give equal rows. The
    row of a grant on a single table or view has the entity and no namespace, since a rename changes the namespace."""
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


async def write_readers(table: OpenTable, realm: Session, catalog: Session) -> Sequence[DataFile] | None:
    """Replaces all rows of `readers` in one commit if the grants have changed. Returns the new files, which are none if
    there are no grants; None if the table already has the present grants. The table must be opened before the call, so
    that the grants are never older than the rows. Raises `CommitSuperseded` if another commit was first."""
    rows = await readers(realm, catalog)
    digest = hashlib.sha256(dumps([{**row} for row in rows])).hexdigest()
    if table.watermark(READERS) == digest:
        return None
    writer = Writer([table.target()], catalog.runtime.uuid)
    for row in rows:
        writer.add(table.definition.name, row)
    added = writer.finish().get(table.definition.name, ())
    removed = [each.file for each in table.files(AlwaysTrue())]
    if added or removed:
        table.commit(added, {READERS: digest}, removed)
    else:
        table.set_watermarks({READERS: digest})
    return added
