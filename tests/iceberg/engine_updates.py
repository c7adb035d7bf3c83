"""What engines do to tables, as updates that mostly can be made.

A step is a kind of change and a number to choose by. It becomes updates only when it is applied to a table, so that
snapshots are added onto existing ones, columns get free ids, and histories grow long.
"""

from collections.abc import Callable

from hypothesis import strategies as st

from tests.iceberg.values import NOW, Json, Object, column, order, set_ref


class KnownTable:
    """What a client knows of a table, including its own updates of this commit."""

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


Step = tuple[str, int]


def _snapshot(known: KnownTable, number: int, *, parent: int | None, sequence: int) -> Object:
    snapshot_id = max([*known.snapshots, 0]) + 1 + number % 3
    made: Object = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": known.time + number % 40,
        "manifest-list": f"s3://b/{snapshot_id}",
        "summary": {"operation": "append"},
    }
    if known.version > 1:
        made["sequence-number"] = sequence
        known.sequence = max(known.sequence, sequence)
    if parent is not None:
        made["parent-snapshot-id"] = parent
    if known.version > 2:
        made |= {"first-row-id": known.next_row, "added-rows": number}
        known.next_row += number
    known.snapshots.append(snapshot_id)
    return {"action": "add-snapshot", "snapshot": made}


def _append(known: KnownTable, number: int) -> list[Object]:
    added = _snapshot(known, number, parent=known.main, sequence=known.sequence + 1)
    known.main = added["snapshot"]["snapshot-id"]
    return [added, set_ref("main", known.snapshots[-1])]


def _stage(known: KnownTable, number: int) -> list[Object]:
    added = _snapshot(known, number, parent=known.main, sequence=known.sequence + 1)
    return [added, set_ref(f"b{number % 2}", known.snapshots[-1], max_ref_age_ms=number + 1)]


def _replace(known: KnownTable, number: int) -> list[Object]:
    added = _snapshot(known, number, parent=None, sequence=max(0, known.sequence - number % 3))
    return [{"action": "remove-snapshot-ref", "ref-name": "main"}, added, set_ref("main", known.snapshots[-1])]


def _chosen(options: list[Json], number: int) -> list[Json]:
    return [options[number % len(options)]] if options else []


def _rollback(known: KnownTable, number: int) -> list[Object]:
    return [set_ref("main", snapshot_id) for snapshot_id in _chosen(known.snapshots, number)]


def _tag(known: KnownTable, number: int) -> list[Object]:
    return [set_ref(f"t{number % 2}", snapshot_id, "tag") for snapshot_id in _chosen(known.snapshots, number)]


def _expire(known: KnownTable, number: int) -> list[Object]:
    gone = _chosen(known.snapshots, number)
    known.snapshots = [snapshot_id for snapshot_id in known.snapshots if snapshot_id not in gone]
    return [{"action": "remove-snapshots", "snapshot-ids": gone}]


def _add_column(known: KnownTable, number: int) -> list[Object]:
    known.last_column += 1
    of = ["long", "string", "timestamptz", "decimal(9, 2)"][number % 4]
    known.fields = [*known.fields, column(known.last_column, f"c{known.last_column}", of)]
    schema = {"type": "struct", "fields": known.fields}
    return [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]


def _add_spec(known: KnownTable, number: int) -> list[Object]:
    source = known.fields[number % len(known.fields)]
    transform = ["identity", "bucket[4]", "void"][number % 3]
    fields = [{"source-id": source["id"], "transform": transform, "name": f"p{source['id']}_{number % 3}"}]
    add: Object = {"action": "add-spec", "spec": {"fields": fields if number % 5 else []}}
    return [add, {"action": "set-default-spec", "spec-id": -1}]


def _add_order(known: KnownTable, number: int) -> list[Object]:
    sources = [(field["id"], "identity") for field in known.fields[: number % 3]]
    return [
        {"action": "add-sort-order", "sort-order": order(*sources)},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]


def _statistics(known: KnownTable, number: int) -> list[Object]:
    files = [
        {"snapshot-id": snapshot_id, "statistics-path": f"p{number % 2}", "file-size-in-bytes": 1}
        for snapshot_id in _chosen(known.snapshots, number)
    ]
    puffin = {"file-footer-size-in-bytes": 1, "blob-metadata": []}
    columns: list[Object] = [{"action": "set-statistics", "statistics": file | puffin} for file in files]
    return columns + [{"action": "set-partition-statistics", "partition-statistics": file} for file in files]


MakeUpdates = Callable[[KnownTable, int], list[Object]]


def _one(action: str, field: str, value: Callable[[KnownTable, int], Json]) -> MakeUpdates:
    return lambda known, number: [{"action": action, field: value(known, number)}]


def _pick(options: list[Json], number: int) -> Json:
    return options[number % len(options)] if options else 1


def _set(name: Callable[[int], str], text: Callable[[int], str]) -> MakeUpdates:
    return _one("set-properties", "updates", lambda _, n: {name(n): text(n)})


_KEY = {"encrypted-key-metadata": "a2V5"}

_KINDS: dict[str, tuple[int, MakeUpdates]] = {
    "append": (6, _append),
    "stage": (2, _stage),
    "replace": (1, _replace),
    "roll back": (2, _rollback),
    "tag": (2, _tag),
    "expire": (2, _expire),
    "drop a ref": (1, _one("remove-snapshot-ref", "ref-name", lambda known, n: _pick(known.refs or ["x"], n))),
    "add a column": (2, _add_column),
    "revert the schema": (1, _one("set-current-schema", "schema-id", lambda known, n: _pick(known.schemas, n))),
    "prune schemas": (1, _one("remove-schemas", "schema-ids", lambda known, n: known.other_schemas[: n % 3])),
    "partition": (2, _add_spec),
    "revert the spec": (1, _one("set-default-spec", "spec-id", lambda known, n: _pick(known.specs, n))),
    "prune specs": (1, _one("remove-partition-specs", "spec-ids", lambda known, n: known.other_specs[: n % 3])),
    "sort": (2, _add_order),
    "revert the order": (1, _one("set-default-sort-order", "sort-order-id", lambda known, n: _pick(known.orders, n))),
    "upgrade": (1, _one("upgrade-format-version", "format-version", lambda known, n: min(3, known.version + n % 2))),
    "move": (1, _one("set-location", "location", lambda _, n: f"s3://b/t{n % 2}")),
    "set a property": (1, _set(lambda n: f"a{n % 3}", lambda n: str(n % 2))),
    "limit the log": (1, _set(lambda _: "write.metadata.previous-versions-max", lambda n: str(n % 5 + 1))),
    "remove a property": (1, _one("remove-properties", "removals", lambda _, n: [f"a{n % 3}"])),
    "analyse": (1, _statistics),
    "forget statistics": (1, _one("remove-statistics", "snapshot-id", lambda known, n: _pick(known.snapshots, n))),
    "add a key": (1, _one("add-encryption-key", "encryption-key", lambda _, n: {"key-id": f"k{n % 3}", **_KEY})),
    "remove a key": (1, _one("remove-encryption-key", "key-id", lambda _, n: f"k{n % 3}")),
}


def steps_of(*names: str) -> st.SearchStrategy[list[Step]]:
    """What one commit does, of these chosen or of all."""
    often = [name for name, (times, _) in _KINDS.items() for _ in range(times) if not names or name in names]
    return st.lists(st.tuples(st.sampled_from(often), st.integers(0, 60)), min_size=1, max_size=3)


def histories_of(*names: str) -> st.SearchStrategy[list[list[Step]]]:
    """What one commit after another does."""
    return st.lists(steps_of(*names), min_size=1, max_size=25)


def updates_of(table: Object, chosen: list[Step]) -> list[Object]:
    """The updates that do it to this table."""
    known = KnownTable(table)
    return [update for name, number in chosen for update in _KINDS[name][1](known, number)]
