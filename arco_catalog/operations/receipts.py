"""A table's commits, as its receipts tell them."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.decisions import as_read
from arco_catalog.operations.names import no_such
from arco_catalog.operations.table_view import Wanted, named
from arco_catalog.state import receipt
from arco_catalog.state.fields import integer, mapping, parse_record, text
from arco_catalog.state.index import Namespace
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import MetadataFile
from storage_backends import Found


async def receipts(session: Session, namespace: Namespace, name: str) -> list[JsonObject]:
    """The receipts of a table's commits, newest first, each with a `state`: `committed`, or `pending` where the
    committed one is yet to be written. Raises `NoSuchTable`.

    Walks from the pointer back along the receipts, each of which names its base (design.md 6.8).
    """
    entry = await named(session, await session.state.head(), Wanted(namespace, name, "table", writing=False))
    pointer = None if entry is None else await session.state.pointer(entry.entity)
    if pointer is None:
        raise no_such("table", namespace, name)
    found: list[JsonObject] = []
    file: MetadataFile | None = (await as_read(session.state, pointer)).metadata
    while file is not None:
        said = await _receipt(session, pointer.entity, file)
        if said is None:
            break
        found.append(said)
        base = mapping(said, "base")
        file = MetadataFile(text(base, "metadata_location"), integer(base, "metadata_ms")) if base else None
    return found


async def _receipt(session: Session, entity: str, file: MetadataFile) -> JsonObject | None:
    for stage in (receipt.COMMITTED, receipt.PENDING):
        key = session.state.paths.receipt(stage, commit_key(entity, file.location), file.ms)
        answer = await session.state.store.get(key)
        if isinstance(answer, Found):
            return {**parse_record(answer.body, key), "state": stage}
    return None
