"""`arco pipeline run`: runs a job of the data pipeline in a child process, with Spark, by default on this machine."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from arco_catalog.cli.client_config import SCALA_OF_SPARK, spark_runtime, store_settings
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_catalog, find_catalog_with_state, find_inventory
from arco_catalog.cli.saved_logins import login_path, read_login
from arco_catalog.cli.session import carry_out, open_session

TOKEN_MS = 15 * 60_000
"""A token that expires within this time is renewed before a job begins: the job can't renew it."""
LIBRARIES = ("pyspark", "pyiceberg", "pyarrow")


@dataclass(frozen=True, slots=True)
class Connection:
    """The connection of the pipeline's jobs that write through the catalog's server: the URI of the server, and the
    file with the credentials of the pipeline's principal, or the file with a token; neither for a server without a
    login."""

    uri: str
    credential_file: str | None = None
    token_file: str | None = None

    @property
    def logs_in(self) -> bool:
        """Whether the job logs in at the server."""
        return self.credential_file is not None or self.token_file is not None


@dataclass(frozen=True, slots=True)
class Limits:
    """The options of the job `maintain`: whether it only plans, how many bytes it may rewrite, after how many minutes
    it starts no more work, and the files of Iceberg's jars for Spark; if None, Spark fetches them. Without
    `vended_credentials` Spark reads and writes files with the rights of the cluster."""

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
    """Runs a job with Spark's `master`, with `more` arguments for it, waits until it is over, and returns the exit code
    of the job's process. With a `connection` the job writes through the catalog's server there. `limits` are used by
    `maintain` alone. Raises `CliError` if a library is not installed and as `logged_in` and, for
    `maintain`, `of_maintain` do, and `NotThere` if there is no such catalog."""
    for library in LIBRARIES:
        if find_spec(library) is None:
            raise CliError(
                f"{library}, which jobs of the pipeline need, is not installed: install the extra 'pipeline' of "
                "arco-catalog"
            )
    carry_out(lambda: _require_catalog(options, job))
    with logged_in(connection, options.environment) as connected:
        words = [*arguments(options, job, connected, master), *more]
        if job == "maintain":
            logs_in = connected is not None and connected.logs_in
            words = [*words, *of_maintain(options, limits, pyspark_version, delegated=logs_in)]
        command = [sys.executable, "-m", "reconciler", *words]
        python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        return subprocess.run(command, env={**python, **options.environment}, check=False).returncode


@contextmanager
def logged_in(connection: Connection | None, environment: Mapping[str, str]) -> Iterator[Connection | None]:
    """Yields a connection by which a job logs in: one without a credential file gets the token of the saved login at
    the server, if there is one, in a file that only the user may read, and that is deleted at the end. Any other
    connection, and None, is yielded as it is. Raises `CliError` as `read_login` and `saved_token` do."""
    path = None if connection is None else login_path(connection.uri, environment)
    if connection is None or path is None or connection.credential_file is not None or read_login(path) is None:
        yield connection
        return
    from arco_catalog.cli.login import saved_token  # needs httptools, which a job without a login may lack

    uri = connection.uri
    token = carry_out(lambda: saved_token(uri, environment, TOKEN_MS)) or ""
    with tempfile.TemporaryDirectory() as folder:  # with mode 0700
        file = Path(folder, "token")
        file.write_text(token)
        yield replace(connection, token_file=str(file))


async def _require_catalog(options: CatalogOptions, job: str) -> None:
    """Raises `NotThere` if there is no such catalog, and `HeadLost` if it has commits and no HEAD, before Spark starts,
    which takes long; for `collect` if there is no such realm or catalog. For `fsck` the catalog needs no HEAD: the
    check reports that it is missing."""
    if job == "collect":
        async with open_session(options, "pipeline", find_inventory):
            return
    async with open_session(options, "pipeline", find_catalog_with_state if job == "fsck" else find_catalog):
        return


def arguments(options: CatalogOptions, job: str, connection: Connection | None, master: str) -> Sequence[str]:
    """Returns the name of a job, and the arguments that select the catalog and Spark's master; with a connection also
    those for the server, and the properties with which PyIceberg reaches the files."""
    words = [job, "--store", options.store, "--warehouse", options.warehouse, "--master", master]
    words += [f"--allowed-location={location}" for location in options.allowed]
    words += [] if options.realm is None else [f"--realm={options.realm}"]
    if connection is None:
        return words
    words += ["--uri", connection.uri]
    if connection.credential_file is not None:
        words += ["--credential-file", connection.credential_file]
    if connection.token_file is not None:
        words += ["--token-file", connection.token_file]
    settings = store_settings(options.store, options.environment).pyiceberg
    return [*words, *(f"--property={name}={value}" for name, value in settings.items())]


def of_maintain(
    options: CatalogOptions, limits: Limits, pyspark: Callable[[], str], *, delegated: bool = False
) -> Sequence[str]:
    """Returns the arguments of `maintain` for its limits, and the settings with which Spark reaches the files. They are
    for vended credentials if the job logs in (`delegated`) and the limits allow them. `pyspark` returns the version of
    PySpark; it is called if Spark has to fetch jars. Raises `CliError` if `maintain` does not support that version, and
    as `pyspark` does."""
    store = store_settings(options.store, options.environment)
    store = store.delegated() if delegated and limits.vended_credentials else store
    words = ["--dry-run"] if limits.dry_run else []
    if not limits.vended_credentials:
        words.append("--no-vended-credentials")
    if limits.max_bytes is not None:
        words.append(f"--max-bytes={limits.max_bytes}")
    if limits.minutes is not None:
        words.append(f"--minutes={limits.minutes}")
    if limits.jars is not None:
        words.append(f"--jars={limits.jars}")
    else:
        words.append(f"--packages={','.join(filter(None, (runtime_for(pyspark()), store.package)))}")
    return [*words, *(f"--spark-property={name}={value}" for name, value in store.spark.items())]


def pyspark_version() -> str:
    """Returns the version of the installed PySpark. Raises `CliError` if it has no package metadata."""
    try:
        return version("pyspark")
    except PackageNotFoundError as error:
        raise CliError(
            "pyspark was not installed by pip, so its version is unknown: give the files of Iceberg's jars by --jars"
        ) from error


def runtime_for(pyspark: str) -> str:
    """Returns the Maven coordinates of Iceberg for the Spark of a PySpark version, such as `4.1.0`. Raises `CliError`
    if the jobs do not support that Spark."""
    spark = ".".join(pyspark.split(".")[:2])
    if spark not in SCALA_OF_SPARK:
        raise CliError(
            f"pyspark {pyspark} is installed, but maintain needs Spark {' or '.join(SCALA_OF_SPARK)}: install pyspark "
            "of such a version, or give the files of Iceberg's jars by --jars"
        )
    return spark_runtime(spark)
