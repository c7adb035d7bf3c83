"""What Hypothesis makes new tables, single updates and nonsense from."""

from hypothesis import strategies as st

from tests.iceberg.values import NOW, TWO_COLUMNS, Json, Object, array, column, new_table, order, schema, spec, struct

json_values: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)

_SCHEMAS = [
    TWO_COLUMNS,
    schema(*TWO_COLUMNS["fields"], column(3, "new", "string")),
    schema(column(1, "id", required=True)),
    schema(*TWO_COLUMNS["fields"], column(4, "s", struct(column(5, "x", required=True), column(6, "l", array(7))))),
    schema(column(1, "id", required=True), identifiers=[1]),
    schema(column(1, "id", "variant")),
]
_SPECS = [
    spec(),
    spec((2, "day", "d")),
    spec((1, "bucket[4]", "b"), first_id=1000),
    spec((3, "identity", "new")),
    spec((2, "void", "d"), (1, "identity", "id")),
]
_ORDERS = [order(), order((1, "identity")), order((2, "hour"), (1, "bucket[8]")), order((3, "identity"))]

_snapshot_ids = st.integers(1, 6)
_small = st.integers(-1, 3)
_ref_names = st.sampled_from(["main", "b", "t"])
_property_names = st.sampled_from(["a", "b", "write.metadata.previous-versions-max"])


@st.composite
def _add_snapshot(draw: st.DrawFn) -> Object:
    snapshot_id = draw(_snapshot_ids)
    snapshot: Object = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": NOW + draw(st.integers(0, 50_000)),
        "manifest-list": f"s3://b/{snapshot_id}",
        "summary": {"operation": "append"},
        "sequence-number": draw(st.sampled_from([0, *range(1, 12)])),
    }
    if draw(st.booleans()):
        snapshot["parent-snapshot-id"] = draw(_snapshot_ids)
    if draw(st.booleans()):
        snapshot |= {"first-row-id": draw(st.integers(0, 60)), "added-rows": draw(st.integers(0, 20))}
    return {"action": "add-snapshot", "snapshot": snapshot}


@st.composite
def _set_ref(draw: st.DrawFn) -> Object:
    retention = draw(st.dictionaries(st.sampled_from(["max-ref-age-ms", "min-snapshots-to-keep"]), _small, max_size=1))
    kind = draw(st.sampled_from(["branch", "branch", "tag"]))
    return {
        "action": "set-snapshot-ref",
        "ref-name": draw(_ref_names),
        "type": kind,
        "snapshot-id": draw(_snapshot_ids),
        **retention,
    }


def _statistics(action: str, field: str) -> st.SearchStrategy[Object]:
    def made(snapshot_id: int, path: str) -> Object:
        file = {"snapshot-id": snapshot_id, "statistics-path": path, "file-size-in-bytes": 1}
        if field == "statistics":
            file |= {"file-footer-size-in-bytes": 1, "blob-metadata": []}
        return {"action": action, field: file}

    return st.builds(made, _snapshot_ids, st.sampled_from(["p", "q"]))


def _with(action: str, **fields: st.SearchStrategy[Json]) -> st.SearchStrategy[Object]:
    named = {name.replace("_", "-"): strategy for name, strategy in fields.items()}
    return st.fixed_dictionaries({"action": st.just(action), **named})


updates: st.SearchStrategy[Object] = st.one_of(
    _add_snapshot(),
    _set_ref(),
    _with("remove-snapshots", snapshot_ids=st.lists(_snapshot_ids, max_size=3)),
    _with("remove-snapshot-ref", ref_name=_ref_names),
    _with("add-schema", schema=st.sampled_from(_SCHEMAS)),
    _with("set-current-schema", schema_id=_small),
    _with("remove-schemas", schema_ids=st.lists(_small, max_size=2)),
    _with("add-spec", spec=st.sampled_from(_SPECS)),
    _with("set-default-spec", spec_id=_small),
    _with("remove-partition-specs", spec_ids=st.lists(_small, max_size=2)),
    _with("add-sort-order", sort_order=st.sampled_from(_ORDERS)),
    _with("set-default-sort-order", sort_order_id=_small),
    _with("upgrade-format-version", format_version=st.integers(1, 4)),
    _with("set-location", location=st.sampled_from(["s3://b/t", "s3://b/u/"])),
    _with("set-properties", updates=st.dictionaries(_property_names, st.sampled_from(["1", "2"]), max_size=2)),
    _with("remove-properties", removals=st.lists(_property_names, max_size=2)),
    _statistics("set-statistics", "statistics"),
    _statistics("set-partition-statistics", "partition-statistics"),
    _with("remove-statistics", snapshot_id=_snapshot_ids),
    _with("remove-partition-statistics", snapshot_id=_snapshot_ids),
    _with("add-encryption-key", encryption_key=_with("x", key_id=_ref_names, encrypted_key_metadata=st.just("a2V5"))),
    _with("remove-encryption-key", key_id=_ref_names),
)

new_tables: st.SearchStrategy[Object] = st.builds(
    new_table,
    st.integers(1, 3),
    partition_spec=st.sampled_from([spec(), spec((2, "day", "d"))]),
    write_order=st.sampled_from([order(), order((1, "identity"))]),
)
