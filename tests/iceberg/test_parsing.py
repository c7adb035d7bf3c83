"""Requests become values or `BadRequest`s that say what was wrong, where (Iceberg REST specification)."""

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.requirements import TABLE_REQUIREMENTS
from arco_catalog.iceberg.table import added_snapshot_ids, explicit_locations, parse_commit, parse_create_table
from arco_catalog.iceberg.updates import TABLE_UPDATES, RemoveProperties, SetProperties
from tests.iceberg.values import (
    UUID,
    Json,
    Object,
    add_snapshot,
    column,
    commit_body,
    create_request,
    schema,
    set_ref,
    spec,
)


def test_every_update_and_requirement_of_the_specification_is_known() -> None:
    assert set(TABLE_UPDATES) == {
        "assign-uuid", "upgrade-format-version", "add-schema", "set-current-schema", "add-spec", "set-default-spec",
        "add-sort-order", "set-default-sort-order", "add-snapshot", "set-snapshot-ref", "remove-snapshots",
        "remove-snapshot-ref", "set-location", "set-properties", "remove-properties", "set-statistics",
        "remove-statistics", "set-partition-statistics", "remove-partition-statistics", "remove-partition-specs",
        "remove-schemas", "add-encryption-key", "remove-encryption-key",
    }  # fmt: skip
    assert set(TABLE_REQUIREMENTS) == {
        "assert-create", "assert-table-uuid", "assert-ref-snapshot-id", "assert-last-assigned-field-id",
        "assert-current-schema-id", "assert-last-assigned-partition-id", "assert-default-spec-id",
        "assert-default-sort-order-id",
    }  # fmt: skip


def test_all_unknown_names_are_listed_before_anything_else_is_judged() -> None:
    body = commit_body(
        {"action": "enable-row-lineage"},
        {"action": "set-current-schema", "schema-id": "not a number"},
        {"action": "Frobnicate"},
        {"action": "enable-row-lineage"},
        requirements=[{"type": "assert-moon-phase"}, {"type": "assert-view-uuid", "uuid": UUID}],
    )
    with pytest.raises(BadRequest) as refused:
        parse_commit(body)
    assert refused.value.message == (
        "Cannot commit: unknown requirements: 'assert-moon-phase', 'assert-view-uuid'; "
        "unknown updates: 'enable-row-lineage', 'frobnicate'"
    )


def test_actions_and_types_are_matched_in_any_case() -> None:
    body = commit_body({"action": "Remove-Statistics", "snapshot-id": 1}, requirements=[{"type": "ASSERT-CREATE"}])
    parsed = parse_commit(body)
    assert parsed.actions == ("remove-statistics",)
    assert parsed.requirement_types == ("assert-create",)
    assert parsed.creates


@pytest.mark.parametrize("body", [{}, {"requirements": None, "updates": None}, {"requirements": [], "updates": []}])
def test_requirements_and_updates_may_be_left_out(body: Object) -> None:
    parsed = parse_commit(body)
    assert (parsed.requirements, parsed.updates, parsed.creates) == ((), (), False)


def test_nothing_may_stand_beside_assert_create() -> None:
    requirements: list[Object] = [{"type": "assert-create"}, {"type": "assert-table-uuid", "uuid": UUID}]
    with pytest.raises(BadRequest, match="Invalid create requirements: assert-table-uuid"):
        parse_commit(commit_body(requirements=requirements))


def test_the_older_names_of_property_fields_are_understood_and_lose_to_the_newer() -> None:
    parsed = parse_commit(
        commit_body(
            {"action": "set-properties", "updated": {"a": "1"}},
            {"action": "set-properties", "updated": {"a": "1"}, "updates": {"b": "2"}},
            {"action": "remove-properties", "removed": ["a"]},
            {"action": "remove-properties", "removed": ["a"], "removals": ["b"]},
        )
    )
    assert parsed.updates == (
        SetProperties({"a": "1"}),
        SetProperties({"b": "2"}),
        RemoveProperties(["a"]),
        RemoveProperties(["b"]),
    )


def test_a_ref_may_be_asserted_to_be_missing_by_null_or_by_silence() -> None:
    silent: Object = {"type": "assert-ref-snapshot-id", "ref": "main"}
    parsed = parse_commit(commit_body(requirements=[silent, silent | {"snapshot-id": None}]))
    assert parsed.requirements[0] == parsed.requirements[1]


MALFORMED: list[tuple[Json, str]] = [
    (None, "Invalid request: expected an object, found null"),
    ([], "Invalid request: expected an object, found an array"),
    ({"updates": {}}, "Invalid request.updates: expected an array, found an object"),
    ({"updates": [7]}, "Invalid request.updates[0]: expected an object, found an integer"),
    ({"updates": [{}]}, "Invalid updates[0]: missing required field 'action'"),
    ({"updates": [{"action": 1.5}]}, "Invalid updates[0].action: expected a string, found a number"),
    ({"requirements": [{"type": True}]}, "Invalid requirements[0].type: expected a string, found a boolean"),
]


@pytest.mark.parametrize(("body", "message"), MALFORMED)
def test_a_body_of_another_shape_is_refused_with_its_place(body: Json, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_commit(body)
    assert refused.value.message == message


MALFORMED_UPDATES: list[tuple[Object, str]] = [
    ({"action": "assign-uuid", "uuid": "abc"}, "uuid: 'abc' is not a uuid"),
    ({"action": "assign-uuid", "uuid": UUID.replace("-", "")}, "is not a uuid"),
    ({"action": "assign-uuid", "uuid": UUID.replace("-", "") + "----"}, "is not a uuid"),
    ({"action": "assign-uuid", "uuid": "x" * 10_000}, "'" + "x" * 100 + "'... is not a uuid"),
    ({"action": "add-schema", "schema": schema(column(1, "a", "fixed[\u0663]"))}, "unknown type"),
    (
        {"action": "upgrade-format-version", "format-version": "2"},
        "format-version: expected an integer, found a string",
    ),
    (
        {"action": "upgrade-format-version", "format-version": True},
        "format-version: expected an integer, found a boolean",
    ),
    (
        {"action": "upgrade-format-version", "format-version": 2.0},
        "format-version: expected an integer, found a number",
    ),
    ({"action": "set-current-schema", "schema-id": 2**31}, "schema-id: 2147483648 does not fit into 32 bits"),
    ({"action": "remove-snapshots", "snapshot-ids": [1, 2**63]}, "snapshot-ids[1]: 9223372036854775808 does not fit"),
    ({"action": "add-schema", "schema": {"type": "list", "fields": []}}, "schema.type: a schema is a struct"),
    ({"action": "add-schema", "schema": {"type": "struct"}}, "schema: missing required field 'fields'"),
    (
        {"action": "add-schema", "schema": schema(column(1, "a", "text"))},
        "schema.fields[0].type: unknown type 'text'",
    ),
    ({"action": "add-schema", "schema": schema(column(1, "a", {"type": "set"}))}, "fields[0].type: expected a struct"),
    ({"action": "add-schema", "schema": schema(column(1, ""))}, "schema.fields[0].name: the string must not be empty"),
    ({"action": "add-schema", "schema": schema(identifiers=["x"])}, "identifier-field-ids[0]: expected an integer"),
    (
        {"action": "add-schema", "schema": schema(column(1, "l", {"type": "list", "element-id": 2, "element": "int"}))},
        "fields[0].type: missing required field 'element-required'",
    ),
    ({"action": "add-spec", "spec": spec((1, "", "p"))}, "spec.fields[0].transform: the string must not be empty"),
    (
        {"action": "add-spec", "spec": {"fields": [{"name": "p", "transform": "day"}]}},
        "missing required field 'source-id'",
    ),
    (
        {
            "action": "add-sort-order",
            "sort-order": {"fields": [{"source-id": 1, "transform": "day", "direction": "up"}]},
        },
        "sort-order.fields[0].direction: expected 'asc' or 'desc', found 'up'",
    ),
    ({"action": "add-snapshot", "snapshot": {"snapshot-id": 1}}, "snapshot: missing required field 'timestamp-ms'"),
    (
        {"action": "add-snapshot", "snapshot": {"snapshot-id": 1, "timestamp-ms": 1}},
        "snapshot: missing required field 'manifest-list'",
    ),
    (add_snapshot(1, summary={"operation": 1}), "snapshot.summary['operation']: expected a string, found an integer"),
    (set_ref("", 1), "ref-name: the string must not be empty"),
    (set_ref("b", 1, "twig"), "updates[0].type: expected 'branch' or 'tag', found 'twig'"),
    ({"action": "set-location", "location": ""}, "location: the string must not be empty"),
    ({"action": "set-properties", "updates": {"a": 1}}, "updates['a']: expected a string, found an integer"),
    ({"action": "set-properties", "updates": {"a": None}}, "updates['a']: expected a string, found null"),
    ({"action": "remove-properties", "removals": "a"}, "removals: expected an array, found a string"),
    ({"action": "set-statistics", "statistics": {"snapshot-id": 1}}, "missing required field 'statistics-path'"),
    (
        {"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "?"}},
        "encryption-key.encrypted-key-metadata: expected base64",
    ),
]


@pytest.mark.parametrize(("update", "message"), MALFORMED_UPDATES)
def test_a_malformed_update_is_refused_with_its_place(update: Object, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_commit(commit_body(update))
    assert refused.value.message.startswith("Invalid updates[0]")
    assert message in refused.value.message


@pytest.mark.parametrize("action", sorted(TABLE_UPDATES))
def test_an_update_without_its_fields_is_refused(action: str) -> None:
    with pytest.raises(BadRequest, match="missing required field"):
        parse_commit(commit_body({"action": action}))


@pytest.mark.parametrize("kind", sorted(set(TABLE_REQUIREMENTS) - {"assert-create"}))
def test_a_requirement_without_its_fields_is_refused(kind: str) -> None:
    with pytest.raises(BadRequest, match="missing required field"):
        parse_commit(commit_body(requirements=[{"type": kind}]))


@pytest.mark.parametrize("name", ["arco.x", "ARCO.x", "aRcO.quality.status"])
@pytest.mark.parametrize(
    "update",
    [
        lambda name: {"action": "set-properties", "updates": {"a": "1", name: "x"}},
        lambda name: {"action": "set-properties", "updated": {name: "x"}},
        lambda name: {"action": "remove-properties", "removals": ["a", name]},
    ],
)
def test_the_catalogs_own_properties_are_neither_set_nor_removed(name: str, update: Json) -> None:
    with pytest.raises(BadRequest, match=f"reserved: {name}"):
        parse_commit(commit_body(update(name)))


def test_properties_that_only_look_like_the_catalogs_are_free() -> None:
    parse_commit(commit_body({"action": "set-properties", "updates": {"arcox": "1", "x.arco.y": "2", "arco": "3"}}))


def test_types_nested_too_deep_are_refused() -> None:
    nested: Json = "long"
    for level in range(500):
        nested = {"type": "list", "element-id": level, "element": nested, "element-required": True}
    with pytest.raises(BadRequest, match="nested more than 64 deep"):
        parse_create_table(create_request(schema=schema(column(1000, "deep", nested))))


def test_known_fields_that_are_null_are_as_good_as_absent_and_unknown_ones_are_kept() -> None:
    update = add_snapshot(1, parent_snapshot_id=None, first_row_id=None, x_new=None)
    parsed = parse_commit(commit_body(update)).updates[0]
    assert parsed == parse_commit(commit_body(add_snapshot(1, x_new=None))).updates[0]
    assert parsed.snapshot["x-new"] is None  # type: ignore[union-attr, typeddict-item]


def test_the_snapshots_that_a_commit_adds_are_named_in_order() -> None:
    parsed = parse_commit(commit_body(add_snapshot(2**62), set_ref("main", 3), add_snapshot(5)))
    assert added_snapshot_ids(parsed) == (2**62, 5)


def test_the_locations_that_a_commit_names_are_found() -> None:
    parsed = parse_commit(
        commit_body(
            {"action": "set-location", "location": "s3://b/t/"},
            {"action": "set-properties", "updates": {"write.metadata.path": "s3://b/m", "a": "s3://b/x"}},
            {"action": "set-properties", "updates": {"write.data.path": "s3://b/d"}},
            {"action": "set-properties", "updates": {"write.object-storage.path": "s3://b/o"}},
            {"action": "set-properties", "updates": {"write.folder-storage.path": "s3://b/t"}},
        )
    )
    assert explicit_locations(parsed) == ("s3://b/t", "s3://b/m", "s3://b/d", "s3://b/o")


def test_the_locations_that_a_create_names_are_found() -> None:
    wanted = parse_create_table(create_request(location="s3://b/t", properties={"write.data.path": "s3://b/d"}))
    assert explicit_locations(wanted) == ("s3://b/t", "s3://b/d")
    assert explicit_locations(parse_create_table(create_request())) == ()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": 1}, "Invalid request.name: expected a string"),
        ({"name": ""}, "Invalid request.name: the string must not be empty"),
        ({"schema": None}, "missing required field 'schema'"),
        ({"schema": "long"}, "Invalid request.schema: expected an object"),
        ({"partition-spec": []}, "Invalid request.partition-spec: expected an object"),
        ({"write-order": {"fields": [1]}}, r"Invalid request.write-order.fields\[0\]: expected an object"),
        ({"properties": {"a": 1}}, r"Invalid request.properties\['a'\]: expected a string"),
        ({"stage-create": "yes"}, "Invalid request.stage-create: expected a boolean"),
        ({"location": 5}, "Invalid request.location: expected a string"),
    ],
)
def test_a_malformed_create_is_refused_with_its_place(fields: Object, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        parse_create_table(create_request() | fields)
