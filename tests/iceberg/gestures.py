"""What engines do to tables, as updates that mostly can be made.

A gesture is what to do and a number to choose by. It becomes updates only when it meets a table, so that snapshots
are added onto snapshots that are there, columns get ids that are free, and histories grow long.
"""

from collections.abc import Callable

from hypothesis import strategies as st

from tests.iceberg.values import NOW, Json, Object, column, order, set_ref


class Sight:
    """What a client knows of a table, its own updates of this commit included."""

    def __init__(self, table: Object) -> None:
        self.version: int = table["format-version"]
        self.snapshots = [snapshot["snapshot-id"] for snapshot in table["snapshots"]]
        self.main: int | None = table["refs"].get("main", {}).get("snapshot-id")
        self.sequence: int = table.get("last-sequence-number", 0)
        self.next_row: int = table.get("next-row-id", 0)
        self.refs = list(table["refs"])
        self.schemas = [schema["schema-id"] for schema in table["schemas"]]
        self.specs = [spec["spec-id"] for spec in table["partition-specs"]]
        self.orders = [order["order-id"] for order in table["sort-orders"]]
        self.last_column: int = table["last-column-id"]
        current = table["current-schema-id"]
        self.fields = next(schema["fields"] for schema in table["schemas"] if schema["schema-id"] == current)
        self.other_schemas = [schema_id for schema_id in self.schemas if schema_id != current]
        self.other_specs = [spec_id for spec_id in self.specs if spec_id != table["default-spec-id"]]
        self.time: int = max([entry["timestamp-ms"] for entry in table["snapshot-log"][-1:]] + [NOW])


Gesture = tuple[str, int]


def _snapshot(sight: Sight, number: int, *, parent: int | None, sequence: int) -> Object:
    snapshot_id = max([*sight.snapshots, 0]) + 1 + number % 3
    made: Object = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": sight.time + number % 40,
        "manifest-list": f"s3://b/{snapshot_id}",
        "summary": {"operation": "append"},
    }
    if sight.version > 1:
        made["sequence-number"] = sequence
        sight.sequence = max(sight.sequence, sequence)
    if parent is not None:
        made["parent-snapshot-id"] = parent
    if sight.version > 2:
        made |= {"first-row-id": sight.next_row, "added-rows": number}
        sight.next_row += number
    sight.snapshots.append(snapshot_id)
    return {"action": "add-snapshot", "snapshot": made}


def _append(sight: Sight, number: int) -> list[Object]:
    added = _snapshot(sight, number, parent=sight.main, sequence=sight.sequence + 1)
    sight.main = added["snapshot"]["snapshot-id"]
    return [added, set_ref("main", sight.snapshots[-1])]


def _stage(sight: Sight, number: int) -> list[Object]:
    added = _snapshot(sight, number, parent=sight.main, sequence=sight.sequence + 1)
    return [added, set_ref(f"b{number % 2}", sight.snapshots[-1], max_ref_age_ms=number + 1)]


def _replace(sight: Sight, number: int) -> list[Object]:
    added = _snapshot(sight, number, parent=None, sequence=max(0, sight.sequence - number % 3))
    return [{"action": "remove-snapshot-ref", "ref-name": "main"}, added, set_ref("main", sight.snapshots[-1])]


def _chosen(options: list[Json], number: int) -> list[Json]:
    return [options[number % len(options)]] if options else []


def _rollback(sight: Sight, number: int) -> list[Object]:
    return [set_ref("main", snapshot_id) for snapshot_id in _chosen(sight.snapshots, number)]


def _tag(sight: Sight, number: int) -> list[Object]:
    return [set_ref(f"t{number % 2}", snapshot_id, "tag") for snapshot_id in _chosen(sight.snapshots, number)]


def _expire(sight: Sight, number: int) -> list[Object]:
    gone = _chosen(sight.snapshots, number)
    sight.snapshots = [snapshot_id for snapshot_id in sight.snapshots if snapshot_id not in gone]
    return [{"action": "remove-snapshots", "snapshot-ids": gone}]


def _add_column(sight: Sight, number: int) -> list[Object]:
    sight.last_column += 1
    of = ["long", "string", "timestamptz", "decimal(9, 2)"][number % 4]
    sight.fields = [*sight.fields, column(sight.last_column, f"c{sight.last_column}", of)]
    schema = {"type": "struct", "fields": sight.fields}
    return [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]


def _add_spec(sight: Sight, number: int) -> list[Object]:
    source = sight.fields[number % len(sight.fields)]
    transform = ["identity", "bucket[4]", "void"][number % 3]
    fields = [{"source-id": source["id"], "transform": transform, "name": f"p{source['id']}_{number % 3}"}]
    add: Object = {"action": "add-spec", "spec": {"fields": fields if number % 5 else []}}
    return [add, {"action": "set-default-spec", "spec-id": -1}]


def _add_order(sight: Sight, number: int) -> list[Object]:
    sources = [(field["id"], "identity") for field in sight.fields[: number % 3]]
    return [
        {"action": "add-sort-order", "sort-order": order(*sources)},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]


def _statistics(sight: Sight, number: int) -> list[Object]:
    files = [
        {"snapshot-id": snapshot_id, "statistics-path": f"p{number % 2}", "file-size-in-bytes": 1}
        for snapshot_id in _chosen(sight.snapshots, number)
    ]
    puffin = {"file-footer-size-in-bytes": 1, "blob-metadata": []}
    columns: list[Object] = [{"action": "set-statistics", "statistics": file | puffin} for file in files]
    return columns + [{"action": "set-partition-statistics", "partition-statistics": file} for file in files]


Doing = Callable[[Sight, int], list[Object]]


def _one(action: str, field: str, value: Callable[[Sight, int], Json]) -> Doing:
    return lambda sight, number: [{"action": action, field: value(sight, number)}]


def _pick(options: list[Json], number: int) -> Json:
    return options[number % len(options)] if options else 1


def _set(name: Callable[[int], str], text: Callable[[int], str]) -> Doing:
    return _one("set-properties", "updates", lambda _, n: {name(n): text(n)})


_KEY = {"encrypted-key-metadata": "a2V5"}

_DOINGS: dict[str, tuple[int, Doing]] = {
    "append": (6, _append),
    "stage": (2, _stage),
    "replace": (1, _replace),
    "roll back": (2, _rollback),
    "tag": (2, _tag),
    "expire": (2, _expire),
    "drop a ref": (1, _one("remove-snapshot-ref", "ref-name", lambda sight, n: _pick(sight.refs or ["x"], n))),
    "add a column": (2, _add_column),
    "revert the schema": (1, _one("set-current-schema", "schema-id", lambda sight, n: _pick(sight.schemas, n))),
    "prune schemas": (1, _one("remove-schemas", "schema-ids", lambda sight, n: sight.other_schemas[: n % 3])),
    "partition": (2, _add_spec),
    "revert the spec": (1, _one("set-default-spec", "spec-id", lambda sight, n: _pick(sight.specs, n))),
    "prune specs": (1, _one("remove-partition-specs", "spec-ids", lambda sight, n: sight.other_specs[: n % 3])),
    "sort": (2, _add_order),
    "revert the order": (1, _one("set-default-sort-order", "sort-order-id", lambda sight, n: _pick(sight.orders, n))),
    "upgrade": (1, _one("upgrade-format-version", "format-version", lambda sight, n: min(3, sight.version + n % 2))),
    "move": (1, _one("set-location", "location", lambda _, n: f"s3://b/t{n % 2}")),
    "set a property": (1, _set(lambda n: f"a{n % 3}", lambda n: str(n % 2))),
    "limit the log": (1, _set(lambda _: "write.metadata.previous-versions-max", lambda n: str(n % 5 + 1))),
    "remove a property": (1, _one("remove-properties", "removals", lambda _, n: [f"a{n % 3}"])),
    "analyse": (1, _statistics),
    "forget statistics": (1, _one("remove-statistics", "snapshot-id", lambda sight, n: _pick(sight.snapshots, n))),
    "add a key": (1, _one("add-encryption-key", "encryption-key", lambda _, n: {"key-id": f"k{n % 3}", **_KEY})),
    "remove a key": (1, _one("remove-encryption-key", "key-id", lambda _, n: f"k{n % 3}")),
}


def gestures_of(*names: str) -> st.SearchStrategy[list[Gesture]]:
    """What one commit does, of these doings or of all."""
    often = [name for name, (times, _) in _DOINGS.items() for _ in range(times) if not names or name in names]
    return st.lists(st.tuples(st.sampled_from(often), st.integers(0, 60)), min_size=1, max_size=3)


def histories_of(*names: str) -> st.SearchStrategy[list[list[Gesture]]]:
    """What one commit after another does."""
    return st.lists(gestures_of(*names), min_size=1, max_size=25)


def updates_of(table: Object, doings: list[Gesture]) -> list[Object]:
    """The updates that do it to this table."""
    sight = Sight(table)
    return [update for name, number in doings for update in _DOINGS[name][1](sight, number)]
