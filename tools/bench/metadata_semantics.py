"""Milliseconds of CPU that table metadata costs, by number of snapshots: `python -m tools.bench.metadata_semantics`.

The JSON columns are what any commit pays for reading and writing the document; the others are what the semantics add.
"""

import time
from collections.abc import Callable

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.iceberg.table import (
    apply_commit,
    check_registered,
    new_table_metadata,
    parse_commit,
    parse_create_table,
    visible_snapshots_only,
)

NOW = 1_700_000_000_000
ROUNDS = 7


LOCATION = "s3://bucket/warehouse/table"


def snapshot(snapshot_id: int, location: str = LOCATION) -> JsonObject:
    """One snapshot as Spark writes it, in size too, of a table at a location."""
    return {
        "snapshot-id": 4_000_000_000_000_000_000 + snapshot_id,
        "sequence-number": snapshot_id,
        "timestamp-ms": NOW + snapshot_id,
        "manifest-list": f"{location}/metadata/snap-{snapshot_id}-1-0190c8de-6a3c-7e55-9cba.avro",
        "schema-id": 0,
        "summary": {
            "operation": "append",
            "spark.app.id": "local-1700000000000",
            "added-data-files": "1",
            "added-records": "1000",
            "added-files-size": "104857",
            "total-records": str(1000 * snapshot_id),
            "total-data-files": str(snapshot_id),
            "engine-name": "spark",
            "iceberg-version": "Apache Iceberg 1.11.0",
        },
    }


def table(snapshots: int, location: str = LOCATION) -> JsonObject:
    """A table at a location with that many snapshots, each of which was main once."""
    columns: list[JsonValue] = [
        {"id": column, "name": f"c{column}", "type": "long", "required": False} for column in range(1, 21)
    ]
    request = parse_create_table({"name": "t", "schema": {"type": "struct", "fields": columns}})
    uuid = "0190c8de-6a3c-7e55-9cba-3a4b9a2f1c01"
    document = new_table_metadata(request, location=location, table_uuid=uuid, now_ms=NOW)
    made = [snapshot(snapshot_id, location) for snapshot_id in range(1, snapshots + 1)]
    newest = made[-1]["snapshot-id"]
    return document | {
        "snapshots": list(made),
        "snapshot-log": [{"timestamp-ms": one["timestamp-ms"], "snapshot-id": one["snapshot-id"]} for one in made],
        "refs": {"main": {"type": "branch", "snapshot-id": newest}},
        "current-snapshot-id": newest,
        "last-sequence-number": snapshots,
        "last-updated-ms": NOW + snapshots,
    }


def best_ms(work: Callable[[], object]) -> float:
    """The fastest of some rounds, in milliseconds of this thread's CPU."""
    times = []
    for _ in range(ROUNDS):
        start = time.thread_time_ns()
        result = work()
        times.append((time.thread_time_ns() - start) / 1e6)
        del result
    return min(times)


def measure(snapshots: int) -> dict[str, float]:
    """What each step costs on a table of that many snapshots."""
    document = table(snapshots)
    body = dumps(document)
    added = snapshot(snapshots + 1)
    main: JsonObject = {
        "action": "set-snapshot-ref",
        "ref-name": "main",
        "type": "branch",
        "snapshot-id": added["snapshot-id"],
    }
    append = parse_commit({"updates": [{"action": "add-snapshot", "snapshot": added}, main]})
    oldest = [snapshot(one)["snapshot-id"] for one in range(1, snapshots // 2)]
    expire = parse_commit({"updates": [{"action": "remove-snapshots", "snapshot-ids": [one]} for one in oldest]})

    def applied(commit: object) -> object:
        return apply_commit(
            document,
            expire if commit is expire else append,
            now_ms=NOW,
            base_location="s3://bucket/m.json",
            name="t",
        )

    return {
        "JSON parse": best_ms(lambda: loads(body)),
        "JSON dump": best_ms(lambda: dumps(document)),
        "append": best_ms(lambda: applied(append)),
        "expire half": best_ms(lambda: applied(expire)),
        "refs only": best_ms(lambda: visible_snapshots_only(document)),
        "register": best_ms(lambda: check_registered(document)),
    }


def main() -> None:
    """Prints the table."""
    rows = {snapshots: measure(snapshots) for snapshots in (100, 1_000, 10_000)}
    steps = list(rows[100])
    print("snapshots".rjust(10), *(step.rjust(12) for step in steps))
    for snapshots, costs in rows.items():
        print(f"{snapshots:10,}", *(f"{costs[step]:12.2f}" for step in steps))


if __name__ == "__main__":
    main()
