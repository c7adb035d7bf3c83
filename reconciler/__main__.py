"""Runs the job that the command line names: `spark-submit reconciler/job.py JOB`, or `python -m reconciler JOB`
(docs/pipeline.md)."""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from arco_catalog.iceberg.errors import NotFound
from reconciler.catalog_config import check_settings, environment_with

EXTRAS = {"pyspark": "spark", "pyiceberg": "pipeline", "pyarrow": "pipeline", "requests": "pipeline"}
"""The extra of arco-catalog that installs each library."""
JOBS: Mapping[str, tuple[str, str]] = {
    "reconcile": ("reconciler.reconcile_job", "Write missing receipts of commits."),
    "compact": ("reconciler.compact.job", "Bring the tables of the namespace `system` up to date."),
    "maintain": ("reconciler.maintain.job", "Execute the maintenance policies of tables."),
    "collect": ("reconciler.collect_job", "Count or delete objects that the catalog no longer needs."),
    "fsck": ("reconciler.fsck_job", "Check a catalog with the files of its tables."),
}
"""The module of each job, which has `add_arguments` and `run`, and the job's description."""
NOT_FOUND = 2
"""The exit status if the store has no such catalog."""
DEFAULT = "reconcile"
"""The job of a command line without a job's name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job that the first argument names; if that is no job's name, runs `reconcile` with all arguments (None:
    the arguments of the process). Writes the job's counts as JSON to the last line of stdout. Returns the exit status
    of the job, which is 0 if nothing failed. Raises `SystemExit` for a wrong option or variable, if a library of
    `EXTRAS` is not installed, with `NOT_FOUND` for a catalog, realm or file that does not exist, and where the job
    itself does."""
    left = [*(sys.argv[1:] if arguments is None else arguments)]
    name = left.pop(0) if left and left[0] in JOBS else DEFAULT
    module, description = JOBS[name]
    try:
        job = import_module(module)  # jobs need different libraries
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(error.name or "")
        if extra is None:
            raise
        raise SystemExit(
            f"reconciler: the job {name} needs {error.name}, which is not installed: install the extra '{extra}' of "
            "arco-catalog"
        ) from error
    parser = argparse.ArgumentParser(prog=f"reconciler {name}", description=description)
    parser.add_argument("--store", required=True, help="URL of the store: s3://bucket/prefix or file:/folder")
    parser.add_argument("--warehouse", required=True, help="name of the catalog in the store")
    parser.add_argument("--allowed-location", nargs="+", action="extend", default=[], help="as given to `arco serve`")
    parser.add_argument("--realm", help="folder of the store with the catalog's realm, where it has several")
    parser.add_argument("--master", help="the master of Spark, such as local[*]; by default that of spark-submit")
    declare: Callable[[argparse.ArgumentParser], None] = job.add_arguments
    run: Callable[[argparse.Namespace], tuple[Mapping[str, object], int]] = job.run
    declare(parser)
    parsed = parser.parse_args(left)
    asyncio.run(check_settings(environment_with(parsed)))
    try:
        counts, code = run(parsed)
    except NotFound as error:
        sys.stderr.write(f"reconciler: {error.message}\n")
        raise SystemExit(NOT_FOUND) from error
    sys.stdout.write(json.dumps(counts, ensure_ascii=False) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
