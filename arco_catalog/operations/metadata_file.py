"""A metadata file that a commit or a create is about to make current, with all that is written beside it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arco_catalog.iceberg import table
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.mutation import Write
from arco_catalog.state import receipt
from arco_catalog.state.index import Namespace
from arco_catalog.state.locations import Location
from arco_catalog.state.pointer import MetadataFile


@dataclass(frozen=True, slots=True)
class NewMetadata:
    """A document and the file that will hold it."""

    document: JsonObject
    body: bytes
    file: MetadataFile

    @classmethod
    def of(cls, document: JsonObject, *, base: MetadataFile | None, attempt: str, tries: int) -> "NewMetadata":
        """Names the file `{NNNNN}-{attempt}-{try}`, NNNNN one more than its base's."""
        version = table.next_metadata_version(None if base is None else base.location)
        codec = "gzip" if table.uses_gzip(document) else "none"
        folder = Location.parse(table.metadata_directory(document, table.location(document)))
        name = table.metadata_file_name(version, attempt, tries, codec)
        return cls(document, dumps(document), MetadataFile(folder.below(name).uri, table.last_updated_ms(document)))

    def write(self, session: Session) -> Write:
        """The file itself."""

        async def put() -> None:
            await session.files.create(self.file.location, self.body, packed=table.uses_gzip(self.document))

        return Write(self.file.location, put)

    def facts(self, session: Session, previous: MetadataFile | None) -> JsonObject:
        """What a pointer repeats of its metadata (seed 004, section 2.1)."""
        return pointer_facts(session, self.document, previous)


def pointer_facts(session: Session, document: JsonObject, previous: MetadataFile | None) -> JsonObject:
    """What a pointer repeats of the metadata that it names (seed 004, section 2.1)."""
    return {
        "table_uuid": table.table_uuid(document),
        "current_snapshot_id": table.current_snapshot_id(document),
        "refs": table.refs(document),
        "last_sequence_number": table.last_sequence_number(document),
        "previous_metadata_location": None if previous is None else previous.location,
        "updated_ms": session.runtime.now_ms(),
        "updated_by": session.call.source,
    }


@dataclass(frozen=True, slots=True)
class Receipts:
    """The pending and the committed receipt of one attempt at making a file current."""

    pending: Write
    committed: Write


def receipts(
    session: Session,
    *,
    entity: str,
    attempt: str,
    namespace: Namespace,
    name: str,
    new: NewMetadata,
    base: MetadataFile | None,
    requirements: Sequence[str],
    updates: Sequence[str],
    snapshots: Iterable[int],
) -> Receipts:
    """Everything that a receipt says (design.md 6.8): metadata alone could not restore who asked and what for."""
    snapshot_ids: list[JsonValue] = [*snapshots]
    said: JsonObject = {
        "attempt": attempt,
        "table_uuid": table.table_uuid(new.document),
        "namespace": [*namespace],
        "name": name,
        "snapshot_id": table.current_snapshot_id(new.document),
        "added_snapshot_ids": snapshot_ids,
        "requirements": [*requirements],
        "updates": [*updates],
        "principal": session.call.principal,
        "source": session.call.source,
        "request": {"method": session.call.method, "path": session.call.path},
    }
    announced = receipt.pending(entity=entity, metadata=new.file, base=base, said=said)

    def to_write(stage: str, body: JsonObject) -> Write:
        key = session.state.paths.receipt(stage, str(announced["commit_key"]), new.file.ms)

        async def put() -> None:
            await session.state.create(key, receipt.encode(body))

        return Write(key, put)

    return Receipts(to_write(receipt.PENDING, announced), to_write(receipt.COMMITTED, receipt.committed(announced)))
