"""Receipts: one immutable record for every metadata file that became current (docs/design/reconciliation.md).

The pending receipt is written before the pointer moves and says everything; the committed one is a pure function of it,
so a writer and a reconciler produce the same bytes at the same path.

Fields have names of their own in each stage: the file that was replaced is `base_metadata_location` while the commit
is pending, and `previous_metadata_location` once it is made. Version 1 had both as `base`, and the table's uuid as
`uuid`; receipts of it stay as they are.
"""

import hashlib
from typing import Literal

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.fields import integer, mapping, optional_text, parse_record, text
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.runtime import ulid_of

Stage = Literal["pending", "committed"]
PENDING: Stage = "pending"
COMMITTED: Stage = "committed"

VERSION = 2

_BASE = {PENDING: "base", COMMITTED: "previous"}
"""How the names of the fields begin that tell which file was replaced, and its time."""


def event_id(metadata: MetadataFile, key: str) -> str:
    """A ULID of the file's time and the commit key's hash: the same whoever computes it."""
    return ulid_of(metadata.ms, hashlib.sha256(key.encode()).digest()[:10])


def pending(*, entity: str, metadata: MetadataFile, base: MetadataFile | None, details: JsonObject) -> JsonObject:
    """The receipt of an attempt. `details` is what only the writer knows: who, why, and what was asked for."""
    key = commit_key(entity, metadata.location)
    return {
        "version": VERSION,
        "type": "IcebergCommitPending",
        "event_id": event_id(metadata, key),
        "commit_key": key,
        "entity": entity,
        "metadata_location": metadata.location,
        "metadata_ms": metadata.ms,
        **_replaced(PENDING, base),
        **details,
    }


def committed(receipt: JsonObject) -> JsonObject:
    """The receipt of the commit that a pending one announced, of the version that the pending one is of."""
    details: JsonObject = {**receipt, "type": "IcebergCommitCommitted"}
    if receipt.get("version") != VERSION:
        return details
    for name in ("metadata_location", "metadata_ms"):
        details[f"{_BASE[COMMITTED]}_{name}"] = details.pop(f"{_BASE[PENDING]}_{name}", None)
    return details


def uuid_field(kind: str) -> str:
    """Where a receipt says the uuid that clients know: `table_uuid`, or `view_uuid`."""
    return f"{kind}_uuid"


def base_of(receipt: JsonObject) -> MetadataFile | None:
    """The file that the commit replaced, None for a create; of a receipt of either stage and any version. Raises
    `InternalError`."""
    for name in _BASE.values():
        if optional_text(receipt, f"{name}_metadata_location") is not None:
            return MetadataFile(text(receipt, f"{name}_metadata_location"), integer(receipt, f"{name}_metadata_ms"))
    base = mapping(receipt, "base")
    return MetadataFile(text(base, "metadata_location"), integer(base, "metadata_ms")) if base else None


def with_current_names(receipt: JsonObject, stage: Stage) -> JsonObject:
    """A receipt of any version, with the names that fields have today."""
    if receipt.get("version") == VERSION:
        return receipt
    details = {name: value for name, value in receipt.items() if name not in ("base", "uuid")}
    kind = optional_text(receipt, "entity_type") or "table"
    return {**details, uuid_field(kind): receipt.get("uuid"), **_replaced(stage, base_of(receipt))}


def parse(body: bytes, where: str) -> JsonObject:
    """One stored receipt, of any version. Raises `InternalError`."""
    return parse_record(body, where, newest=VERSION)


def encode(receipt: JsonObject) -> bytes:
    """The bytes to store."""
    return dumps(receipt, sort_keys=True)


def _replaced(stage: Stage, base: MetadataFile | None) -> JsonObject:
    return {
        f"{_BASE[stage]}_metadata_location": None if base is None else base.location,
        f"{_BASE[stage]}_metadata_ms": None if base is None else base.ms,
    }
