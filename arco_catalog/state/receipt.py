"""Receipts: one immutable record for every metadata file that became current (design.md 6.8).

The pending receipt is written before the pointer moves and says everything; the committed one is a pure function of it,
so a writer and a reconciler produce the same bytes at the same path.
"""

import hashlib

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.runtime import ulid_of

PENDING = "pending"
COMMITTED = "committed"


def event_id(metadata: MetadataFile, key: str) -> str:
    """A ULID of the file's time and the commit key's hash: the same whoever computes it."""
    return ulid_of(metadata.ms, hashlib.sha256(key.encode()).digest()[:10])


def pending(*, entity: str, metadata: MetadataFile, base: MetadataFile | None, said: JsonObject) -> JsonObject:
    """The receipt of an attempt. `said` is what only the writer knows: who, why, and what was asked for."""
    key = commit_key(entity, metadata.location)
    return {
        "version": 1,
        "type": "IcebergCommitPending",
        "event_id": event_id(metadata, key),
        "commit_key": key,
        "entity": entity,
        "metadata_location": metadata.location,
        "metadata_ms": metadata.ms,
        "base": None if base is None else {"metadata_location": base.location, "metadata_ms": base.ms},
        **said,
    }


def committed(receipt: JsonObject) -> JsonObject:
    """The receipt of the commit that a pending one announced."""
    return {**receipt, "type": "IcebergCommitCommitted"}


def encode(receipt: JsonObject) -> bytes:
    """The bytes to store."""
    return dumps(receipt, sort_keys=True)
