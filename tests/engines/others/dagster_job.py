"""A run of Dagster with two assets: `python -m tests.engines.others.dagster_job URI WAREHOUSE`. Prints, as JSON,
whether the run succeeded, and how often each asset was tried.

The first asset commits by PyIceberg and fails after its commit, so that Dagster runs it again.
"""

import json
import sys
from collections import Counter

import pyarrow as pa  # type: ignore[import-untyped]
from dagster import AssetExecutionContext, RetryPolicy, asset, materialize  # type: ignore[import-not-found]
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

ORDERS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "amount": pa.array([10, 20, 30], pa.int64())})
TRIES: Counter[str] = Counter()


def connected() -> Catalog:
    uri, warehouse = sys.argv[1:]
    return load_catalog("arco", type="rest", uri=uri, warehouse=warehouse)


def append_once(table: Table, rows: pa.Table, context: AssetExecutionContext) -> None:
    """Appends rows, unless a try of the same asset in the same run has."""
    own = {"dagster.run-id": context.run_id, "dagster.asset": context.asset_key.to_user_string()}
    summaries = [each.summary.additional_properties for each in table.snapshots() if each.summary]
    if not any(own.items() <= summary.items() for summary in summaries):
        table.append(rows, snapshot_properties=own)


@asset(retry_policy=RetryPolicy(max_retries=1))  # type: ignore[untyped-decorator]
def orders(context: AssetExecutionContext) -> None:
    TRIES["orders"] += 1
    append_once(connected().load_table("shop.orders"), ORDERS, context)
    if TRIES["orders"] == 1:
        raise RuntimeError("the step fails after its commit")


@asset(deps=[orders])  # type: ignore[untyped-decorator]
def totals(context: AssetExecutionContext) -> None:
    TRIES["totals"] += 1
    amounts = connected().load_table("shop.orders").scan().to_arrow()["amount"].to_pylist()
    total = pa.table({"orders": pa.array([len(amounts)], pa.int64()), "amount": pa.array([sum(amounts)], pa.int64())})
    append_once(connected().load_table("shop.totals"), total, context)


def main() -> None:
    outcome = materialize([orders, totals], raise_on_error=False)
    print(json.dumps({"success": outcome.success, "run": outcome.run_id, "tries": TRIES}))


if __name__ == "__main__":
    main()
