"""Receipts: immutable records of the commits of tables and views. A committed receipt is for a metadata file that
became current; a pending one may be of a commit that never applied (docs/design/reconciliation.md).

The pending receipt is written before the pointer moves, with all fields. The committed one is a pure function of it, so
that a writer and a reconciler write the same bytes to the same path.

Some fields have another name in each stage: the replaced file is `base_metadata_location` in the pending receipt, and
`previous_metadata_location` in the committed one. In version 1 it was `base` in both, and the table's uuid was `uuid`;
receipts of that version are never rewritten.
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

MANIFEST_LIST = "manifest_list"
"""The field with the manifest list that the catalog wrote, of a rebased append alone."""

_BASE = {PENDING: "base", COMMITTED: "previous"}
"""The beginning of the names of the fields with the replaced file and its time, by stage."""


def event_id(metadata: MetadataFile, key: str) -> str:
    """Returns the id of a receipt: a ULID of the file's time and the commit key's hash, so that all processes compute
    one id."""
    return ulid_of(metadata.ms, hashlib.sha256(key.encode()).digest()[:10])


def pending(*, entity: str, metadata: MetadataFile, base: MetadataFile | None, details: JsonObject) -> JsonObject:
    """Returns the pending receipt of an attempt that makes `metadata` the current file of an entity, in place of
    `base`, None for a create; also of an earlier commit whose receipt is restored. `details` are the further fields,
    such as the table's uuid and the source, and the author and the request, which only the writer can fill."""
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
    """Returns the committed receipt for a pending one, in the same version: with its type, and from version 2 on with
    the names of the fields about the replaced file in that stage."""
    details: JsonObject = {**receipt, "type": "IcebergCommitCommitted"}
    if receipt.get("version") != VERSION:
        return details
    for name in ("metadata_location", "metadata_ms"):
        details[f"{_BASE[COMMITTED]}_{name}"] = details.pop(f"{_BASE[PENDING]}_{name}", None)
    return details


def uuid_field(kind: str) -> str:
    """Returns the name of a receipt's field with the uuid of the metadata: `table_uuid` or `view_uuid`."""
    return f"{kind}_uuid"


def base_of(receipt: JsonObject) -> MetadataFile | None:
    """Returns the file that the commit replaced, None for a create, from a receipt of either stage and any version.
    Raises `InternalError`."""
    for name in _BASE.values():
        if optional_text(receipt, f"{name}_metadata_location") is not None:
            return MetadataFile(text(receipt, f"{name}_metadata_location"), integer(receipt, f"{name}_metadata_ms"))
    base = mapping(receipt, "base")
    return MetadataFile(text(base, "metadata_location"), integer(base, "metadata_ms")) if base else None


def with_current_names(receipt: JsonObject, stage: Stage) -> JsonObject:
    """Returns a receipt of any version with the names of fields of the current version; one of that version as it is.
    The field with the version stays."""
    if receipt.get("version") == VERSION:
        return receipt
    details = {name: value for name, value in receipt.items() if name not in ("base", "uuid")}
    kind = optional_text(receipt, "entity_type") or "table"
    return {**details, uuid_field(kind): receipt.get("uuid"), **_replaced(stage, base_of(receipt))}


def parse(body: bytes, where: str) -> JsonObject:
    """Reads a stored receipt of any version, without a look at the other fields. Raises `InternalError`, which names
    `where` it is saved, if it is not a JSON object of a known version."""
    return parse_record(body, where, newest=VERSION)


def encode(receipt: JsonObject) -> bytes:
    """Returns the bytes by which a receipt is stored."""
    return dumps(receipt, sort_keys=True)


def _replaced(stage: Stage, base: MetadataFile | None) -> JsonObject:
    """Returns the fields of a receipt of this stage about the replaced metadata file; both are None for a create."""
    return {
        f"{_BASE[stage]}_metadata_location": None if base is None else base.location,
        f"{_BASE[stage]}_metadata_ms": None if base is None else base.ms,
    }
