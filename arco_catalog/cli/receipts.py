"""`arco receipts`: a table's commits, read from the store alone. No server is asked, and nothing is written."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from arco_catalog.cli.failure import Failure
from arco_catalog.cli.identifiers import parse_identifier
from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.call import Call
from arco_catalog.operations.catalog import Settings
from arco_catalog.operations.open import build_catalog
from arco_catalog.operations.receipts import receipts
from arco_catalog.state.index import Namespace
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import StoreError
from storage_backends.open import open_store

PATIENCE_MS = 10 * 60 * 1000
HEADINGS = ("TIME (UTC)", "SNAPSHOT", "CHANGES", "BY", "STATE", "METADATA FILE")


def run(url: str, warehouse: str, table: str, *, as_json: bool) -> int:
    """Prints a table's commits, newest first. Raises `Failure`."""
    namespace, name = parse_identifier(table)
    try:
        found = asyncio.run(read(url, warehouse, namespace, name))
    except (CatalogError, StoreError, ValueError, OSError) as error:
        raise Failure(str(error)) from error
    print(json.dumps(found, indent=2, ensure_ascii=False) if as_json else as_table(found))
    return 0


async def read(url: str, warehouse: str, namespace: Namespace, name: str) -> list[JsonObject]:
    """The receipts of a table's commits."""
    store, runtime = open_store(url), SystemRuntime()
    try:
        catalog = build_catalog(Settings(warehouse), store, url, (), runtime)
        source: JsonObject = {"kind": "Cli"}
        call = Call("GET", "receipts", "", None, "operator", source, runtime.now_ms() + PATIENCE_MS)
        return await receipts(catalog.session(call), namespace, name)
    finally:
        await store.close()


def as_table(found: Sequence[JsonObject]) -> str:
    """One line a commit, under headings, in columns."""
    if not found:
        return "No commits were made through this catalog."
    lines = [HEADINGS, *map(_columns, found)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _columns(receipt: JsonObject) -> tuple[str, ...]:
    return (
        _time(receipt.get("metadata_ms")),
        _text(receipt.get("snapshot_id")),
        _changes(receipt),
        _by(receipt),
        _text(receipt.get("state")),
        _text(receipt.get("metadata_location")),
    )


def _time(ms: JsonValue) -> str:
    if not isinstance(ms, int):
        return "-"
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _changes(receipt: JsonObject) -> str:
    updates = receipt.get("updates")
    kinds = Counter(map(str, updates if isinstance(updates, list) else []))
    told = [kind if times == 1 else f"{times} {kind}" for kind, times in kinds.items()]
    return ", ".join(["create", *told] if receipt.get("base") is None else told) or "-"


def _by(receipt: JsonObject) -> str:
    source = receipt.get("source")
    client = source.get("client") if isinstance(source, dict) else None
    principal = _text(receipt.get("principal"))
    return f"{principal} ({client})" if isinstance(client, str) else principal


def _text(value: JsonValue) -> str:
    return "-" if value is None else str(value)
