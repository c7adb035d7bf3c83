"""`arco pipeline run`: a job of the pipeline in a process of its own, with Spark on this machine."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from arco_catalog.cli.client_config import SCALA_OF_SPARK, spark_runtime, store_settings
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_catalog, find_catalog_with_state, find_inventory
from arco_catalog.cli.session import carry_out, open_session

LIBRARIES = ("pyspark", "pyiceberg", "pyarrow")


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the catalog's server answers, and the file with what the pipeline's principal logs in with."""

    uri: str
    credential_file: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What `maintain` may do, and Iceberg's jars for Spark; None: they are fetched. Without `vended_credentials` Spark
    reaches files by the rights of the cluster."""

    dry_run: bool = False
    max_bytes: str | None = None
    minutes: float | None = None
    jars: str | None = None
    vended_credentials: bool = True


def run(
    options: CatalogOptions,
    job: str,
    connection: Connection | None,
    limits: Limits,
    master: str,
    more: Sequence[str] = (),
) -> int:
    """Runs a job, with `more` options of its own, and returns its exit code. Raises `CliError` where a library is
    missing."""
    for library in LIBRARIES:
        if find_spec(library) is None:
            raise CliError(f"{library} is not installed: install the extra 'pipeline' of arco-catalog")
    carry_out(lambda: _is_there(options, job))
    said = [*arguments(options, job, connection, master), *more]
    if job == "maintain":
        logs_in = connection is not None and connection.credential_file is not None
        said = [*said, *of_maintain(options, limits, pyspark_version, delegated=logs_in)]
    command = [sys.executable, "-m", "reconciler", *said]
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return subprocess.run(command, env={**python, **options.environment}, check=False).returncode


async def _is_there(options: CatalogOptions, job: str) -> None:
    """Raises `NotThere` if there is no such catalog: Spark takes long to start for that. A check tells of one whose
    HEAD is gone."""
    if job == "collect":
        async with open_session(options, "pipeline", find_inventory):
            return
    async with open_session(options, "pipeline", find_catalog_with_state if job == "fsck" else find_catalog):
        return


def arguments(options: CatalogOptions, job: str, connection: Connection | None, master: str) -> Sequence[str]:
    """What the job is told: the catalog, and how PyIceberg reaches the store's files."""
    said = [job, "--store", options.store, "--warehouse", options.warehouse, "--master", master]
    said += [f"--allowed-location={location}" for location in options.allowed]
    said += [] if options.realm is None else [f"--realm={options.realm}"]
    if connection is None:
        return said
    said += ["--uri", connection.uri]
    if connection.credential_file is not None:
        said += ["--credential-file", connection.credential_file]
    settings = store_settings(options.store, options.environment).pyiceberg
    return [*said, *(f"--property={name}={value}" for name, value in settings.items())]


def of_maintain(
    options: CatalogOptions, limits: Limits, pyspark: Callable[[], str], *, delegated: bool = False
) -> Sequence[str]:
    """What `maintain` is told besides: its limits, and how Spark reaches the store's files; `delegated`: by what the
    catalog gives whoever logs in. `pyspark` says which version of it there is, for jars that are to be fetched. Raises
    `CliError` where Iceberg has none for it."""
    store = store_settings(options.store, options.environment)
    store = store.delegated() if delegated and limits.vended_credentials else store
    said = ["--dry-run"] if limits.dry_run else []
    if not limits.vended_credentials:
        said.append("--no-vended-credentials")
    if limits.max_bytes is not None:
        said.append(f"--max-bytes={limits.max_bytes}")
    if limits.minutes is not None:
        said.append(f"--minutes={limits.minutes}")
    if limits.jars is not None:
        said.append(f"--jars={limits.jars}")
    else:
        said.append(f"--packages={','.join(filter(None, (runtime_for(pyspark()), store.package)))}")
    return [*said, *(f"--spark-property={name}={value}" for name, value in store.spark.items())]


def pyspark_version() -> str:
    """The version of PySpark that is installed. Raises `CliError` if it came without a note of that."""
    try:
        return version("pyspark")
    except PackageNotFoundError as error:
        raise CliError("pyspark was not installed by pip: say by --jars where Iceberg for its Spark is") from error


def runtime_for(pyspark: str) -> str:
    """Maven coordinates of Iceberg for the Spark that a version of PySpark brings. Raises `CliError` if it is none that
    the jobs run on."""
    spark = ".".join(pyspark.split(".")[:2])
    if spark not in SCALA_OF_SPARK:
        raise CliError(f"the jobs run on Spark {', '.join(SCALA_OF_SPARK)}, and pyspark is {pyspark}")
    return spark_runtime(spark)
