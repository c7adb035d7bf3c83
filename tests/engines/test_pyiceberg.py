"""PyIceberg on the catalog, on local files and on S3: each of its catalog's methods, and each way it changes a table.

A second client of the same kind looks at the outcome: what it finds is what was committed.
"""

import datetime
from collections.abc import Iterator

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import SortDirection
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from tests.engines.lake import Lake
from tools.demo.engines import pyiceberg_catalog
from tools.demo.server import WAREHOUSE

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "name": pa.array(["a", "b", None, "ç"], pa.string()),
        "day": pa.array([datetime.date(2026, month, 1) for month in (1, 1, 2, 2)], pa.date32()),
    }
)
KEYS = Schema(NestedField(1, "id", LongType(), required=False))


@pytest.fixture(params=["rest", "s3"])
def either_lake(request: pytest.FixtureRequest, local_lake: Lake, s3_lake: Lake) -> Lake:
    """Each of them in turn: it takes no JVM."""
    return local_lake if request.param == local_lake.name else s3_lake


@pytest.fixture
def catalog(either_lake: Lake) -> Iterator[Catalog]:
    """The client at work. The lake's bystander is another."""
    with pyiceberg_catalog(either_lake.server.uri, WAREHOUSE, dict(either_lake.s3)) as client:
        yield client


@pytest.fixture
def namespace(request: pytest.FixtureRequest, catalog: Catalog) -> str:
    """An empty namespace of this test's own."""
    name = f"pyiceberg_{request.node.originalname}"
    catalog.create_namespace(name)
    return name


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> Table:
    """A table with `ROWS` in it."""
    made = catalog.create_table(f"{namespace}.t", schema=ROWS.schema)
    made.append(ROWS)
    return made


def ids(table: Table) -> list[int]:
    return sorted(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


def numbered(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


def test_namespaces_nest_have_properties_and_must_be_empty_to_go(catalog: Catalog, either_lake: Lake) -> None:
    catalog.create_namespace("py_outer", {"owner": "a", "tier": "1"})
    catalog.create_namespace(("py_outer", "in.ner"))
    catalog.create_namespace_if_not_exists("py_outer")
    catalog.create_table(("py_outer", "in.ner", "täble/1"), KEYS)

    assert ("py_outer",) in catalog.list_namespaces()
    assert catalog.list_namespaces("py_outer") == [("py_outer", "in.ner")]
    assert catalog.list_tables(("py_outer", "in.ner")) == [("py_outer", "in.ner", "täble/1")]
    assert catalog.load_table(("py_outer", "in.ner", "täble/1")).schema() == KEYS
    changed = catalog.update_namespace_properties("py_outer", removals={"tier", "none"}, updates={"owner": "b"})
    assert (changed.removed, changed.updated, changed.missing) == (["tier"], ["owner"], ["none"])
    assert either_lake.bystander.load_namespace_properties("py_outer")["owner"] == "b"
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace("py_outer")
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("py_outer")
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table("py_none.t", KEYS)

    catalog.drop_table(("py_outer", "in.ner", "täble/1"))
    catalog.drop_namespace(("py_outer", "in.ner"))
    catalog.drop_namespace("py_outer")
    assert not either_lake.bystander.namespace_exists("py_outer")


def test_rows_are_appended_overwritten_deleted_and_upserted(
    catalog: Catalog, either_lake: Lake, namespace: str, table: Table
) -> None:
    with table.update_spec() as spec:
        spec.add_identity("day")
    table.append(ROWS.slice(0, 1).set_column(0, "id", [[5]]))
    table.overwrite(ROWS.slice(1, 1), overwrite_filter="id >= 4")
    table.delete("id = 3 OR name = 'a'")
    assert either_lake.rows(f"{namespace}.t") == [(2, "b", datetime.date(2026, 1, 1))] * 2

    table.overwrite(ROWS)
    done = table.upsert(
        pa.table({"id": [4, 6], "name": ["d", "f"], "day": [datetime.date(2026, 3, 1)] * 2}, ROWS.schema),
        join_cols=["id"],
    )
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    with table.update_spec() as spec:
        spec.remove_field("day")
        spec.add_identity("name")
    table.dynamic_partition_overwrite(ROWS.slice(0, 1).set_column(0, "id", [[10]]))
    assert [row[:2] for row in either_lake.rows(f"{namespace}.t")] == [
        (10, "a"),
        (2, "b"),
        (3, None),
        (4, "d"),
        (6, "f"),
    ]
    either_lake.assert_receipts(f"{namespace}.t")


def test_a_table_takes_another_shape(either_lake: Lake, namespace: str, table: Table) -> None:
    with table.update_schema() as schema:
        schema.add_column("price", LongType(), doc="in cents")
        schema.move_first("name")
        schema.rename_column("name", "label")
        schema.delete_column("day")
    with table.update_spec() as spec:
        spec.add_field("id", BucketTransform(4), "bucket")
    with table.update_spec() as spec:
        spec.remove_field("bucket")
        spec.add_identity("label")
    with table.update_sort_order() as order:
        order.desc("id", IdentityTransform())
    with table.transaction() as change:
        change.set_properties(team="a", tier="1")
        change.remove_properties("tier")
        change.upgrade_table_version(2)
    table.append(pa.table({"label": ["z"], "id": [9], "price": [7]}))

    assert ("z", 9, 7) in either_lake.rows(f"{namespace}.t")
    found = either_lake.bystander.load_table(f"{namespace}.t")
    assert found.schema().column_names == ["label", "id", "price"]
    assert [field.name for field in found.spec().fields] == ["label"]
    assert [field.direction for field in found.sort_order().fields] == [SortDirection.DESC]
    assert (found.properties["team"], "tier" in found.properties) == ("a", False)
    assert len(found.metadata.schemas) == 2
    either_lake.assert_receipts(f"{namespace}.t")


def test_a_transaction_is_one_commit(either_lake: Lake, namespace: str, table: Table) -> None:
    before = len(either_lake.bystander.load_table(f"{namespace}.t").metadata.metadata_log)
    with table.transaction() as change:
        with change.update_schema() as schema:
            schema.add_column("note", StringType())
        change.set_properties(team="a")
        change.delete("id = 1")
        change.append(pa.table({"id": [7], "note": ["new"]}))
    found = either_lake.bystander.load_table(f"{namespace}.t")
    assert ids(found) == [2, 3, 4, 7]
    assert len(found.metadata.metadata_log) == before + 1
    either_lake.assert_receipts(f"{namespace}.t")


def test_a_table_and_its_first_rows_are_one_commit(catalog: Catalog, either_lake: Lake, namespace: str) -> None:
    with catalog.create_table_transaction(f"{namespace}.t", schema=KEYS, properties={"team": "a"}) as creation:
        creation.append(numbered(1, 2))
        assert not either_lake.bystander.table_exists(f"{namespace}.t")
    assert either_lake.rows(f"{namespace}.t") == [(1,), (2,)]
    assert either_lake.bystander.load_table(f"{namespace}.t").metadata.metadata_log == []
    either_lake.assert_receipts(f"{namespace}.t")


def test_of_two_clients_with_one_base_the_second_is_told(
    catalog: Catalog, either_lake: Lake, namespace: str, table: Table
) -> None:
    late = either_lake.bystander.load_table(f"{namespace}.t")
    table.update_schema().add_column("one", LongType()).commit()
    with pytest.raises(CommitFailedException, match="schema"):
        late.update_schema().add_column("two", LongType()).commit()
    assert catalog.load_table(f"{namespace}.t").schema().column_names == ["id", "name", "day", "one"]


def test_branches_tags_and_the_past(either_lake: Lake, namespace: str, table: Table) -> None:
    first = table.metadata.current_snapshot_id
    assert first is not None
    table.manage_snapshots().create_tag(first, "early").create_branch(first, "audit").commit()
    table.append(ROWS.slice(0, 1).set_column(0, "id", [[8]]), branch="audit")
    table.delete("id = 1")
    found = either_lake.bystander.load_table(f"{namespace}.t")
    assert ids(found) == [2, 3, 4]
    assert found.scan(snapshot_id=first).count() == 4
    assert found.scan().use_ref("audit").count() == 5
    assert {name: ref.snapshot_ref_type.value for name, ref in found.refs().items()} == {
        "main": "branch",
        "audit": "branch",
        "early": "tag",
    }

    table.manage_snapshots().remove_tag("early").remove_branch("audit").commit()
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    assert ids(either_lake.bystander.load_table(f"{namespace}.t")) == [1, 2, 3, 4]
    table.append(ROWS)
    table.maintenance.expire_snapshots().by_id(first).commit()
    found = either_lake.bystander.load_table(f"{namespace}.t")
    assert first not in {snapshot.snapshot_id for snapshot in found.snapshots()}
    assert found.scan().count() == 8
    either_lake.assert_receipts(f"{namespace}.t")


def test_tables_are_renamed_registered_purged_and_dropped(catalog: Catalog, either_lake: Lake, namespace: str) -> None:
    made = catalog.create_table(f"{namespace}.one", KEYS)
    made.append(numbered(1))
    catalog.create_table_if_not_exists(f"{namespace}.one", KEYS)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(f"{namespace}.one", KEYS)
    catalog.rename_table(f"{namespace}.one", f"{namespace}.two")
    with pytest.raises(NoSuchTableError):
        catalog.load_table(f"{namespace}.one")
    assert either_lake.rows(f"{namespace}.two") == [(1,)]
    either_lake.assert_receipts(f"{namespace}.two")

    metadata = catalog.load_table(f"{namespace}.two").metadata_location
    catalog.drop_table(f"{namespace}.two")
    catalog.register_table(f"{namespace}.three", metadata).append(numbered(2))
    assert either_lake.rows(f"{namespace}.three") == [(1,), (2,)]
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table(f"{namespace}.three", metadata)

    catalog.create_table(f"{namespace}.four", KEYS)
    assert either_lake.tables(namespace) == ["four", "three"]
    catalog.purge_table(f"{namespace}.four")
    assert either_lake.tables(namespace) == ["three"]


def test_a_governed_table_is_used_as_any_and_keeps_its_labels(
    catalog: Catalog, either_lake: Lake, namespace: str, table: Table
) -> None:
    name = f"{namespace}.t"
    either_lake.govern(name, {"arco.owner": "finance", "arco.column.2.tag.pii": "name"})

    governed = catalog.load_table(name)
    governed.append(ROWS)
    with governed.update_schema() as update:
        update.rename_column("name", "label")
    with governed.transaction() as transaction:
        transaction.set_properties({"team": "a"})
    with pytest.raises(BadRequestError, match="are reserved"), governed.transaction() as transaction:
        transaction.set_properties({"arco.owner": "me"})
    catalog.rename_table(name, f"{namespace}.u")

    assert len(either_lake.rows(f"{namespace}.u")) == 2 * len(ROWS)
    assert either_lake.labels(f"{namespace}.u") == {
        "object-labels": {"arco.owner": "finance"},
        "fields": [{"field-id": 2, "labels": {"arco.tag.pii": "name"}}],
    }


def test_views(catalog: Catalog, either_lake: Lake, namespace: str) -> None:
    sql = SQLViewRepresentation(type="sql", sql="SELECT 1 AS id", dialect="spark")
    version = ViewVersion.model_validate(
        {
            "version-id": 1,
            "schema-id": 0,
            "timestamp-ms": 1,
            "summary": {},
            "representations": [sql],
            "default-namespace": [namespace],
        }
    )
    catalog.create_view(f"{namespace}.v", KEYS, version, properties={"team": "a"})
    found = either_lake.bystander.load_view(f"{namespace}.v")
    assert (found.current_version().representations[0].root, found.properties["team"]) == (sql, "a")
    assert catalog.list_views(namespace) == [(namespace, "v")]
    with pytest.raises(ViewAlreadyExistsError):
        catalog.create_view(f"{namespace}.v", KEYS, version)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(f"{namespace}.v", KEYS)

    catalog.drop_view(f"{namespace}.v")
    assert not either_lake.bystander.view_exists(f"{namespace}.v")
    with pytest.raises(NoSuchViewError):
        catalog.drop_view(f"{namespace}.v")
