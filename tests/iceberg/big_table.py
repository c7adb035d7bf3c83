"""A table and a view that are large in every dimension, and commits of many updates that meet it."""

from collections.abc import Callable

from tests.iceberg.values import LOCATION, NOW, UUID, Json, Object, column, set_ref

KEY = "a2V5"


def schema_of(schema_id: int, columns: int, tag: str = "c") -> Object:
    return {
        "type": "struct",
        "schema-id": schema_id,
        "fields": [column(number + 1, f"{tag}{number}") for number in range(columns)],
    }


def snapshot(number: int) -> Object:
    return {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": NOW,
        "manifest-list": f"file:///w/{number}",
        "summary": {"operation": "append"},
    }


def spec_fields(number: int) -> list[Object]:
    return [{"source-id": 1, "transform": f"bucket[{number + 1}]", "name": f"p{number}"}]


def order_fields(number: int) -> list[Object]:
    return [{"source-id": 1, "transform": f"bucket[{number + 1}]", "direction": "asc", "null-order": "nulls-first"}]


def statistics(number: int) -> Object:
    return {
        "snapshot-id": number,
        "statistics-path": f"file:///w/{number}.puffin",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }


def big_table(size: int) -> Object:
    """`size` of everything: columns in two schemas, schemas of sizes that differ, specs, orders, snapshots, refs (one
    with as many unknown fields), properties, keys, statistics, log entries, and a long uuid."""
    wide = [schema_of(0, size), schema_of(1, size, "d")]
    narrow = [schema_of(number, 1 + number % 2, f"n{number}_") for number in range(2, size + 2)]
    refs: Object = {
        f"r{number}": {"snapshot-id": 1 + number % size, "type": "tag", "x": number} for number in range(size)
    }
    refs["main"] = {"snapshot-id": 1, "type": "branch", **{f"x{number}": number for number in range(size)}}
    return {
        "format-version": 2,
        "table-uuid": UUID + "-" * size,
        "location": LOCATION,
        "last-sequence-number": size,
        "last-updated-ms": NOW,
        "last-column-id": size,
        "schemas": [*wide, *narrow],
        "current-schema-id": 0,
        "partition-specs": [
            {"spec-id": number, "fields": [{**field, "field-id": 1000 + number} for field in spec_fields(number)]}
            for number in range(size)
        ],
        "default-spec-id": 0,
        "last-partition-id": 1000 + size,
        "sort-orders": [{"order-id": number + 1, "fields": order_fields(number)} for number in range(size)],
        "default-sort-order-id": 1,
        "properties": {f"p{number}": "v" for number in range(size)},
        "current-snapshot-id": 1,
        "snapshots": [snapshot(number + 1) for number in range(size)],
        "refs": refs,
        "statistics": [statistics(number + 1) for number in range(size)],
        "partition-statistics": [statistics(number + 1) for number in range(size)],
        "snapshot-log": [{"timestamp-ms": NOW, "snapshot-id": 1} for number in range(size)],
        "metadata-log": [{"timestamp-ms": NOW, "metadata-file": f"file:///w/{number}"} for number in range(size)],
        "encryption-keys": [{"key-id": f"k{number}", "encrypted-key-metadata": KEY} for number in range(size)],
    }


def _update(action: str, **fields: Json) -> Object:
    return {"action": action, **{name.replace("_", "-"): value for name, value in fields.items()}}


UPDATES: dict[str, Callable[[int, int], list[Object]]] = {
    "assign-uuid": lambda size, _: [_update("assign-uuid", uuid=UUID)] if size < 0 else [],
    "upgrade-format-version": lambda _, __: [_update("upgrade-format-version", format_version=2)],
    "add-schema": lambda _, n: [_update("add-schema", schema={**schema_of(0, 1 + n % 2, f"new{n}_")})],
    "add-schema, known": lambda _, n: [_update("add-schema", schema=schema_of(0, 1 + (n + 2) % 2, f"n{n + 2}_"))],
    "set-current-schema": lambda _, n: [_update("set-current-schema", schema_id=n % 2)],
    "set-current-schema, add-spec": lambda _, n: [
        _update("set-current-schema", schema_id=n % 2),
        _update("add-spec", spec={"fields": [{"source-id": 1, "transform": f"truncate[{n + 1}]", "name": f"q{n}"}]}),
    ],
    "set-current-schema, add-sort-order": lambda _, n: [
        _update("set-current-schema", schema_id=n % 2),
        _update(
            "add-sort-order",
            sort_order={"order-id": 1, "fields": [{**order_fields(n)[0], "transform": f"truncate[{n + 1}]"}]},
        ),
    ],
    "remove-schemas": lambda size, n: [_update("remove-schemas", schema_ids=[size + 1 - n])] if n < size - 1 else [],
    "remove-schemas, add-schema": lambda size, n: [
        _update("remove-schemas", schema_ids=[size + 1 - n]),
        _update("add-schema", schema=schema_of(0, 1, f"new{n}_")),
    ],
    "add-spec": lambda _, n: [_update("add-spec", spec={"fields": [*spec_fields(n), *spec_fields(n + 1)]})],
    "set-default-spec": lambda size, n: [_update("set-default-spec", spec_id=n % size)],
    "remove-partition-specs": lambda size, n: (
        [_update("remove-partition-specs", spec_ids=[size - 1 - n])] if n < size - 1 else []
    ),
    "add-sort-order": lambda _, n: [
        _update("add-sort-order", sort_order={"order-id": 1, "fields": [*order_fields(n), *order_fields(n + 1)]})
    ],
    "set-default-sort-order": lambda size, n: [_update("set-default-sort-order", sort_order_id=1 + n % size)],
    "add-snapshot": lambda size, n: [_update("add-snapshot", snapshot=snapshot(size + 1 + n))],
    "add-snapshot, set-snapshot-ref": lambda size, n: [
        _update("add-snapshot", snapshot=snapshot(size + 1 + n)),
        set_ref("main", size + 1 + n),
    ],
    "set-snapshot-ref": lambda size, n: [set_ref(f"new{n}", 1 + n % size)],
    "set-snapshot-ref, one that is long": lambda size, n: [set_ref("main", 1 + n % size)],
    "remove-snapshots": lambda size, n: [_update("remove-snapshots", snapshot_ids=[size - n])],
    "remove-snapshots, set-snapshot-ref": lambda size, n: [
        _update("remove-snapshots", snapshot_ids=[size - n]),
        *([set_ref(f"r{n}", 1)] if n < size - 1 else []),
    ],
    "remove-snapshot-ref": lambda _, n: [_update("remove-snapshot-ref", ref_name=f"r{n}")],
    "set-location": lambda _, n: [_update("set-location", location=f"{LOCATION}/{n}")],
    "set-properties": lambda _, n: [_update("set-properties", updates={f"new{n}": "v"})],
    "remove-properties": lambda _, n: [_update("remove-properties", removals=[f"p{n}"])],
    "set-statistics": lambda _, n: [_update("set-statistics", statistics=statistics(n + 1))],
    "remove-statistics": lambda _, n: [_update("remove-statistics", snapshot_id=n + 1)],
    "set-partition-statistics": lambda _, n: [
        _update("set-partition-statistics", partition_statistics=statistics(n + 1))
    ],
    "remove-partition-statistics": lambda _, n: [_update("remove-partition-statistics", snapshot_id=n + 1)],
    "add-encryption-key": lambda _, n: [
        _update("add-encryption-key", encryption_key={"key-id": f"new{n}", "encrypted-key-metadata": KEY})
    ],
    "remove-encryption-key": lambda _, n: [_update("remove-encryption-key", key_id=f"k{n}")],
}
"""By name, the updates that are the nth of their kind on a table of a size."""
del UPDATES["assign-uuid"]  # of a table that has a uuid already: judged with the requirements

REQUIREMENTS: dict[str, Callable[[int, int], Object]] = {
    "assert-ref-snapshot-id": lambda size, n: {
        "type": "assert-ref-snapshot-id",
        "ref": f"r{n % size}",
        "snapshot-id": 1 + n % size,
    },
    "assert-last-assigned-field-id": lambda size, _: {
        "type": "assert-last-assigned-field-id",
        "last-assigned-field-id": size,
    },
    "assert-current-schema-id": lambda _, __: {"type": "assert-current-schema-id", "current-schema-id": 0},
    "assert-last-assigned-partition-id": lambda size, _: {
        "type": "assert-last-assigned-partition-id",
        "last-assigned-partition-id": 1000 + size,
    },
    "assert-default-spec-id": lambda _, __: {"type": "assert-default-spec-id", "default-spec-id": 0},
    "assert-default-sort-order-id": lambda _, __: {
        "type": "assert-default-sort-order-id",
        "default-sort-order-id": 1,
    },
}
