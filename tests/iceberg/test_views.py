"""Views: creation, commits, history and registration (Iceberg's `ViewMetadata`)."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.view.metadata import ViewMetadata

from arco_catalog.iceberg.errors import BadRequest, CommitFailed, IllegalArgument, NoSuchView, Refusal
from arco_catalog.iceberg.view import (
    apply_view_commit,
    check_registered_view,
    current_version_id,
    explicit_locations,
    location,
    metadata_directory,
    new_view_metadata,
    parse_create_view,
    parse_view_commit,
    view_uuid,
    written_locations,
)
from arco_catalog.iceberg.view_commit import VIEW_UPDATES
from tests.iceberg.strategies import json_values
from tests.iceberg.values import (
    LOCATION,
    NOW,
    OTHER_UUID,
    UUID,
    Json,
    Object,
    column,
    commit_body,
    deep_copy,
    ids,
    schema,
)

SCHEMA = schema(column(3, "id"), column(7, "data", "string"))
OTHER_SCHEMA = schema(column(3, "id"))
DROP_ALLOWED: Object = {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}


def sql(dialect: str, text: str = "SELECT 1") -> Object:
    return {"type": "sql", "sql": text, "dialect": dialect}


def version(*representations: Object, version_id: int = 1, schema_id: int = 0, **fields: Json) -> Object:
    made: Object = {
        "version-id": version_id,
        "timestamp-ms": NOW - 5000,
        "schema-id": schema_id,
        "summary": {"engine-name": "spark"},
        "representations": list(representations) or [sql("spark")],
        "default-namespace": ["ns"],
    }
    return made | {name.replace("_", "-"): value for name, value in fields.items()}


def create_body(**fields: Json) -> Object:
    body: Object = {"name": "v", "schema": SCHEMA | {"schema-id": 9}, "view-version": version(), "properties": {}}
    return body | {name.replace("_", "-"): value for name, value in fields.items()}


def new_view(**fields: Json) -> Object:
    request = parse_create_view(create_body(**fields))
    return new_view_metadata(request, location=LOCATION, view_uuid=UUID, now_ms=NOW)


def try_commit(base: Object | None, *updates: Object, requirements: list[Object] | None = None) -> Object | None:
    parsed = parse_view_commit(commit_body(*updates, requirements=requirements))
    return apply_view_commit(base, parsed, now_ms=NOW + 10, name="ns.v")


def commit(base: Object, *updates: Object) -> Object:
    result = try_commit(base, *updates)
    assert result is not None, "the commit had no effect"
    return result


def add_version(added: Object) -> Object:
    return {"action": "add-view-version", "view-version": added}


def set_current(version_id: int) -> Object:
    return {"action": "set-current-view-version", "view-version-id": version_id}


def add_schema(columns: Object) -> Object:
    return {"action": "add-schema", "schema": columns}


def replaced(base: Object, text: str, version_id: int = 99, **fields: Json) -> Object:
    """The view after what an engine sends for a replacement of its SQL."""
    return commit(base, add_version(version(sql("spark", text), version_id=version_id, **fields)), set_current(-1))


# --- creation ---


def test_a_new_view_has_one_version_with_its_schema() -> None:
    assert new_view(properties={"a": "1"}) == {
        "view-uuid": UUID,
        "format-version": 1,
        "location": LOCATION,
        "properties": {"a": "1"},
        "schemas": [SCHEMA | {"schema-id": 0}],
        "current-version-id": 1,
        "versions": [version() | {"timestamp-ms": NOW}],
        "version-log": [{"timestamp-ms": NOW, "version-id": 1}],
    }


def test_the_clients_version_id_and_schema_id_are_not_kept() -> None:
    made = new_view(view_version=version(version_id=7, schema_id=12))
    assert (current_version_id(made), made["versions"][0]["schema-id"]) == (1, 0)


def test_unknown_fields_of_a_new_view_are_kept() -> None:
    marked = version(sql("spark") | {"x-mark": 1}, x_mark={"deep": [None]})
    made = new_view(view_version=marked)["versions"][0]
    assert (made["x-mark"], made["representations"][0]["x-mark"]) == ({"deep": [None]}, 1)


def test_two_queries_of_one_dialect_are_refused_by_the_type_that_clients_expect() -> None:
    with pytest.raises(IllegalArgument) as refused:
        new_view(view_version=version(sql("Trino"), sql("spark"), sql("trino", "SELECT 2")))
    assert refused.value.message == "Invalid view version: Cannot add multiple queries for dialect trino"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"view_version": version() | {"representations": []}}, "Cannot create view without specifying a query"),
        ({"view_version": version({"type": "plan"})}, r"Found unsupported view representations: \['plan'\]"),
        (
            {"view_version": version({"type": "sql", "sql": "x"})},
            r"representations\[0\]: missing required field 'dialect'",
        ),
        ({"view_version": version(default_namespace="ns")}, "default-namespace: expected an array"),
        ({"schema": schema(column(1, "a"), column(1, "b"))}, "same id 1"),
        ({"schema": None}, "missing required field 'schema'"),
        ({"properties": {"arco.owner": "x"}}, "reserved: arco.owner"),
        ({"properties": {"version.history.num-entries": "0"}}, "must be positive but was 0"),
        ({"properties": {"version.history.num-entries": "x"}}, "must have integer value of 32 bits, not 'x'"),
        ({"name": ""}, "name: the string must not be empty"),
    ],
)
def test_what_a_view_cannot_be_is_refused(fields: Object, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        new_view(**fields)


# --- commits ---


def test_every_update_of_the_specification_is_known() -> None:
    assert set(VIEW_UPDATES) == {
        "assign-uuid", "upgrade-format-version", "add-schema", "set-location", "set-properties", "remove-properties",
        "add-view-version", "set-current-view-version",
    }  # fmt: skip


def test_unknown_names_are_listed_those_of_tables_among_them() -> None:
    body = commit_body({"action": "add-snapshot"}, requirements=[{"type": "assert-create"}])
    with pytest.raises(BadRequest) as refused:
        parse_view_commit(body)
    assert (
        refused.value.message == "Cannot commit: unknown requirements: 'assert-create'; unknown updates: 'add-snapshot'"
    )


def test_a_view_that_is_not_there_cannot_change() -> None:
    with pytest.raises(NoSuchView, match=r"View does not exist: ns\.v"):
        try_commit(None)


def test_a_view_is_asserted_by_uuid() -> None:
    change: Object = {"action": "set-properties", "updates": {"a": "1"}}
    assert try_commit(new_view(), change, requirements=[{"type": "assert-view-uuid", "uuid": UUID.upper()}])
    with pytest.raises(CommitFailed) as failed:
        try_commit(new_view(), change, requirements=[{"type": "assert-view-uuid", "uuid": OTHER_UUID}])
    assert failed.value.message == f"Requirement failed: view UUID does not match: expected {UUID} != {OTHER_UUID}"


def test_what_changes_nothing_is_no_commit() -> None:
    view = new_view(properties={"a": "1"})
    updates: list[Object] = [
        {"action": "assign-uuid", "uuid": UUID},
        {"action": "upgrade-format-version", "format-version": 1},
        {"action": "set-location", "location": f"{LOCATION}/"},
        {"action": "set-properties", "updates": {"a": "1"}},
        {"action": "remove-properties", "removals": ["b"]},
        add_schema(SCHEMA),
        add_version(version(version_id=5, schema_id=-1)),
        set_current(-1),
        set_current(1),
    ]
    assert try_commit(view) is None
    assert try_commit(view, *updates) is None


def test_a_replacement_adds_a_version_and_a_line_of_history() -> None:
    view = replaced(new_view(), "SELECT 2", version_id=2)
    assert ids(view, "versions", "version-id") == [1, 2]
    assert view["current-version-id"] == 2
    assert view["version-log"] == [
        {"timestamp-ms": NOW, "version-id": 1},
        {"timestamp-ms": NOW - 5000, "version-id": 2},
    ]


def test_a_version_id_that_is_taken_makes_way_for_the_next() -> None:
    """Two clients replaced the same version; the second one's commit is redone (notes, C5 39)."""
    first = replaced(new_view(), "SELECT 2", version_id=2)
    second = replaced(first, "SELECT 3", version_id=2)
    assert ids(second, "versions", "version-id") == [1, 2, 3]
    assert second["current-version-id"] == 3


def test_an_equal_version_is_kept_once_and_being_current_again_is_history_of_now() -> None:
    view = replaced(new_view(), "SELECT 2")
    back = commit(view, add_version(version(version_id=7)), set_current(-1))
    assert ids(back, "versions", "version-id") == [1, 99]
    assert back["version-log"][-1] == {"timestamp-ms": NOW + 10, "version-id": 1}


def test_a_new_schema_comes_with_its_version() -> None:
    added = add_version(version(sql("spark", "SELECT 2"), version_id=2, schema_id=-1))
    view = commit(new_view(), add_schema(OTHER_SCHEMA), added, set_current(-1))
    assert ids(view, "schemas", "schema-id") == [0, 1]
    assert view["versions"][1]["schema-id"] == 1
    again = commit(
        view, add_schema(SCHEMA), add_version(version(sql("spark", "SELECT 3"), schema_id=-1)), set_current(-1)
    )
    assert ids(again, "schemas", "schema-id") == [0, 1]
    assert again["versions"][2]["schema-id"] == 0


def test_only_the_last_version_that_a_commit_makes_current_is_history() -> None:
    view = replaced(new_view(), "SELECT 2", version_id=2)
    moved = commit(view, add_version(version(sql("spark", "SELECT 3"))), set_current(-1), set_current(1))
    assert ids(moved, "version-log", "version-id") == [1, 2, 1]


def test_a_lost_dialect_is_refused_unless_the_view_allows_it() -> None:
    view = new_view(view_version=version(sql("spark"), sql("Trino")))
    without = [add_version(version(sql("spark", "SELECT 2"))), set_current(-1)]
    with pytest.raises(BadRequest) as refused:
        try_commit(view, *without)
    assert refused.value.message == (
        "Cannot replace view due to loss of view dialects (replace.drop-dialect.allowed=false):\n"
        "Previous dialects: [spark, trino]\nNew dialects: [spark]"
    )
    assert commit(view, DROP_ALLOWED, *without)["current-version-id"] == 2


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ([{"action": "assign-uuid", "uuid": OTHER_UUID}], "Cannot reassign uuid"),
        ([{"action": "upgrade-format-version", "format-version": 0}], "Cannot downgrade v1 view to v0"),
        ([{"action": "upgrade-format-version", "format-version": 2}], "Unsupported format version: 2"),
        ([add_version(version(sql("spark", "x"), schema_id=5))], "Cannot add version with unknown schema: 5"),
        ([add_version(version(sql("spark", "x"), schema_id=-1))], "no schema has been added"),
        ([add_version(version(sql("spark", "x"), sql("SPARK")))], "multiple queries for dialect spark"),
        ([set_current(8)], "Cannot set current version to unknown version: 8"),
        ([set_current(-1)], "Cannot set last version id: no current version id has been set"),
        (
            [{"action": "set-properties", "updates": {"version.history.num-entries": "0"}}],
            r"version\.history\.num-entries must be positive but was 0",
        ),
        ([{"action": "set-properties", "updates": {"ARCO.x": "1"}}], "reserved"),
        ([{"action": "set-location", "location": "/"}], "Cannot write metadata without a location"),
    ],
)
def test_a_change_that_cannot_be_is_refused(updates: list[Object], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        try_commit(new_view(), *updates)


# --- history ---


def grown(count: int, view: Object) -> Object:
    for number in range(count):
        view = replaced(view, f"SELECT {number} AS n")
    return view


def test_ten_versions_are_kept_and_history_before_one_that_went_is_cut_off() -> None:
    view = grown(11, new_view())
    assert len(view["versions"]) == 10
    assert ids(view, "versions", "version-id") == ids(view, "version-log", "version-id") == list(range(100, 110))


def test_the_number_of_versions_is_the_views_choice_down_to_what_a_commit_adds() -> None:
    view = grown(5, new_view(properties={"version.history.num-entries": "2"}))
    assert ids(view, "versions", "version-id") == [102, 103]
    several = [add_version(version(sql("spark", f"SELECT {number}0"))) for number in range(3)]
    assert ids(commit(view, *several), "versions", "version-id") == [103, 104, 105, 106]


def test_the_current_version_is_kept_however_old() -> None:
    old = commit(grown(3, new_view()), set_current(1))
    narrowed = commit(old, {"action": "set-properties", "updates": {"version.history.num-entries": "2"}})
    assert ids(narrowed, "versions", "version-id") == [1, 101]
    assert ids(narrowed, "version-log", "version-id") == [101, 1]


def test_versions_stay_in_order_while_none_expires() -> None:
    view = replaced(replaced(new_view(), "SELECT 2", version_id=2), "SELECT 3", version_id=3)
    assert ids(commit(view, set_current(2)), "versions", "version-id") == [1, 2, 3]


# --- files and registration ---


def test_a_views_document_tells_who_and_where_it_is() -> None:
    view = new_view(properties={"write.metadata.path": "s3://b/m/"})
    assert (view_uuid(view), location(view)) == (UUID, LOCATION)
    assert metadata_directory(view, location(view)) == "s3://b/m"
    assert written_locations(view) == ("s3://b/m/",)


def test_the_locations_that_requests_name_are_found() -> None:
    wanted = parse_create_view(create_body(location="s3://b/v/", properties={"write.metadata.path": "s3://b/m"}))
    assert explicit_locations(wanted) == ("s3://b/v", "s3://b/m")
    parsed = parse_view_commit(commit_body({"action": "set-location", "location": "s3://b/w"}))
    assert explicit_locations(parsed) == ("s3://b/w",)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"view-uuid": None}, "missing required field 'view-uuid'"),
        ({"format-version": 2}, "Unsupported format version: 2"),
        ({"current-version-id": 5}, r"Cannot find current version 5 in view versions: \[1\]"),
        ({"versions": [version(), version()]}, "version-id 1 is there twice"),
        ({"schemas": []}, r"Cannot find current schema with id 0 in schemas: \[\]"),
        ({"version-log": [{}]}, r"version-log\[0\]: missing required field"),
        ({"properties": {"a": 1}}, "expected a string"),
    ],
)
def test_a_file_that_is_no_view_is_refused(fields: Object, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        check_registered_view(new_view() | fields)


def test_a_file_without_properties_can_be_registered_and_changed() -> None:
    view = new_view()
    del view["properties"]
    assert check_registered_view(view) is view
    assert replaced(view, "SELECT 2")["properties"] == {}


def test_a_file_with_an_invalid_size_of_the_history_can_be_registered_and_corrected() -> None:
    view = new_view() | {"properties": {"version.history.num-entries": "0"}}
    assert check_registered_view(view) is view
    corrected = commit(view, {"action": "remove-properties", "removals": ["version.history.num-entries"]})
    assert corrected["properties"] == {}


# --- laws ---

changes: st.SearchStrategy[Object] = st.one_of(
    st.builds(
        lambda text, i: add_version(version(sql("spark", text), version_id=i)),
        st.sampled_from("abc"),
        st.integers(1, 9),
    ),
    st.builds(
        lambda schema_id: add_version(version(sql("trino"), sql("spark"), schema_id=schema_id)), st.integers(-1, 1)
    ),
    st.builds(set_current, st.sampled_from([-1, -1, 1, 2, 3, 4])),
    st.builds(add_schema, st.sampled_from([SCHEMA, OTHER_SCHEMA])),
    st.just(DROP_ALLOWED),
    st.builds(
        lambda n: {"action": "set-properties", "updates": {"version.history.num-entries": n}}, st.sampled_from("123")
    ),
)


@given(st.lists(st.lists(changes, max_size=4), max_size=12))
def test_a_view_stays_whole_and_its_base_untouched(history: list[list[Object]]) -> None:
    view = new_view() | {"x-mark": {"kept": [2**70]}}
    for updates in history:
        before = deep_copy(view)
        with suppress(Refusal):
            result = try_commit(view, *updates)
            assert result != view
            if result is not None:
                check_registered_view(result)
                ViewMetadata.model_validate(deep_copy(result))
                assert result["x-mark"] == {"kept": [2**70]}
                assert result["version-log"][-1]["version-id"] == result["current-version-id"]
                assert view == before
                view = result


@given(st.sampled_from(sorted(VIEW_UPDATES)), st.dictionaries(st.text(max_size=8), json_values, max_size=4))
def test_any_fields_of_an_update_are_read_or_refused(action: str, fields: Object) -> None:
    with suppress(BadRequest):
        parse_view_commit({"updates": [fields | {"action": action}]})


@given(st.sampled_from(sorted(create_body())), json_values)
def test_any_value_in_a_field_of_a_create_is_read_or_refused(name: str, value: Json) -> None:
    with suppress(BadRequest):
        new_view(**{name: value})


@given(json_values)
def test_any_value_is_read_or_refused(value: Json) -> None:
    for read in (parse_view_commit, parse_create_view, check_registered_view):
        with suppress(BadRequest):
            read(value)
