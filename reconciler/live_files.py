"""Reads the live files of a snapshot, which are the files that it has not removed, from the manifests. Also defines
which data files are small."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.avro import Composite, Fields, read_blocks
from reconciler.compact.values import object_of, text_of, texts_of

TARGET_BYTES: Final = 512 << 20
"""The target size of data files of a table without the property `write.target-file-size-bytes`: Iceberg's default."""
SMALL: Final = 0.75
"""The share of the target size below which a file is small, as in Iceberg's `rewrite_data_files`."""
LIST_FIELDS: Fields = {
    **{"manifest_path": None, "manifest_length": None, "content": None},
    **{"partition_spec_id": None, "sequence_number": None},
}
"""The fields that are read from an entry of a manifest list."""
ENTRY_FIELDS: Fields = {
    "status": None,
    "data_file": {
        "content": None,
        "file_format": None,
        "partition": Composite.RECORD,
        "record_count": None,
        "file_size_in_bytes": None,
    },
}
DELETED = 2
"""The status of an entry of a file that the snapshot has removed."""


async def manifests_in(session: Session, snapshot: JsonObject) -> Sequence[JsonObject]:
    """Returns the entries of a snapshot's manifest list, with the fields `LIST_FIELDS`. For a v1 snapshot without a
    manifest list, returns its manifests as entries that have only `manifest_path`. Raises `Refusal`, `Unreadable` and
    `StoreError`."""
    where = text_of(snapshot.get("manifest-list"))
    if where is None:
        return [{"manifest_path": path} for path in texts_of(snapshot.get("manifests"))]
    async with aclosing(_records(session, where, LIST_FIELDS)) as listed:
        return [each async for each in listed]


async def live_files(session: Session, manifest: str) -> AsyncGenerator[JsonObject, None]:
    """Iterates over the live files in a manifest: the field `data_file` of each entry with a live file, with
    `ENTRY_FIELDS`. Raises `Refusal` or `Unreadable` if the manifest can't be read, and `StoreError`."""
    async with aclosing(live_entries(session, manifest, ENTRY_FIELDS)) as entries:
        async for entry in entries:
            yield object_of(entry.get("data_file"))


async def live_entries(session: Session, manifest: str, fields: Fields) -> AsyncGenerator[JsonObject, None]:
    """Iterates over the entries of a manifest with live files, with `fields`, which must include `status`. Raises
    `Refusal` or `Unreadable` if the manifest can't be read, and `StoreError`."""
    async with aclosing(_records(session, manifest, fields)) as entries:
        async for entry in entries:
            if live_file(entry) is not None:
                yield entry


def live_file(entry: JsonObject) -> JsonObject | None:
    """Returns the field `data_file` of a manifest entry, which describes a data file or a delete file; None if the
    entry is of a file that the snapshot has removed."""
    return None if entry.get("status") == DELETED else object_of(entry.get("data_file"))


async def _records(session: Session, location: str, fields: Fields) -> AsyncGenerator[JsonObject, None]:
    """Iterates over the records of the Avro file at `location`, with only these fields."""

    async def read(start: int, length: int) -> bytes:
        return (await session.files.read_range(location, start, length)).body

    async with aclosing(read_blocks(read, fields)) as blocks:
        async for block in blocks:
            for record in block:
                yield record
