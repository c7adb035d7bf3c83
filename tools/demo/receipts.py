"""The last step of the demo: compares the commits in each table's receipts with the table's own history."""

import asyncio
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from arco_catalog.state.paths import Paths
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import Found
from storage_backends.open import open_store
from tools.demo.checks import Mismatch
from tools.demo.lake import Lake
from tools.demo.server import WAREHOUSE, Server

LOOKS = 200
Receipt = dict[str, Any]  # as `arco receipts --json` prints it


def list_commits(server: Server, lake: Lake) -> dict[str, list[str]]:
    """For every table one line a commit, oldest first. Raises `Mismatch` unless each metadata file that was ever
    current has exactly one committed receipt, in the output of `arco receipts` and in the store, and no other file has
    any.
    """
    told: dict[str, list[Receipt]] = {table: json.loads(server.receipts(table)) for table in sorted(lake.expected)}
    current: dict[str, list[str]] = {}
    for table in told:
        loaded = lake.pyiceberg.load_table(table)
        current[table] = [*(entry.metadata_file for entry in loaded.metadata.metadata_log), loaded.metadata_location]
    numbers = {told[table][0]["entity"]: len(files) for table, files in current.items()}
    stored = asyncio.run(stored_receipts(server.store, numbers))
    commits = {}
    for table, receipts in told.items():
        compare(f"arco receipts {table}", _locations(receipts), current[table])
        compare(f"receipts of {table} in the store", stored[receipts[0]["entity"]], current[table])
        commits[table] = [describe(receipt) for receipt in reversed(receipts)]
    return commits


def compare(what: str, receipts: Counter[str], current: Iterable[str]) -> None:
    """Raises `Mismatch` unless the metadata files with receipts are those that were current, each once."""
    files = Counter(current)
    if receipts != files:
        raise Mismatch(
            f"{what}: {files.total()} metadata files became current, {receipts.total()} have a committed receipt; "
            f"without one: {sorted(files - receipts)}, too many: {sorted(receipts - files)}"
        )


def describe(receipt: Receipt) -> str:
    """One line: when, what was changed, the metadata file."""
    when = datetime.fromtimestamp(receipt["metadata_ms"] / 1000, UTC).isoformat(" ", "milliseconds")
    kinds: Counter[str] = Counter(receipt["updates"])
    what = ", ".join(f"{times} {kind}" if times > 1 else kind for kind, times in kinds.items())
    if receipt.get("previous_metadata_location", receipt.get("base_metadata_location")) is None:
        what = "create"
    return f"{when}  {receipt['metadata_location'].rpartition('/')[2]}  {what}"


async def stored_receipts(url: str, numbers: Mapping[str, int]) -> defaultdict[str, Counter[str]]:
    """The metadata locations of all committed receipts in a store, by entity: found by looking, not by the catalog.
    Lists again, up to `LOOKS` times, until entities have as many as in `numbers`: a server writes them after it has
    answered."""
    runtime = SystemRuntime()
    for _ in range(LOOKS):
        found = await _committed(url)
        if all(found[entity].total() >= number for entity, number in numbers.items()):
            break
        await runtime.sleep(0.1)
    return found


async def _committed(url: str) -> defaultdict[str, Counter[str]]:
    store = open_store(url, os.environ)
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    try:
        after = None
        while True:
            page = await store.list(Paths(WAREHOUSE).events, after)
            committed = (entry.key for entry in page.entries if "/iceberg/committed/" in entry.key)
            for answer in await asyncio.gather(*map(store.get, committed)):
                if isinstance(answer, Found):
                    receipt = json.loads(answer.body)
                    found[receipt["entity"]][receipt["metadata_location"]] += 1
            if (after := page.after) is None:
                return found
    finally:
        await store.close()


def _locations(receipts: Iterable[Receipt]) -> Counter[str]:
    return Counter(receipt["metadata_location"] for receipt in receipts if receipt["state"] == "committed")
