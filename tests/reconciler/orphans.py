"""Objects that no live record leads to, of all kinds that a collection deletes."""

import os
from collections.abc import Iterator

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.state import receipt
from arco_catalog.state.marker import Slot, WriteSet
from arco_catalog.state.paths import Paths, commit_key
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.state.transaction import Decision, encode
from tests.reconciler.lakes import WAREHOUSE

PATHS = Paths(WAREHOUSE)


def orphans(count: int, tables: list[tuple[str, str]], runtime: SystemRuntime) -> Iterator[tuple[str, bytes]]:
    """Objects that a collection deletes: of a hundred, 76 are of lost tries, 16 of markers, and two each are decisions,
    pointers, commits and hints."""
    long_ago = runtime.now_ms() - 30 * DAY_MS
    for number in range(count // 100):
        entity, folder = tables[number % len(tables)]
        for _ in range(38):
            file = MetadataFile(f"{folder}/00001-{runtime.uuid()}.metadata.json", long_ago)
            key = commit_key(entity, file.location)
            details: JsonObject = {"attempt": runtime.ulid(), "principal": "bench", "source": {"kind": "Bench"}}
            announced = receipt.pending(entity=entity, metadata=file, base=None, details=details)
            yield file.location, b"{}"
            yield PATHS.receipt(receipt.PENDING, key, file.ms), receipt.encode(announced)
        for place in range(8):
            name = os.urandom(32).hex()
            attempt = runtime.ulid()
            yield PATHS.marker_slot(name, 0), Slot(attempt, WriteSet({entity: 1}), {"method": "POST"}, None).body
            answer: JsonObject = {"status": 200, "body": None}
            yield PATHS.marker_slot(name, 1), Slot(attempt, WriteSet(), {}, answer if place else None).body
        for _ in range(2):
            transaction = runtime.ulid()
            closed = Decision.closed(transaction=transaction, move=runtime.ulid())
            yield PATHS.transaction(transaction), encode(closed.document)
            stray = runtime.ulid()
            first = MetadataFile(f"{folder}/00000-{runtime.uuid()}.metadata.json", long_ago)
            pointer = Pointer.first(entity=stray, kind="table", move=runtime.ulid(), metadata=first, summary={})
            yield PATHS.pointer(stray), pointer.body
            yield PATHS.registry_commit(runtime.ulid()), b'{"version":1}'
            yield PATHS.open_task(runtime.uuid(), long_ago), b""
