"""The last word: each table's commits, as its receipts tell them, against the table's own history."""

import json
from collections import Counter

from demo.checks import Mismatch
from demo.lake import Lake
from demo.server import Server


def list_commits(server: Server, lake: Lake, table: str) -> list[str]:
    """One line a commit, oldest first. Raises `Mismatch` unless every metadata file that was ever current has exactly
    one committed receipt, and no other file has any."""
    found = list(reversed(json.loads(server.receipts(table))))
    counted = Counter(receipt["metadata_location"] for receipt in found if receipt["state"] == "committed")
    loaded = lake.pyiceberg.load_table(table)
    current = [entry.metadata_file for entry in loaded.metadata.metadata_log] + [loaded.metadata_location]
    if counted != Counter(current):
        raise Mismatch(
            f"{table}: {len(current)} metadata files became current and {counted.total()} receipts are committed; "
            f"without a receipt: {sorted(set(current) - set(counted))}, "
            f"with one and never current: {sorted(set(counted) - set(current))}, "
            f"with several: {sorted(location for location, times in counted.items() if times > 1)}, "
            f"pending: {sum(receipt['state'] != 'committed' for receipt in found)}"
        )
    return [str(receipt) for receipt in found]
