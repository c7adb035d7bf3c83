"""Executes purges on Spark, and due expiries of snapshots in the driver: `spark-submit reconciler/purge_job.py`, or
`arco tasks run --spark` (docs/drops.md#purges-on-spark)."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

try:
    from pyspark import SparkConf, SparkContext
except ModuleNotFoundError as error:
    raise SystemExit(
        "reconciler: purges on Spark need pyspark, which is not installed: install the extra 'spark' of arco-catalog"
    ) from error

from arco_catalog.config.variables import STORE, WAREHOUSE
from arco_catalog.iceberg.errors import BadRequest, NotFound
from arco_catalog.operations.environment import opened, task_policies_from_env
from arco_catalog.operations.tasks import find_task, retry_task
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.state.task import Status
from arco_catalog.tasks.execution import task_session
from arco_catalog.tasks.work_stats import WorkStats
from arco_catalog.upkeep.purge.worker import task_worker
from reconciler.anti_join import SparkAntiJoin
from reconciler.catalog_config import CatalogConfig, check_settings, environment_with
from reconciler.packages import shipped
from reconciler.session import NO_SUBSTITUTION

CALLS_MS = 60_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Executes the purges of dropped tables that are due, on Spark, and the due expiries of snapshots, in this process,
    or with `--task` only that task, and prints a line of JSON for each catalog with the name and the counts. Returns 1
    if a task failed, otherwise 0. Raises `SystemExit` for a wrong option or variable, without a store, for a catalog,
    realm or task that does not exist, and for a task that changes while it is submitted again; and the other errors of
    `purge`."""
    parser = argparse.ArgumentParser(prog="purge", description="Purge dropped tables by the anti-join.")
    parser.add_argument("--store", help="URL of the store: s3://bucket/prefix or file:/folder [env ARCO_STORE]")
    parser.add_argument("--realm", help="folder of the store with the realm, where it has several [env ARCO_REALM]")
    parser.add_argument("--warehouse", help="name of the one catalog to work on; else all of the realm")
    parser.add_argument("--allowed-location", nargs="+", action="extend", default=[], help="as given to `arco serve`")
    parser.add_argument("--task", help="execute this task, also if it has failed; else all purges that are due")
    options = parser.parse_args(arguments)
    environment = environment_with(options)
    environment = {**environment, WAREHOUSE.name: WAREHOUSE.read(environment)}
    if STORE.name not in environment:
        parser.error("--store URL is required (or ARCO_STORE)")
    asyncio.run(check_settings(environment))

    async def work(spark: SparkContext) -> int:
        failed = 0
        async with aclosing(purge(spark, environment, options.warehouse, options.task)) as done:
            async for name, stats in done:
                sys.stdout.write(json.dumps({"catalog": name, **stats.to_json()}, ensure_ascii=False) + "\n")
                failed += stats.failed
        return 1 if failed else 0

    conf = SparkConf().setAppName("arco-purge").setAll([NO_SUBSTITUTION])
    with SparkContext.getOrCreate(conf) as spark, shipped(spark):
        try:
            return asyncio.run(work(spark))
        except (NotFound, BadRequest) as error:
            raise SystemExit(f"reconciler: {error.message}") from error


async def purge(
    spark: SparkContext, environment: Mapping[str, str], warehouse: str | None = None, task: str | None = None
) -> AsyncGenerator[tuple[str, WorkStats], None]:
    """Executes the tasks that are due in every catalog of the deployment that `environment` describes: purges, by the
    anti-join, and expiries of snapshots. Yields the name and counts of every such catalog. With `warehouse`, a realm's
    other catalogs are left out; a store without a realm has one catalog, which is taken whatever `warehouse` is. With
    `task`, only this task is executed, in the catalog that has it; a failed one is submitted again. Raises `NotFound`
    if there is no such catalog, realm or task, an error if the task changes while it is submitted again,
    `ValueError` for a wrong variable, `RuntimeError` for a store that ignores preconditions, and `StoreError`."""
    runtime, policies = SystemRuntime(), task_policies_from_env(environment)
    found = False
    async with opened(environment, runtime) as inventory:
        for each in inventory.catalogs:
            if warehouse is not None and each.realm is not None and each.name != warehouse:
                continue
            catalog = each.open()
            if task is not None and not await _find_or_resubmit(catalog, task):
                continue
            found = True
            config = CatalogConfig.from_environment(environment, each)
            worker = task_worker(catalog, policies, anti_join=SparkAntiJoin(spark, config))
            await (worker.run_until_idle() if task is None else worker.run_task(task))
            yield each.name, worker.take_stats()
    if not found and (warehouse is not None or task is not None):
        raise NotFound(f"Catalog does not exist: {warehouse}" if task is None else f"Task does not exist: {task}")


async def _find_or_resubmit(catalog: Catalog, task: str) -> bool:
    """Returns whether a catalog has a task with this id. If the task has failed, resubmits it; a purge is then executed
    by the anti-join, unless it may have deleted files in another way. Raises an error if the task changes by
    then."""
    session = task_session(catalog, task, catalog.runtime.now_ms() + CALLS_MS)
    found = await find_task(session, task)
    if found is not None and found.task.status is Status.FAILURE:
        await retry_task(session, task, catalog.runtime, anti_join=True)
    return found is not None


if __name__ == "__main__":
    sys.exit(main())
