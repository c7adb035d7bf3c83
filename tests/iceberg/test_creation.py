"""createTable: ids, versions, defaults and refusals (Iceberg's `TableMetadata.newTableMetadata`)."""

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.table import new_table_metadata, parse_create_table
from tests.iceberg.values import (
    LOCATION,
    NOW,
    TWO_COLUMNS,
    UUID,
    Json,
    Object,
    array,
    column,
    create_request,
    mapping,
    new_table,
    order,
    schema,
    spec,
    struct,
)


def created(**fields: Json) -> Object:
    request = parse_create_table(create_request(**fields))
    return new_table_metadata(request, location=LOCATION, table_uuid=UUID, now_ms=NOW)


def test_a_new_table_has_format_version_2_and_no_history() -> None:
    assert created(schema=schema(column(1, "id"))) == {
        "format-version": 2,
        "table-uuid": UUID,
        "location": LOCATION,
        "last-sequence-number": 0,
        "last-updated-ms": NOW,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [{**schema(column(1, "id")), "schema-id": 0}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"write.parquet.compression-codec": "zstd"},
        "current-snapshot-id": -1,
        "refs": {},
        "snapshots": [],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [],
    }


def test_version_1_also_says_its_schema_and_spec_in_the_old_way_and_has_no_sequence_number() -> None:
    table = new_table(1, partition_spec=spec((1, "bucket[4]", "b")))
    assert table["format-version"] == 1
    assert table["schema"] == table["schemas"][0]
    assert table["partition-spec"] == table["partition-specs"][0]["fields"]
    assert "last-sequence-number" not in table
    assert table["current-snapshot-id"] == -1


def test_version_3_starts_row_lineage_and_leaves_out_what_is_not_there() -> None:
    table = new_table(3)
    assert table["next-row-id"] == 0
    assert "current-snapshot-id" not in table  # the REST specification has no null for it


@pytest.mark.parametrize("version", ["0", "4", "-1", "two", "", "2.0"])
def test_other_format_versions_are_refused(version: str) -> None:
    with pytest.raises(BadRequest, match=r"format.version"):
        created(properties={"format-version": version})


def test_columns_are_numbered_anew_level_by_level() -> None:
    """The compatibility kit's case: five columns 1-5, the list's element 6, the map's key and value 7 and 8, then 9."""
    table = created(
        schema=schema(
            column(10, "id"),
            column(20, "data", "string"),
            column(30, "list", array(31)),
            column(40, "map", mapping(41, 42)),
            column(50, "nested", struct(column(51, "inner"))),
        )
    )
    fields = table["schemas"][0]["fields"]
    assert [field["id"] for field in fields] == [1, 2, 3, 4, 5]
    assert fields[2]["type"] == array(6)
    assert fields[3]["type"] == mapping(7, 8)
    assert fields[4]["type"] == struct(column(9, "inner"))
    assert table["last-column-id"] == 9


def test_a_map_of_structs_numbers_key_and_value_before_what_is_in_them() -> None:
    value = struct(column(5, "x"), column(6, "y"))
    table = created(schema=schema(column(1, "m", mapping(2, 3, struct(column(4, "k")), value))))
    numbered = mapping(2, 3, struct(column(4, "k")), struct(column(5, "x"), column(6, "y")))
    assert table["schemas"][0]["fields"] == [column(1, "m", numbered)]


def test_identifiers_spec_and_order_follow_their_columns() -> None:
    table = created(
        schema=schema(column(3, "id", required=True), column(4, "at", "timestamptz"), identifiers=[3]),
        partition_spec=spec((4, "day", "at_day"), (3, "bucket[16]", "id_bucket"), first_id=7),
        write_order=order((4, "hour"), (3, "identity")),
    )
    assert table["schemas"][0]["identifier-field-ids"] == [1]
    numbered = spec((2, "day", "at_day"), (1, "bucket[16]", "id_bucket"), first_id=1000)
    assert table["partition-specs"] == [{"spec-id": 0, **numbered}]
    assert table["last-partition-id"] == 1001
    assert table["sort-orders"] == [{"order-id": 1, **order((2, "hour"), (1, "identity"))}]
    assert table["default-sort-order-id"] == 1


def test_unknown_fields_of_schema_columns_spec_and_order_are_kept() -> None:
    mark: Object = {"x-mark": {"deep": [1, None]}}
    partition_field, sort_field = spec((7, "void", "v"))["fields"][0], order((7, "identity"))["fields"][0]
    table = created(
        schema=schema(column(7, "id") | mark, column(8, "l", array(9) | mark)) | mark,
        partition_spec={"fields": [partition_field | mark]} | mark,
        write_order={"fields": [sort_field | mark]} | mark,
    )
    made, made_spec, made_order = table["schemas"][0], table["partition-specs"][0], table["sort-orders"][0]
    places = [made, made["fields"][0], made["fields"][1]["type"], made_spec, made_spec["fields"][0]]
    places += [made_order, made_order["fields"][0]]
    assert [place["x-mark"] for place in places] == [mark["x-mark"]] * 7


def test_reserved_properties_are_dropped_without_a_word() -> None:
    table = created(
        properties={"format-version": "1", "uuid": "u", "snapshot-count": "9", "current-schema": "{}", "a": "b"}
    )
    assert table["properties"] == {"write.parquet.compression-codec": "zstd", "a": "b"}
    assert table["format-version"] == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"schema": schema(column(3, "a", required=True), identifiers=[1])},
        {"partition-spec": spec((1, "identity", "p"))},
        {"write-order": order((1, "identity"))},
    ],
)
def test_references_are_the_requests_own_ids_and_not_the_new_ones(fields: Object) -> None:
    """Column 3 becomes column 1; who names column 1 names nothing."""
    request = create_request(schema=schema(column(3, "a", required=True))) | fields
    with pytest.raises(BadRequest, match=r"does not exist|Cannot find source column"):
        new_table_metadata(parse_create_table(request), location=LOCATION, table_uuid=UUID, now_ms=NOW)


def test_a_chosen_parquet_codec_wins() -> None:
    properties = created(properties={"write.parquet.compression-codec": "snappy"})["properties"]
    assert properties == {"write.parquet.compression-codec": "snappy"}


def test_a_staged_table_says_when_it_was_staged() -> None:
    assert created(stage_create=True)["properties"]["created-at"] == "2023-11-14T22:13:20.000Z"
    assert "created-at" not in created()["properties"]


def test_a_location_loses_the_slashes_at_its_end() -> None:
    request = parse_create_table(create_request(location="s3://b/t//"))
    assert request.location == "s3://b/t"
    table = new_table_metadata(request, location="s3://b/t/", table_uuid=UUID, now_ms=NOW)
    assert table["location"] == "s3://b/t"


DEEP = schema(
    column(1, "id", required=True),
    column(2, "list", array(3, struct(column(4, "x", required=True)))),
    column(5, "opt", struct(column(6, "x", required=True))),
    column(7, "f", "float", required=True),
    column(8, "v", "double"),
    column(9, "point", "string"),
)

REFUSED: list[tuple[str, Object, str]] = [
    ("identifier that is no column", {"schema": {**DEEP, "identifier-field-ids": [99]}}, "field does not exist"),
    ("identifier that is optional", {"schema": {**DEEP, "identifier-field-ids": [9]}}, "not a required field"),
    ("identifier that is nested data", {"schema": {**DEEP, "identifier-field-ids": [2]}}, "not a primitive type field"),
    ("identifier that is a float", {"schema": {**DEEP, "identifier-field-ids": [7]}}, "must not be float or double"),
    ("identifier in a list", {"schema": {**DEEP, "identifier-field-ids": [4]}}, "must not be nested in list"),
    ("identifier in an optional struct", {"schema": {**DEEP, "identifier-field-ids": [6]}}, "an optional field opt"),
    ("two columns of one id", {"schema": schema(column(1, "a"), column(1, "b"))}, "same id 1"),
    (
        "two columns of one name",
        {"schema": schema(column(1, "a"), column(2, "a"))},
        "multiple fields for name a: 1 and 2",
    ),
    (
        "a dotted name that is also a nested column",
        {"schema": schema(column(1, "a", struct(column(2, "b"))), column(3, "a.b"))},
        "multiple fields for name a.b",
    ),
    ("partition source that is no column", {"partition-spec": spec((9, "identity", "p"))}, "Cannot find source column"),
    (
        "partition source that is nested data",
        {"schema": DEEP, "partition-spec": spec((2, "identity", "p"))},
        "Cannot partition by non-primitive source field: list",
    ),
    (
        "partition source in a list",
        {"schema": DEEP, "partition-spec": spec((4, "identity", "p"))},
        "Invalid partition field parent: list",
    ),
    (
        "transform of another type",
        {"partition-spec": spec((1, "day", "p"))},
        "Invalid source type long for transform: day",
    ),
    ("bucket of a float", {"schema": DEEP, "partition-spec": spec((7, "bucket[4]", "p"))}, "Invalid source type float"),
    ("no buckets", {"partition-spec": spec((1, "bucket[0]", "p"))}, r"Invalid number of buckets: 0 \(must be > 0\)"),
    ("no width", {"partition-spec": spec((1, "truncate[0]", "p"))}, "Invalid truncate width: 0"),
    ("bucket without a number", {"partition-spec": spec((1, "bucket", "p"))}, "Invalid transform: bucket"),
    ("two partitions of one name", {"partition-spec": spec((1, "identity", "id"), (2, "day", "id"))}, "id"),
    ("an empty partition name", {"partition-spec": spec((1, "identity", ""))}, "Cannot use empty partition name"),
    (
        "a partition named as another column",
        {"partition-spec": spec((1, "bucket[4]", "at"))},
        "name that exists in schema: at",
    ),
    (
        "sort source that is no column",
        {"write-order": order((9, "identity"))},
        "Cannot find source column for sort field",
    ),
    (
        "sort source that is nested data",
        {"schema": DEEP, "write-order": order((2, "identity"))},
        "non-primitive source field",
    ),
    (
        "sort transform of another type",
        {"write-order": order((1, "hour"))},
        "Invalid source type long for transform: hour",
    ),
    (
        "a default in v2",
        {"schema": schema(column(1, "a") | {"initial-default": 7})},
        r"\(7\) is not supported until v3",
    ),
    ("a required unknown column", {"schema": schema(column(1, "a", "unknown", required=True))}, "unknown type: a"),
    ("metrics of no column", {"properties": {"write.metadata.metrics.column.x": "full"}}, "could not find column x"),
    ("retries below zero", {"properties": {"commit.retry.num-retries": "-1"}}, "must have non negative integer value"),
    ("retries that are no number", {"properties": {"commit.retry.max-wait-ms": "soon"}}, "must have integer value"),
    (
        "encryption in v2",
        {"properties": {"encryption.key-id": "k"}},
        r"Invalid properties for a new table of v2: \['encryption.key-id'\]",
    ),
    ("the catalog's own property", {"properties": {"ARCO.quality": "x"}}, "reserved: ARCO.quality"),
    ("nowhere to write", {"properties": {"write.data.path": ""}}, "write.data.path must not be empty"),
    ("an unreadable codec", {"properties": {"write.metadata.compression-codec": "zstd"}}, "Invalid codec name: zstd"),
]


@pytest.mark.parametrize(("fields", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_a_table_cannot_be_is_refused(fields: Object, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        new_table_metadata(
            parse_create_table(create_request() | fields), location=LOCATION, table_uuid=UUID, now_ms=NOW
        )


@pytest.mark.parametrize(
    "name", ["timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography(srid:1)"]
)
def test_types_of_version_3_need_version_3(name: str) -> None:
    columns = schema(column(1, "a"), column(2, "v", name))
    with pytest.raises(BadRequest, match=r"Invalid type for v: .* is not supported until v3"):
        new_table(2, schema=columns)
    assert new_table(3, schema=columns)["format-version"] == 3


def test_the_refusal_of_a_type_lists_every_column_of_that_kind() -> None:
    columns = schema(column(1, "a", "variant"), column(2, "s", struct(column(3, "b", "unknown"))))
    with pytest.raises(BadRequest) as refused:
        new_table(1, schema=columns)
    assert refused.value.message.splitlines() == [
        "Invalid schema for v1:",
        "- Invalid type for a: variant is not supported until v3",
        "- Invalid type for s.b: unknown is not supported until v3",
    ]


def test_defaults_round_trip_in_version_3() -> None:
    defaults: Object = {"initial-default": "2024-01-01", "write-default": "2024-02-02"}
    table = new_table(3, schema=schema(column(1, "d", "date") | defaults))
    assert table["schemas"][0]["fields"] == [column(1, "d", "date") | defaults]


def test_encryption_is_allowed_in_version_3() -> None:
    assert new_table(3, properties={"encryption.key-id": "k"})["properties"]["encryption.key-id"] == "k"


def test_metrics_may_be_set_for_nested_columns_by_full_and_short_name() -> None:
    names = ["id", "list", "list.element.x", "list.x", "opt.x"]
    properties = {f"write.metadata.metrics.column.{name}": "full" for name in names}
    assert set(properties) < set(created(schema=DEEP, properties=properties)["properties"])


def test_a_partition_may_carry_the_name_of_its_own_source() -> None:
    assert created(partition_spec=spec((1, "bucket[4]", "id")))["last-partition-id"] == 1000


def test_transforms_that_nobody_here_knows_are_let_through() -> None:
    table = created(partition_spec=spec((1, "zorder[3]", "z")))
    assert table["partition-specs"][0]["fields"][0]["transform"] == "zorder[3]"


def test_a_create_request_may_leave_out_all_but_name_and_schema() -> None:
    nulls = create_request(partition_spec=None, write_order=None, properties=None, location=None, stage_create=None)
    assert parse_create_table(nulls) == parse_create_table({"name": "t", "schema": TWO_COLUMNS})
