"""A new metadata file that a commit or create writes, with the receipts that are written with it."""

from collections.abc import Iterable, Sequence

from arco_catalog.iceberg import table
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.context import Caller, Context
from arco_catalog.planning.kinds import Semantics
from arco_catalog.planning.writes import FileWrite, RecordWrite
from arco_catalog.state import receipt
from arco_catalog.state.index import Namespace
from arco_catalog.state.pointer import MetadataFile
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class NewMetadata:
    """The new metadata of a commit or create: the document, its bytes and the file; `base` is the file that it
    replaces, None for a create. `repeated` are the fields that the pointer repeats of the document."""

    semantics: Semantics
    document: JsonObject
    repeated: JsonObject
    body: bytes
    file: MetadataFile
    base: MetadataFile | None

    @classmethod
    def of(
        cls,
        semantics: Semantics,
        document: JsonObject,
        base: MetadataFile | None,
        attempt: Attempt,
        *,
        entity: str,
        body: bytes | None = None,
    ) -> "NewMetadata":
        """Returns the new metadata with its file, in the metadata folder as the table spells it. The file is named
        `{NNNNN}-{uuid}` and ends in `.metadata.json`, or `.gz.metadata.json` if the table compresses it. NNNNN is one
        more than in the name of its `base`, and 0 if there is no base or its name has no number. The UUID is unique to
        the attempt, the entity and the base, because tables of one request may share a folder, and several attempts at
        a table do. `body` has the document's bytes if the caller has them already."""
        version = table.next_metadata_version(None if base is None else base.location)
        folder = table.metadata_directory(document, table.location(document))
        uuid = attempt.uuid("metadata file", entity, "" if base is None else base.location)
        name = table.metadata_file_name(version, uuid, table.metadata_codec(document))
        ms = semantics.ms(document, None if base is None else base.ms, attempt.now_ms)
        return cls(
            semantics,
            document,
            semantics.summary(document),
            dumps(document) if body is None else body,
            MetadataFile(f"{folder}/{name}", ms),
            base,
        )

    @property
    def folder(self) -> str:
        """The folder of the new metadata file, as the table spells it."""
        return self.file.location.rpartition("/")[0]

    @property
    def snapshot_id(self) -> JsonValue:
        """The id of the current snapshot, as the pointer repeats it; None for a table without snapshots, and for a
        view."""
        return self.repeated.get("current_snapshot_id")

    def write(self) -> FileWrite:
        """Returns the write of the metadata file."""
        return FileWrite(self.file.location, self.body, packed=table.uses_gzip(self.document))

    def summary(self, caller: Caller, attempt: Attempt) -> JsonObject:
        """Returns the fields of this metadata that the pointer repeats, as `pointer_summary` does."""
        return pointer_summary(caller, attempt, self.repeated, self.base)


def pointer_summary(
    caller: Caller, attempt: Attempt, repeated: JsonObject, previous: MetadataFile | None
) -> JsonObject:
    """Returns the fields that a pointer repeats of the metadata, with the location of the `previous` file and the time
    and source of the change (docs/design/state.md#pointers)."""
    return {
        **repeated,
        "previous_metadata_location": None if previous is None else previous.location,
        "updated_ms": attempt.now_ms,
        "updated_by": caller.source,
    }


@dataclass(frozen=True, slots=True)
class ReceiptWrites:
    """Two writes, not made yet, of one attempt at a commit or create: of its pending and of its committed receipt."""

    pending: RecordWrite
    committed: RecordWrite


def receipt_writes(
    context: Context,
    *,
    entity: str,
    attempt: str,
    namespace: Namespace,
    name: str,
    new: NewMetadata,
    requirements: Sequence[str] = (),
    updates: Sequence[str] = (),
    snapshots: Iterable[int] = (),
    engine: str | None = None,
    manifest_list: str | None = None,
) -> ReceiptWrites:
    """Returns the writes, not made yet, of an attempt's pending and committed receipts for the metadata file `new` of
    an entity. They contain the author and the request, which the metadata does not, and the kinds of requirements and
    updates, the ids of added snapshots, the engine, None if it is not known, and the manifest list that the catalog
    writes for a rebased append, None for other commits (docs/design/reconciliation.md)."""
    caller = context.caller
    snapshot_ids: list[JsonValue] = [*snapshots]
    details: JsonObject = {
        "attempt": attempt,
        "entity_type": new.semantics.kind,
        receipt.uuid_field(new.semantics.kind): new.semantics.uuid(new.document),
        "namespace": [*namespace],
        "name": name,
        "snapshot_id": new.snapshot_id,
        "added_snapshot_ids": snapshot_ids,
        "requirements": [*requirements],
        "updates": [*updates],
        **caller.by,
        **({} if engine is None else {"engine": engine}),
        **({} if manifest_list is None else {receipt.MANIFEST_LIST: manifest_list}),
        "request": caller.request,
    }
    announced = receipt.pending(entity=entity, metadata=new.file, base=new.base, details=details)

    def to_write(stage: receipt.Stage, body: JsonObject) -> RecordWrite:
        key = context.paths.receipt(stage, str(announced["commit_key"]), new.file.ms)
        return RecordWrite(key, receipt.encode(body))

    return ReceiptWrites(
        to_write(receipt.PENDING, announced), to_write(receipt.COMMITTED, receipt.committed(announced))
    )
