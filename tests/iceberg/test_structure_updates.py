"""Updates of what a table looks like, from its uuid to its properties (Iceberg's `TableMetadata.Builder`)."""

import pytest

from arco_catalog.iceberg.errors import BadRequest
from tests.iceberg.values import (
    LOCATION,
    OTHER_UUID,
    TWO_COLUMNS,
    UUID,
    Json,
    Object,
    add_snapshot,
    array,
    column,
    commit,
    ids,
    new_table,
    order,
    schema,
    set_ref,
    spec,
    struct,
    try_commit,
)

THREE_COLUMNS = schema(*TWO_COLUMNS["fields"], column(3, "new"))


LEAVES = struct(*[column(number, str(number)) for number in range(2, 100)])


def add_schema(columns: Object) -> Object:
    return {"action": "add-schema", "schema": columns}


def set_schema(schema_id: int) -> Object:
    return {"action": "set-current-schema", "schema-id": schema_id}


def add_spec(fields: Object) -> Object:
    return {"action": "add-spec", "spec": fields}


def set_spec(spec_id: int) -> Object:
    return {"action": "set-default-spec", "spec-id": spec_id}


def add_order(fields: Object) -> Object:
    return {"action": "add-sort-order", "sort-order": fields}


def set_order(order_id: int) -> Object:
    return {"action": "set-default-sort-order", "sort-order-id": order_id}


def set_properties(**properties: str) -> Object:
    return {"action": "set-properties", "updates": {name.replace("__", "."): text for name, text in properties.items()}}


def remove_properties(*names: str) -> Object:
    return {"action": "remove-properties", "removals": list(names)}


def upgrade(version: int) -> Object:
    return {"action": "upgrade-format-version", "format-version": version}


def add_key(key_id: str, **fields: Json) -> Object:
    return {
        "action": "add-encryption-key",
        "encryption-key": {"key-id": key_id, "encrypted-key-metadata": "a2V5"} | fields,
    }


def test_what_changes_nothing_is_no_commit() -> None:
    table = new_table(3, partition_spec=spec((1, "identity", "id")), write_order=order((1, "identity")))
    assert try_commit(table) is None
    for update in (
        {"action": "assign-uuid", "uuid": UUID},
        {"action": "assign-uuid", "uuid": UUID.upper()},
        upgrade(3),
        add_schema(TWO_COLUMNS),
        set_schema(0),
        add_spec(spec((1, "identity", "id"))),
        set_spec(0),
        add_order(order((1, "identity"))),
        set_order(1),
        set_properties(),
        set_properties(**table["properties"]),
        remove_properties(),
        remove_properties("not-set"),
        {"action": "set-location", "location": LOCATION},
        {"action": "set-location", "location": f"{LOCATION}//"},
        {"action": "remove-partition-specs", "spec-ids": [7]},
        {"action": "remove-schemas", "schema-ids": [7]},
        {"action": "remove-snapshots", "snapshot-ids": [7]},
        {"action": "remove-snapshot-ref", "ref-name": "main"},
        {"action": "remove-statistics", "snapshot-id": 7},
        {"action": "remove-partition-statistics", "snapshot-id": 7},
        {"action": "remove-encryption-key", "key-id": "k"},
    ):
        assert try_commit(table, update) is None, update
    assert try_commit(table, set_properties(a="1"), remove_properties("a")) is None


# --- uuid, version, location ---


def test_the_uuid_of_a_table_is_never_changed() -> None:
    with pytest.raises(BadRequest, match=f"Cannot reassign uuid: the table's is {UUID}"):
        try_commit(new_table(), {"action": "assign-uuid", "uuid": OTHER_UUID})


def test_a_table_without_uuid_can_be_given_one_and_only_one() -> None:
    table = new_table(1)
    del table["table-uuid"]
    assign: Object = {"action": "assign-uuid", "uuid": UUID}
    assert commit(table, assign)["table-uuid"] == UUID
    with pytest.raises(BadRequest, match="Cannot reassign uuid"):
        try_commit(table, assign, {"action": "assign-uuid", "uuid": OTHER_UUID})


def test_a_table_without_uuid_stays_in_version_1() -> None:
    table = new_table(1)
    del table["table-uuid"]
    assert "table-uuid" not in commit(table, set_properties(a="1"))
    with pytest.raises(BadRequest, match="UUID is required in format v2"):
        try_commit(table, upgrade(2))


@pytest.mark.parametrize(("version", "to"), [(1, 2), (1, 3), (2, 3)])
def test_an_upgrade_leaves_the_fields_of_the_new_version(version: int, to: int) -> None:
    upgraded = commit(new_table(version), upgrade(to))
    fresh = new_table(to)
    assert upgraded == fresh | {k: upgraded[k] for k in ("last-updated-ms", "metadata-log")}


def test_an_upgrade_to_version_3_starts_row_lineage_and_leaves_snapshots_alone() -> None:
    table = commit(new_table(), add_snapshot(1), set_ref("main", 1))
    upgraded = commit(table, upgrade(3))
    assert upgraded["next-row-id"] == 0
    assert upgraded["snapshots"] == table["snapshots"]


@pytest.mark.parametrize(
    ("version", "to", "message"),
    [
        (2, 1, "Cannot downgrade v2 table to v1"),
        (3, 0, "Cannot downgrade v3 table to v0"),
        (2, 4, r"Cannot upgrade table to unsupported format version: v4 \(supported: v1 to v3\)"),
    ],
)
def test_versions_go_up_to_the_last_that_is_supported(version: int, to: int, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        try_commit(new_table(version), upgrade(to))


def test_a_location_is_set_without_the_slashes_at_its_end() -> None:
    assert commit(new_table(), {"action": "set-location", "location": "s3://b/new/"})["location"] == "s3://b/new"


# --- schemas ---


def test_a_new_schema_gets_the_next_id_and_is_not_yet_current() -> None:
    table = commit(new_table(), add_schema(THREE_COLUMNS | {"schema-id": 77}))
    assert ids(table, "schemas", "schema-id") == [0, 1]
    assert table["current-schema-id"] == 0
    assert table["last-column-id"] == 3


def test_the_last_added_schema_is_meant_by_minus_one() -> None:
    table = commit(new_table(), add_schema(THREE_COLUMNS), set_schema(-1))
    assert table["current-schema-id"] == 1


def test_an_equal_schema_is_kept_once_and_can_be_meant_by_minus_one() -> None:
    """The reference fails on the latter; resolving it to the schema that is there harms nobody."""
    wider = commit(new_table(), add_schema(THREE_COLUMNS), set_schema(-1))
    reverted = commit(wider, add_schema(TWO_COLUMNS | {"schema-id": 5}), set_schema(-1))
    assert ids(reverted, "schemas", "schema-id") == [0, 1]
    assert reverted["current-schema-id"] == 0
    assert reverted["last-column-id"] == 3


@pytest.mark.parametrize(
    "variation",
    [
        TWO_COLUMNS | {"identifier-field-ids": [1]},
        schema(column(1, "id", required=True), column(2, "at", "timestamp")),
        schema(column(1, "id"), column(2, "at", "timestamptz")),
        schema(column(1, "ident", required=True), column(2, "at", "timestamptz")),
        schema(column(1, "id", required=True, doc="why"), column(2, "at", "timestamptz")),
        schema(column(2, "at", "timestamptz"), column(1, "id", required=True)),
        schema(column(1, "id", required=True, **{"x-mark": 1}), column(2, "at", "timestamptz")),
    ],
)
def test_schemas_differ_by_any_of_their_parts(variation: Object) -> None:
    assert ids(commit(new_table(), add_schema(variation)), "schemas", "schema-id") == [0, 1]


def test_spelling_is_no_difference_between_schemas() -> None:
    table = new_table(schema=schema(column(1, "d", "decimal(9,2)"), column(2, "l", array(3, "decimal(1,0)"))))
    same = schema(column(1, "d", "decimal(9, 2)", doc=None), column(2, "l", array(3, "decimal( 1,0 )")))
    assert try_commit(table, add_schema(same | {"identifier-field-ids": []})) is None


def test_a_schema_whose_id_was_removed_does_not_lower_the_last_column_id() -> None:
    wider = commit(new_table(), add_schema(THREE_COLUMNS))
    narrowed = commit(wider, {"action": "remove-schemas", "schema-ids": [1, 9]})
    assert ids(narrowed, "schemas", "schema-id") == [0]
    assert narrowed["last-column-id"] == 3


def test_the_current_schema_cannot_be_removed() -> None:
    with pytest.raises(BadRequest, match="Cannot remove the current schema"):
        try_commit(commit(new_table(), add_schema(THREE_COLUMNS)), {"action": "remove-schemas", "schema-ids": [1, 0]})


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ([set_schema(3)], "Cannot set current schema to unknown schema: 3"),
        ([set_schema(-1)], "Cannot set last added schema: no schema has been added"),
        ([add_schema(schema(column(1, "a"), column(1, "b")))], "have the same id 1"),
        ([add_schema(schema(column(2_147_483_447, "a")))], "Column ids from 2147483447 on are reserved"),
        ([add_schema(schema(column(1, "a", "variant")))], "variant is not supported until v3"),
        ([add_schema(schema(column(1, "a")) | {"identifier-field-ids": [1]})], "not a required field"),
        ([add_schema(schema(column(1, "x" * 100_000, LEAVES)))], "full names of its columns have more than"),
    ],
)
def test_a_schema_that_cannot_be_is_refused(updates: list[Object], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        try_commit(new_table(), *updates)


def test_a_type_of_version_3_may_come_with_the_upgrade() -> None:
    variant = schema(*TWO_COLUMNS["fields"], column(3, "v", "variant"))
    table = commit(new_table(), upgrade(3), add_schema(variant), set_schema(-1))
    assert table["current-schema-id"] == 1


def test_the_schema_of_a_v1_table_is_also_written_the_old_way() -> None:
    table = commit(new_table(1), add_schema(THREE_COLUMNS), set_schema(-1))
    assert table["schema"] == table["schemas"][1]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"partition_spec": spec((2, "day", "d"))}, "Cannot find source column for partition field"),
        ({"write_order": order((2, "day"))}, "Cannot find source column for sort field"),
    ],
)
def test_a_column_that_the_default_spec_or_order_needs_stays(table: Object, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        try_commit(new_table(**table), add_schema(schema(column(1, "id", required=True))), set_schema(-1))


def test_spec_and_schema_may_change_together_in_any_order() -> None:
    table = new_table(partition_spec=spec((2, "day", "d")))
    narrower = schema(column(1, "id", required=True))
    changed = commit(table, add_schema(narrower), set_schema(-1), add_spec(spec()), set_spec(-1))
    assert (changed["current-schema-id"], changed["default-spec-id"]) == (1, 1)


@pytest.mark.parametrize("updates", [[], [add_spec(spec()), set_spec(-1)]])
def test_a_column_named_as_a_partition_of_another_is_refused_while_any_spec_has_that_partition(
    updates: list[Object],
) -> None:
    """Readers could not open the table, whether the spec is the default one or not."""
    table = new_table(partition_spec=spec((2, "day", "d")))
    named_alike = schema(*TWO_COLUMNS["fields"], column(3, "d"))
    with pytest.raises(BadRequest, match="name that exists in schema: d"):
        try_commit(table, *updates, add_schema(named_alike), set_schema(-1))
    forgotten: Object = {"action": "remove-partition-specs", "spec-ids": [0]}
    freed = commit(table, add_spec(spec()), set_spec(-1), forgotten, add_schema(named_alike), set_schema(-1))
    assert freed["current-schema-id"] == 1


# --- partition specs ---


def test_a_new_spec_gets_the_next_id() -> None:
    table = commit(new_table(), add_spec(spec((1, "bucket[4]", "b"), first_id=1000) | {"spec-id": 9}), set_spec(-1))
    assert table["partition-specs"][1] == {"spec-id": 1, **spec((1, "bucket[4]", "b"), first_id=1000)}
    assert (table["default-spec-id"], table["last-partition-id"]) == (1, 1000)


def test_equal_specs_are_kept_once_whatever_their_field_ids() -> None:
    table = commit(new_table(), add_spec(spec((1, "bucket[4]", "b"), first_id=1000)), set_spec(-1))
    same = add_spec(spec((1, "Bucket[4]", "b"), first_id=1005))
    assert try_commit(table, same, set_spec(-1)) is None
    assert commit(table, add_spec(spec()), set_spec(-1))["default-spec-id"] == 0


def test_specs_differ_by_the_sequence_of_their_fields() -> None:
    one, other = (1, "identity", "id"), (2, "day", "d")
    table = commit(new_table(), add_spec(spec(one, other, first_id=1000)), add_spec(spec(other, one, first_id=1000)))
    assert ids(table, "partition-specs", "spec-id") == [0, 1, 2]


def test_fields_without_ids_take_known_ones_of_the_same_meaning_and_else_new_ones() -> None:
    table = new_table(partition_spec=spec((1, "identity", "id"), (2, "day", "d")))
    added = commit(table, add_spec(spec((2, "hour", "h"), (2, "day", "day"), (1, "bucket[4]", "b"))))
    assert ids(added["partition-specs"][1], "fields", "field-id") == [1002, 1001, 1003]
    assert added["last-partition-id"] == 1003


def test_two_fields_of_one_meaning_do_not_share_an_id() -> None:
    table = new_table(partition_spec=spec((1, "identity", "id")))
    added = commit(table, add_spec(spec((1, "identity", "id"), (1, "identity", "id2"))))
    assert ids(added["partition-specs"][1], "fields", "field-id") == [1000, 1001]


def test_the_last_partition_id_never_goes_down() -> None:
    table = commit(new_table(), add_spec(spec((1, "identity", "id"), first_id=1010)))
    table = commit(table, {"action": "remove-partition-specs", "spec-ids": [1]})
    table = commit(table, add_spec(spec((2, "day", "d"))))
    assert ids(table["partition-specs"][1], "fields", "field-id") == [1011]


def test_specs_of_v1_tables_are_numbered_by_position() -> None:
    table = new_table(1, partition_spec=spec((1, "identity", "id")))
    added = commit(table, add_spec(spec((1, "void", "id"), (2, "day", "d"))), set_spec(-1))
    assert added["partition-spec"] == spec((1, "void", "id"), (2, "day", "d"), first_id=1000)["fields"]
    with pytest.raises(BadRequest, match="Spec does not use sequential IDs that are required in v1"):
        try_commit(table, add_spec(spec((2, "day", "d"), first_id=1001)))


def test_a_void_field_outlives_its_source() -> None:
    narrower = schema(column(1, "id", required=True))
    table = new_table(1, partition_spec=spec((2, "day", "d")))
    void = add_spec(spec((2, "void", "d")))
    changed = commit(table, add_schema(narrower), set_schema(-1), void, set_spec(-1))
    assert changed["default-spec-id"] == 1


def test_the_default_spec_cannot_be_removed() -> None:
    table = commit(new_table(), add_spec(spec((1, "identity", "id"))), set_spec(-1))
    with pytest.raises(BadRequest, match="Cannot remove the default partition spec"):
        try_commit(table, {"action": "remove-partition-specs", "spec-ids": [1]})
    removed = commit(table, {"action": "remove-partition-specs", "spec-ids": [0, 5]})
    assert ids(removed, "partition-specs", "spec-id") == [1]


MIXED = {"fields": [spec((1, "identity", "a"))["fields"][0], spec((2, "day", "b"), first_id=1000)["fields"][0]]}


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ([set_spec(4)], "Cannot set default partition spec to unknown spec: 4"),
        ([set_spec(-1)], "Cannot set last added spec: no spec has been added"),
        ([add_spec(MIXED)], "Cannot parse spec with missing field IDs: 1 missing of 2 fields"),
        ([add_spec(spec((9, "identity", "x")))], "Cannot find source column for partition field"),
        ([add_spec(spec((1, "day", "x")))], "Invalid source type long for transform: day"),
        ([add_spec({"fields": spec((1, "identity", "a"), first_id=1000)["fields"] * 2})], "more than once"),
        (
            [
                add_spec(
                    {
                        "fields": [
                            *spec((1, "identity", "a"), first_id=1000)["fields"],
                            *spec((2, "day", "b"), first_id=1000)["fields"],
                        ]
                    }
                )
            ],
            "Cannot use field id more than once in one PartitionSpec: 1000",
        ),
        (
            [add_spec(spec((1, "identity", "a"), first_id=2**31 - 1)), add_spec(spec((2, "day", "b")))],
            "Cannot assign a partition field id: 2147483647 is the largest id there is, and it is taken",
        ),
    ],
)
def test_a_spec_that_cannot_be_is_refused(updates: list[Object], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        try_commit(new_table(), *updates)


def test_a_partition_of_a_nested_column_is_named_by_its_full_name() -> None:
    nested = schema(column(1, "s", struct(column(2, "x"))))
    table = commit(new_table(schema=nested), add_spec(spec((2, "identity", "s.x"))), set_spec(-1))
    assert table["default-spec-id"] == 1


# --- sort orders ---


def test_the_first_order_is_number_1_and_no_order_is_number_0() -> None:
    table = commit(new_table(), add_order(order((1, "identity")) | {"order-id": 8}), set_order(-1))
    assert ids(table, "sort-orders", "order-id") == [0, 1]
    assert table["default-sort-order-id"] == 1
    assert commit(table, add_order(order()), set_order(-1))["default-sort-order-id"] == 0


def test_a_table_that_lists_no_unsorted_order_can_still_become_unsorted() -> None:
    sorted_table = new_table(write_order=order((1, "identity")))
    assert ids(sorted_table, "sort-orders", "order-id") == [1]
    for updates in ([add_order(order()), set_order(-1)], [set_order(0)]):
        unsorted = commit(sorted_table, *updates)
        assert ids(unsorted, "sort-orders", "order-id") == [1, 0]
        assert unsorted["default-sort-order-id"] == 0


def test_equal_orders_are_kept_once_and_others_get_the_next_id() -> None:
    table = commit(new_table(), add_order(order((1, "identity"))), add_order(order((2, "Day"))))
    again = commit(table, add_order(order((2, "day"))), set_order(-1))
    assert ids(again, "sort-orders", "order-id") == [0, 1, 2]
    assert again["default-sort-order-id"] == 2


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ([set_order(4)], "Cannot set default sort order to unknown order: 4"),
        ([set_order(-1)], "Cannot set last added sort order: no sort order has been added"),
        ([add_order(order((9, "identity")))], "Cannot find source column for sort field"),
    ],
)
def test_an_order_that_cannot_be_is_refused(updates: list[Object], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        try_commit(new_table(), *updates)


# --- properties and keys ---


def test_properties_are_merged_and_removed_in_the_requests_order() -> None:
    table = new_table(properties={"a": "1", "b": "2"})
    changed = commit(table, set_properties(a="x", c="3"), remove_properties("b", "nothing"), set_properties(d="4"))
    assert changed["properties"] == {"write.parquet.compression-codec": "zstd", "a": "x", "c": "3", "d": "4"}


def test_reserved_properties_are_not_filtered_from_updates() -> None:
    table = commit(new_table(), {"action": "set-properties", "updates": {"format-version": "3", "uuid": "x"}})
    assert (table["properties"]["format-version"], table["format-version"]) == ("3", 2)


@pytest.mark.parametrize("name", ["write.metadata.path", "write.data.path", "write.object-storage.path"])
def test_engines_are_not_told_to_write_to_the_empty_path(name: str) -> None:
    with pytest.raises(BadRequest, match=f"Table property {name} must not be empty"):
        try_commit(new_table(), {"action": "set-properties", "updates": {name: ""}})


def test_a_codec_that_no_reader_knows_is_refused() -> None:
    with pytest.raises(BadRequest, match="Invalid codec name: snappy"):
        try_commit(new_table(), {"action": "set-properties", "updates": {"write.metadata.compression-codec": "snappy"}})


@pytest.mark.parametrize(
    "update",
    [
        {"action": "set-properties", "updates": {"encryption.key-id": "other"}},
        {"action": "remove-properties", "removals": ["encryption.key-id"]},
    ],
)
def test_an_encryption_key_once_set_is_neither_changed_nor_removed(update: Object) -> None:
    table = commit(new_table(3), {"action": "set-properties", "updates": {"encryption.key-id": "k"}})
    with pytest.raises(BadRequest, match=r"Cannot change or remove the property encryption\.key-id once it is set"):
        try_commit(table, update)
    assert try_commit(table, {"action": "set-properties", "updates": {"encryption.key-id": "k"}}) is None


def test_encryption_keys_are_added_once_and_removed() -> None:
    table = commit(new_table(3), add_key("k1"), add_key("k2", **{"encrypted-by-id": "k1", "x-mark": 1}))
    assert ids(table, "encryption-keys", "key-id") == ["k1", "k2"]
    assert table["encryption-keys"][1]["x-mark"] == 1
    assert try_commit(table, add_key("k1", **{"encrypted-by-id": "k2"})) is None
    assert ids(commit(table, {"action": "remove-encryption-key", "key-id": "k1"}), "encryption-keys", "key-id") == [
        "k2"
    ]
