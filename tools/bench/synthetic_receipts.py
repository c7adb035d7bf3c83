"""A store with receipts and metadata files that are made when they are read, over another that has the rest."""

import hashlib
import json
import os
from collections.abc import Sequence
from datetime import date

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.paths import Paths
from arco_catalog.state.receipt import COMMITTED, VERSION
from arco_catalog.state.runtime import SystemRuntime, ulid_of
from storage_backends import (
    ANY,
    Cursor,
    Deleted,
    Found,
    Listed,
    Missing,
    ObjectStore,
    Outcome,
    Page,
    Unchanged,
    Version,
    When,
)
from storage_backends.open import open_store
from tools.demo.server import WAREHOUSE

COUNT = "ARCO_BENCH_RECEIPTS"
"""The variable that says how many there are."""
TABLES = 100
KEPT = 10
"""Snapshots that a table keeps: the commits before that expired theirs."""
DAY, BEGAN_MS, DAY_MS = date(2026, 1, 2), 1_767_312_000_000, 86_400_000
PATHS = Paths(WAREHOUSE)
RECEIPTS = PATHS.receipts_of_day(COMMITTED, DAY)
TABLE_FILES = f"{PATHS.warehouse}/bench/"
PAGE = 1_000
VERSION_OF_ALL = Version("1")


def open_synthetic(url: str) -> ObjectStore:
    """Opens it over the store at a URL, in whatever process."""
    return SyntheticReceipts(open_store(url, os.environ), url.removeprefix("file:"), int(os.environ[COUNT]))


class SyntheticReceipts:
    """Commits from 0 on, of tables in turn, spread over one day."""

    def __init__(self, inner: ObjectStore, folder: str, count: int) -> None:
        self._inner = inner
        self._files = f"file://{folder}/{TABLE_FILES}"
        self._count = count
        self._runtime = SystemRuntime()

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """See `ObjectStore.get`."""
        if key.startswith(RECEIPTS):
            return Found(
                self._receipt(int(key[len(RECEIPTS) :][:8], 16)), VERSION_OF_ALL, BEGAN_MS, self._runtime.now_ms()
            )
        if key.startswith(TABLE_FILES):
            return Found(
                self._metadata(int(key.rpartition("/")[2].partition(".")[0])),
                VERSION_OF_ALL,
                BEGAN_MS,
                self._runtime.now_ms(),
            )
        return await self._inner.get(key, if_changed_from)

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """See `ObjectStore.get_range`."""
        return await self._inner.get_range(key, start, length)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """See `ObjectStore.put`."""
        return await self._inner.put(key, body, when)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """See `ObjectStore.delete`."""
        return await self._inner.delete(key, when)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """See `ObjectStore.delete_many`."""
        return await self._inner.delete_many(keys)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """See `ObjectStore.list`. Of receipts these alone."""
        if prefix not in (PATHS.events, RECEIPTS):
            return await self._inner.list(prefix, after)
        start = int(after or 0)
        end = min(start + PAGE, self._count)
        entries = [
            Listed(f"{RECEIPTS}{name(number)}.json", VERSION_OF_ALL, 1_000, BEGAN_MS) for number in range(start, end)
        ]
        return Page(entries, Cursor(str(end)) if end < self._count else None, self._runtime.now_ms())

    async def close(self) -> None:
        """See `ObjectStore.close`."""
        await self._inner.close()

    def _receipt(self, number: int) -> bytes:
        table, before = number % TABLES, number - TABLES
        said: JsonObject = {
            "version": VERSION,
            "type": "IcebergCommitCommitted",
            "event_id": ulid_of(self._ms(number), number.to_bytes(10, "big")),
            "commit_key": name(number),
            "entity": entity(table),
            "entity_type": "table",
            "table_uuid": f"00000000-0000-4000-8000-{table:012}",
            "namespace": ["bench"],
            "name": f"t{table}",
            "metadata_location": self._location(number),
            "metadata_ms": self._ms(number),
            "previous_metadata_location": None if before < 0 else self._location(before),
            "previous_metadata_ms": None if before < 0 else self._ms(before),
            "snapshot_id": number + 1,
            "added_snapshot_ids": [number + 1],
            "requirements": ["assert-ref-snapshot-id", "assert-table-uuid"],
            "updates": ["add-snapshot", "set-snapshot-ref"],
            "principal": f"writer-{number % 7}",
            "engine": "spark/4.1.0",
            "attempt": ulid_of(self._ms(number), number.to_bytes(10, "little")),
            "source": {"kind": "IcebergRest", "client_info": "Apache-Spark/4.1 Iceberg/1.11", "principal": "writer"},
            "request": {"method": "POST", "path": f"/v1/demo/namespaces/bench/tables/t{table}"},
        }
        return dumps(said, sort_keys=True)

    def _metadata(self, number: int) -> bytes:
        table = number % TABLES
        kept = [each for each in range(number, number - KEPT * TABLES, -TABLES) if each >= 0]
        said: JsonObject = {
            "format-version": 2,
            "table-uuid": f"00000000-0000-4000-8000-{table:012}",
            "location": f"{self._files}t{table}",
            "last-sequence-number": number // TABLES + 1,
            "last-updated-ms": self._ms(number),
            "last-column-id": 2,
            "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": [_FIELD]}],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "last-partition-id": 999,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {"write.parquet.compression-codec": "zstd"},
            "current-snapshot-id": number + 1,
            "refs": {"main": {"type": "branch", "snapshot-id": number + 1}},
            "snapshots": [self._snapshot(each) for each in reversed(kept)],
            "snapshot-log": [],
            "metadata-log": [],
        }
        return json.dumps(said).encode()

    def _snapshot(self, number: int) -> JsonObject:
        return {
            "snapshot-id": number + 1,
            "sequence-number": number // TABLES + 1,
            "timestamp-ms": self._ms(number),
            "manifests": [],
            "schema-id": 0,
            "summary": {
                "operation": "append",
                "added-data-files": "4",
                "added-records": "1000",
                "added-files-size": "100000",
                "total-records": str(number * 1_000),
                "total-data-files": str(number * 4),
                "total-files-size": str(number * 100_000),
            },
        }

    def _location(self, number: int) -> str:
        return f"{self._files}t{number % TABLES}/metadata/{number}.metadata.json"

    def _ms(self, number: int) -> int:
        return BEGAN_MS + number * DAY_MS // self._count


_FIELD: JsonObject = {"id": 1, "name": "id", "type": "long", "required": False}


def name(number: int) -> str:
    """A commit key from which the commit is known again, which looks like a hash behind that."""
    return f"{number:08x}{hashlib.sha256(str(number).encode()).hexdigest()[:56]}"


def entity(table: int) -> str:
    """The id of a table."""
    return ulid_of(BEGAN_MS, table.to_bytes(10, "big"))
