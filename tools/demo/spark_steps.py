"""The steps of the demo in which Spark works on the lake: each does a thing that users of Iceberg do, and checks it at
once."""

import datetime
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tools.demo import checks
from tools.demo.data import TABLES, multiple_of, with_column
from tools.demo.lake import Lake

CUTOFF = datetime.date(1996, 1, 1)
NEW_KEYS = 100_000_000  # rows that the demo adds get keys that no generated row has


@dataclass(frozen=True)
class Layout:
    """How a table of the demo is partitioned, and its properties."""

    partitioning: str
    properties: dict[str, str]


MERGE_ON_READ = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}
LAYOUTS = {
    "supplier": Layout("", {}),
    "customer": Layout("c_mktsegment", {}),
    "part": Layout("truncate(7, p_brand)", {"format-version": "3", **MERGE_ON_READ}),
    "partsupp": Layout("bucket(4, ps_partkey)", MERGE_ON_READ),
    "orders": Layout("months(o_orderdate)", {}),
    "lineitem": Layout("bucket(4, l_orderkey)", {"write.metadata.compression-codec": "gzip"}),
}


def make_namespaces(lake: Lake) -> str:
    """Namespaces, a nested one too"""
    lake.sql("CREATE NAMESPACE rest.tpch COMMENT 'eight tables' WITH PROPERTIES ('owner-team' = 'demo')")
    lake.sql("CREATE NAMESPACE rest.tpch.staging")
    lake.sql("CREATE NAMESPACE rest.tpch.staging.scratch")
    nested = [row[0] for row in lake.sql("SHOW NAMESPACES IN rest.tpch.staging")]
    checks.same("namespaces in tpch.staging", nested, ["tpch.staging.scratch"])
    lake.sql("ALTER NAMESPACE rest.tpch SET PROPERTIES ('owner-team' = 'arco')")
    described = {row[0]: row[1] for row in lake.sql("DESCRIBE NAMESPACE EXTENDED rest.tpch")}
    checks.same("comment of tpch", described["Comment"], "eight tables")
    checks.same("owner-team of tpch", "(owner-team,arco)" in described["Properties"], True)
    lake.sql("DROP NAMESPACE rest.tpch.staging.scratch")
    return "tpch, tpch.staging"


def make_tables(lake: Lake) -> None:
    """Make the eight tables, two of them as a query's result"""
    for name in TABLES:
        lake.expected[f"tpch.{name}"] = lake.files[name]
        if layout := LAYOUTS.get(name):
            _create_empty(lake, name, layout)
        else:
            lake.sql(f"CREATE TABLE rest.tpch.{name} USING iceberg AS SELECT * FROM {in_files(name)}")
            lake.check(f"tpch.{name}")
    lake.sql("ALTER TABLE rest.tpch.lineitem WRITE ORDERED BY l_shipdate, l_orderkey")
    found = sorted(row["tableName"] for row in lake.sql("SHOW TABLES IN rest.tpch"))
    checks.same("tables in tpch", found, sorted(TABLES))


def in_files(name: str) -> str:
    """The generated rows of a table, as Spark names them."""
    return f"files_{name}"


def _create_empty(lake: Lake, name: str, layout: Layout) -> None:
    columns = ", ".join(f"{column} {kind}" for column, kind in lake.spark.table(in_files(name)).dtypes)
    partitioned = f"PARTITIONED BY ({layout.partitioning})" if layout.partitioning else ""
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in layout.properties.items())
    described = f"TBLPROPERTIES ({properties})" if properties else ""
    lake.sql(f"CREATE TABLE rest.tpch.{name} ({columns}) USING iceberg {partitioned} {described}")


def load(lake: Lake) -> str:
    """Load them, orders and lineitem up to 1995"""
    for name in LAYOUTS:
        where = {
            "orders": f"WHERE o_orderdate < DATE'{CUTOFF}'",
            "lineitem": f"WHERE l_shipdate < DATE'{CUTOFF}'",
        }.get(name, "")
        lake.sql(f"INSERT INTO rest.tpch.{name} SELECT * FROM {in_files(name)} {where}")
    orders, lineitem = lake.files["orders"], lake.files["lineitem"]
    lake.expected["tpch.orders"] = orders.filter(pc.less(orders["o_orderdate"], CUTOFF))
    lake.expected["tpch.lineitem"] = lineitem.filter(pc.less(lineitem["l_shipdate"], CUTOFF))
    for name in LAYOUTS:
        lake.check(f"tpch.{name}")
    return f"{sum(table.num_rows for table in lake.expected.values()):,} rows"


def append(lake: Lake) -> str:
    """Append the orders and lineitems since 1996"""
    lake.sql(f"INSERT INTO rest.tpch.orders SELECT * FROM {in_files('orders')} WHERE o_orderdate >= DATE'{CUTOFF}'")
    later = lake.spark.table(in_files("lineitem")).where(f"l_shipdate >= DATE'{CUTOFF}'")
    later.writeTo("rest.tpch.lineitem").append()
    for name in ("orders", "lineitem"):
        lake.expected[f"tpch.{name}"] = lake.files[name]
        lake.check(f"tpch.{name}")
    return f"{later.count():,} lineitems"


def merge(lake: Lake) -> str:
    """MERGE INTO orders"""
    columns = lake.files["orders"].column_names
    changed = ", ".join(
        {"o_totalprice": "CAST(o_totalprice + 1 AS DECIMAL(15, 2)) AS o_totalprice"}.get(name, name) for name in columns
    )
    added = ", ".join({"o_orderkey": f"o_orderkey + {NEW_KEYS} AS o_orderkey"}.get(name, name) for name in columns)
    lake.sql(f"""
        MERGE INTO rest.tpch.orders AS t
        USING (SELECT {changed} FROM {in_files("orders")} WHERE o_orderkey % 7 = 0
               UNION ALL
               SELECT {added} FROM {in_files("orders")} WHERE o_orderkey % 50 = 1) AS s
        ON t.o_orderkey = s.o_orderkey
        WHEN MATCHED AND s.o_orderkey % 35 = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.o_totalprice = s.o_totalprice
        WHEN NOT MATCHED THEN INSERT *
    """)
    orders = lake.files["orders"]
    key, price = orders["o_orderkey"], orders["o_totalprice"]
    raised = with_column(orders, "o_totalprice", pc.if_else(multiple_of(key, 7), pc.add(price, pa.scalar(1)), price))
    kept = raised.filter(pc.invert(multiple_of(key, 35)))
    more = orders.filter(multiple_of(key, 50, 1))
    more = with_column(more, "o_orderkey", pc.add(more["o_orderkey"], NEW_KEYS))
    lake.expected["tpch.orders"] = pa.concat_tables([kept, more])
    lake.check("tpch.orders")
    return f"{orders.num_rows - kept.num_rows:,} removed, {more.num_rows:,} added"


def delete_rows(lake: Lake) -> str:
    """DELETE: copy-on-write, position deletes, deletion vectors"""
    removed = 0
    for name, key in (("lineitem", "l_orderkey"), ("partsupp", "ps_partkey"), ("part", "p_partkey")):
        lake.sql(f"DELETE FROM rest.tpch.{name} WHERE {key} % 10 = 3")
        rows = lake.expected[f"tpch.{name}"]
        kept = rows.filter(pc.invert(multiple_of(rows[key], 10, 3)))
        removed += rows.num_rows - kept.num_rows
        lake.expected[f"tpch.{name}"] = kept
        lake.check(f"tpch.{name}")
    return f"{removed:,} rows"


def update_rows(lake: Lake) -> None:
    """UPDATE partsupp, merge-on-read"""
    lake.sql("UPDATE rest.tpch.partsupp SET ps_availqty = ps_availqty + 5 WHERE ps_suppkey % 3 = 1")
    rows = lake.expected["tpch.partsupp"]
    quantity, chosen = rows["ps_availqty"], multiple_of(rows["ps_suppkey"], 3, 1)
    more = pc.if_else(chosen, pc.add(quantity, pa.scalar(5, pa.int32())), quantity)
    lake.expected["tpch.partsupp"] = with_column(rows, "ps_availqty", more)
    lake.check("tpch.partsupp")


def evolve_schema(lake: Lake) -> None:
    """Evolve customer's schema: add, move, rename, drop, widen a column"""
    lake.sql("ALTER TABLE rest.tpch.customer ADD COLUMN c_rank INT COMMENT 'made up' AFTER c_custkey")
    lake.sql("ALTER TABLE rest.tpch.customer RENAME COLUMN c_comment TO c_remark")
    lake.sql("ALTER TABLE rest.tpch.customer DROP COLUMN c_phone")
    lake.sql("UPDATE rest.tpch.customer SET c_rank = CAST(c_custkey % 100 AS INT)")
    lake.sql("ALTER TABLE rest.tpch.customer ALTER COLUMN c_rank TYPE BIGINT")
    rows = lake.expected["tpch.customer"]
    key = rows["c_custkey"]
    rank = pc.subtract(key, pc.multiply(pc.divide(key, 100), 100))
    rows = rows.add_column(1, "c_rank", rank).drop_columns(["c_phone"])
    lake.expected["tpch.customer"] = rows.rename_columns({"c_comment": "c_remark"})
    lake.check("tpch.customer")


def evolve_partitions(lake: Lake) -> str:
    """Evolve the partition specs of orders and supplier"""
    lake.sql("ALTER TABLE rest.tpch.orders REPLACE PARTITION FIELD o_orderdate_month WITH years(o_orderdate)")
    lake.sql("ALTER TABLE rest.tpch.supplier ADD PARTITION FIELD bucket(4, s_nationkey)")
    for name, key in (("orders", "o_orderkey"), ("supplier", "s_suppkey")):
        rows = lake.files[name]
        columns = ", ".join({key: f"{key} + {2 * NEW_KEYS}"}.get(column, column) for column in rows.column_names)
        lake.sql(f"INSERT INTO rest.tpch.{name} SELECT {columns} FROM {in_files(name)} WHERE {key} % 20 = 2")
        more = rows.filter(multiple_of(rows[key], 20, 2))
        more = with_column(more, key, pc.add(more[key], 2 * NEW_KEYS))
        lake.expected[f"tpch.{name}"] = pa.concat_tables([lake.expected[f"tpch.{name}"], more])
        lake.check(f"tpch.{name}")
    specs = lake.sql("SELECT DISTINCT spec_id FROM rest.tpch.orders.data_files ORDER BY 1")
    checks.same("partition specs in orders", [row[0] for row in specs], [0, 1])
    return "files of two specs side by side"


def branch_and_tag(lake: Lake) -> str:
    """Tag and branch part: write, read, fast-forward"""
    before = lake.expected["tpch.part"]
    lake.sql("ALTER TABLE rest.tpch.part CREATE TAG loaded RETAIN 365 DAYS")
    lake.sql("ALTER TABLE rest.tpch.part CREATE BRANCH audit RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS")
    lake.sql("DELETE FROM rest.tpch.part.branch_audit WHERE p_size > 40")
    after = before.filter(pc.less_equal(before["p_size"], 40))
    lake.check("tpch.part")
    lake.check("tpch.part", "VERSION AS OF 'audit'", after)
    lake.sql("CALL rest.system.fast_forward('tpch.part', 'main', 'audit')")
    lake.expected["tpch.part"] = after
    lake.check("tpch.part")
    lake.sql("ALTER TABLE rest.tpch.part DROP BRANCH audit")
    refs = sorted((row["name"], row["type"]) for row in lake.sql("SELECT * FROM rest.tpch.part.refs"))
    checks.same("refs of part", refs, [("loaded", "TAG"), ("main", "BRANCH")])
    lake.check("tpch.part", "VERSION AS OF 'loaded'", before)
    return f"{before.num_rows - after.num_rows:,} rows fewer than the tag"


def time_travel(lake: Lake) -> str:
    """Travel in time: by snapshot, by timestamp, by rollback"""
    orders = lake.files["orders"]
    loaded = orders.filter(pc.less(orders["o_orderdate"], CUTOFF))
    history = lake.sql("SELECT snapshot_id, committed_at FROM rest.tpch.orders.snapshots ORDER BY committed_at")
    lake.check("tpch.orders", f"VERSION AS OF {history[0]['snapshot_id']}", loaded)
    lake.check("tpch.orders", f"TIMESTAMP AS OF '{history[1]['committed_at']}'", orders)

    good = lake.sql("SELECT snapshot_id FROM rest.tpch.nation.snapshots")[0][0]
    lake.sql("DELETE FROM rest.tpch.nation")
    lake.check("tpch.nation", expected=lake.files["nation"].slice(0, 0))
    lake.sql(f"CALL rest.system.rollback_to_snapshot('tpch.nation', {good})")
    lake.check("tpch.nation")
    return f"orders has {len(history)} snapshots"


def rewrite_files(lake: Lake) -> str:
    """Rewrite data files, position deletes and manifests"""
    options = "map('rewrite-all', 'true')"
    rewritten = lake.sql(f"CALL rest.system.rewrite_data_files(table => 'tpch.orders', options => {options})")[0]
    lake.sql(f"CALL rest.system.rewrite_position_delete_files(table => 'tpch.partsupp', options => {options})")
    lake.sql("CALL rest.system.rewrite_manifests('tpch.lineitem')")
    for name in ("orders", "partsupp", "lineitem"):
        lake.check(f"tpch.{name}")
    return f"{rewritten['rewritten_data_files_count']} files of orders became {rewritten['added_data_files_count']}"


def expire_snapshots(lake: Lake) -> str:
    """Expire snapshots of lineitem and partsupp"""
    now = lake.sql("SELECT date_format(current_timestamp(), 'yyyy-MM-dd HH:mm:ss.SSS')")[0][0]
    gone = 0
    for name in ("lineitem", "partsupp"):
        table = f"tpch.{name}"
        before = lake.sql(f"SELECT count(*) FROM rest.{table}.snapshots")[0][0]
        lake.sql(
            f"CALL rest.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '{now}', retain_last => 1)"
        )
        left = lake.sql(f"SELECT count(*) FROM rest.{table}.snapshots")[0][0]
        checks.same(f"snapshots of {table}", left, 1)
        lake.check(table)
        gone += before - left
    return f"{gone} gone"


def drop_and_recreate(lake: Lake) -> str:
    """Drop region and make it again, replace and rename nation"""
    old = lake.pyiceberg.load_table("tpch.region").metadata
    lake.sql("DROP TABLE rest.tpch.region")
    checks.same("region exists", lake.pyiceberg.table_exists("tpch.region"), False)
    lake.sql(f"CREATE TABLE rest.tpch.region USING iceberg AS SELECT * FROM {in_files('region')}")
    new = lake.pyiceberg.load_table("tpch.region").metadata
    checks.same("region is a new table", new.table_uuid != old.table_uuid and new.location != old.location, True)
    lake.check("tpch.region")

    source = f"SELECT * FROM {in_files('nation')}"
    lake.sql(f"CREATE OR REPLACE TABLE rest.tpch.nation USING iceberg PARTITIONED BY (n_regionkey) AS {source}")
    lake.sql("ALTER TABLE rest.tpch.nation RENAME TO tpch.staging.nation")
    checks.same("nation exists under its old name", lake.pyiceberg.table_exists("tpch.nation"), False)
    lake.expected["tpch.staging.nation"] = lake.expected.pop("tpch.nation")
    lake.check("tpch.staging.nation")
    return "tpch.staging.nation"


STEPS = (
    make_namespaces,
    make_tables,
    load,
    append,
    merge,
    delete_rows,
    update_rows,
    evolve_schema,
    evolve_partitions,
    branch_and_tag,
    time_travel,
    rewrite_files,
    expire_snapshots,
    drop_and_recreate,
)
