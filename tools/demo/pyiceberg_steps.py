"""The steps of the demo in which PyIceberg works on the lake, and the two engines read each other's work."""

import datetime

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import YearTransform
from pyiceberg.types import DateType, LongType, NestedField

from tools.demo import checks
from tools.demo.data import with_column
from tools.demo.lake import Lake

REVENUE = "tpch.staging.revenue"


def _revenue(lake: Lake, status: str) -> pa.Table:
    """Turnover by day of the orders in one status: a day, a status, an amount, a number of orders."""
    orders = lake.files["orders"]
    orders = orders.filter(pc.equal(orders["o_orderstatus"], status))
    days = orders.group_by("o_orderdate").aggregate([("o_totalprice", "sum"), ("o_orderkey", "count")])
    return pa.table(
        {
            "day": days["o_orderdate"],
            "status": pa.repeat(status, days.num_rows),
            "amount": days["o_totalprice_sum"].cast(pa.decimal128(30, 2)),
            "orders": days["o_orderkey_count"],
        }
    )


def create_and_append(lake: Lake) -> str:
    """PyIceberg makes a partitioned table and appends to it"""
    first, second = _revenue(lake, "F"), _revenue(lake, "O")
    table = lake.pyiceberg.create_table(REVENUE, schema=first.schema, properties={"owner": "pyiceberg"})
    with table.update_spec() as spec:
        spec.add_identity("status")
    table.append(first)
    table.append(second)
    lake.expected[REVENUE] = pa.concat_tables([first, second])
    lake.check_with_both(REVENUE)
    return f"{REVENUE}, {lake.expected[REVENUE].num_rows:,} rows"


def change_rows(lake: Lake) -> None:
    """PyIceberg deletes, overwrites and upserts rows"""
    table = lake.pyiceberg.load_table(REVENUE)
    rows = lake.expected[REVENUE]

    table.delete("status = 'O'")
    rows = rows.filter(pc.not_equal(rows["status"], "O"))

    third = _revenue(lake, "P")
    table.overwrite(third, overwrite_filter="day >= '1995-01-01'")
    rows = pa.concat_tables([rows.filter(pc.less(rows["day"], datetime.date(1995, 1, 1))), third])

    doubled = with_column(third, "orders", pc.multiply(third["orders"], 2))
    table.upsert(doubled, join_cols=["day", "status"])
    rows = pa.concat_tables([rows.filter(pc.not_equal(rows["status"], "P")), doubled])

    lake.expected[REVENUE] = rows
    lake.check_with_both(REVENUE)


def evolve(lake: Lake) -> None:
    """PyIceberg evolves schema and properties"""
    table = lake.pyiceberg.load_table(REVENUE)
    with table.transaction() as transaction:
        with transaction.update_schema() as schema:
            schema.add_column("customers", LongType(), "not filled yet")
            schema.rename_column("amount", "turnover")
        transaction.set_properties({"commit.note": "two updates, one commit"})
    table.update_schema().move_first("status").commit()
    rows = lake.expected[REVENUE].rename_columns({"amount": "turnover"})
    rows = rows.append_column("customers", pa.nulls(rows.num_rows, pa.int64()))
    lake.expected[REVENUE] = rows.select(["status", "day", "turnover", "orders", "customers"])
    lake.check_with_both(REVENUE)


def manage_snapshots(lake: Lake) -> str:
    """PyIceberg tags, branches and expires snapshots"""
    table = lake.pyiceberg.load_table(REVENUE)
    first, current = table.history()[0].snapshot_id, table.metadata.current_snapshot_id
    if current is None:
        raise checks.Mismatch(f"{REVENUE} has no current snapshot")
    table.manage_snapshots().create_tag(first, "first").create_branch(current, "side").commit()
    table.maintenance.expire_snapshots().by_ids(
        [s.snapshot_id for s in table.snapshots() if s.snapshot_id not in (first, current)]
    ).commit()
    checks.same(f"snapshots of {REVENUE}", {s.snapshot_id for s in table.snapshots()}, {first, current})
    checks.same(f"refs of {REVENUE}", set(table.refs()), {"main", "first", "side"})
    lake.check_with_both(REVENUE)
    return "two snapshots left"


def commit_to_sparks_tables(lake: Lake) -> str:
    """Each engine appends to the other's table"""
    extra = lake.files["region"].slice(0, 2)
    extra = with_column(extra, "r_regionkey", pc.add(extra["r_regionkey"], 100))
    lake.pyiceberg.load_table("tpch.region").append(extra)
    lake.expected["tpch.region"] = pa.concat_tables([lake.expected["tpch.region"], extra])
    lake.check_with_both("tpch.region")

    lake.sql(f"INSERT INTO rest.{REVENUE} SELECT 'X', DATE'2000-01-01', CAST(1.25 AS DECIMAL(30, 2)), 1, NULL")
    rows = lake.expected[REVENUE]
    row = {"status": "X", "day": "2000-01-01", "turnover": "1.25", "orders": 1, "customers": None}
    one = pa.table({name: pa.array([value]).cast(rows.schema.field(name).type) for name, value in row.items()})
    lake.expected[REVENUE] = pa.concat_tables([rows, one])
    lake.check_with_both(REVENUE)
    return "both read it"


def drop(lake: Lake) -> None:
    """PyIceberg makes, renames and drops a table"""
    catalog = lake.pyiceberg
    schema = Schema(NestedField(1, "day", DateType(), required=True), NestedField(2, "orders", LongType()))
    by_year = PartitionSpec(PartitionField(source_id=1, field_id=1000, transform=YearTransform(), name="day_year"))
    catalog.create_table("tpch.staging.brief", schema=schema, partition_spec=by_year)
    catalog.rename_table("tpch.staging.brief", "tpch.brief")
    checks.same("brief under its old name", catalog.table_exists("tpch.staging.brief"), False)
    catalog.drop_table("tpch.brief")
    checks.same("brief under its new name", catalog.table_exists("tpch.brief"), False)
    listed = sorted(".".join(name) for name in catalog.list_tables("tpch.staging"))
    checks.same("tables in tpch.staging", listed, ["tpch.staging.nation", REVENUE])


def read_everything(lake: Lake) -> str:
    """Read every table back with both engines"""
    for table in sorted(lake.expected):
        lake.check_with_both(table)
    rows = sum(table.num_rows for table in lake.expected.values())
    return f"{len(lake.expected)} tables, {rows:,} rows, every column's sum"


STEPS = (create_and_append, change_rows, evolve, manage_snapshots, commit_to_sparks_tables, drop, read_everything)
