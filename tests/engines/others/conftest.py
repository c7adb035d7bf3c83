"""Engines that need environments of their own. `make test-engines` makes those and runs these tests; `pytest` alone
does not."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engines.go_scanner import SCANNER, go_program
from tests.engines.lake import Lake
from tests.engines.shell import Sql, shell
from tools.demo.engines import PROJECT
from tools.demo.server import WAREHOUSE

HERE = Path(__file__).resolve().parent
APPENDER = PROJECT / ".tools" / "iceberg-go-appender"
RUST = PROJECT / ".tools" / "iceberg-rust-shell"
"""The program of the folder `iceberg_rust`."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Only who names this folder gets it."""
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(HERE) for path in named) else True


@contextmanager
def engine(name: str, environment: str, scratch: Path, *arguments: str, folder: Path = PROJECT) -> Iterator[Sql]:
    """An engine's SQL: its module in this folder, run by the Python of its environment, with a folder for its own."""
    python = PROJECT / environment / "bin" / "python"
    if not python.exists():
        raise LookupError(f"no {environment}: `make test-engines` makes it")
    command = [str(python), "-m", f"tests.engines.others.{name}", str(scratch), *arguments]
    with shell(command, folder, scratch, {"PYTHONPATH": str(PROJECT)}) as sql:
        yield sql


@contextmanager
def duckdb_shell(scratch: Path, *statements: str) -> Iterator[Sql]:
    """DuckDB's SQL, after these statements."""
    with engine("duckdb_shell", ".venv-engines", scratch, *statements) as sql:
        yield sql


@contextmanager
def flink_shell(scratch: Path, *statements: str) -> Iterator[Sql]:
    """Flink's SQL, in batches, after these statements."""
    with engine("flink_shell", ".venv-engines-flink", scratch, str(PROJECT / ".jars" / "flink"), *statements) as sql:
        yield sql


@contextmanager
def flink_sink(lake: Lake, table: str, scratch: Path) -> Iterator[Sql]:
    """Appends by Iceberg's sink in Flink, with a request to rebase: a statement is the id of a row."""
    jars = str(PROJECT / ".jars" / "flink")
    where = jars, lake.server.uri, WAREHOUSE, table
    with engine("flink_sink_shell", ".venv-engines-flink", scratch, *where) as append:
        yield append


@contextmanager
def iceberg_go(lake: Lake, table: str, scratch: Path) -> Iterator[Sql]:
    """Appends by iceberg-go, with a request to rebase: a statement is the id of a row."""
    with _go_program(APPENDER, lake, table, scratch) as append:
        yield append


@contextmanager
def iceberg_go_scans(lake: Lake, table: str, scratch: Path) -> Iterator[Sql]:
    """Reads by iceberg-go: a statement is who plans, `local` or `remote`, and the name of a filter."""
    with _go_program(SCANNER, lake, table, scratch) as scan:
        yield scan


@contextmanager
def _go_program(program: Path, lake: Lake, table: str, scratch: Path) -> Iterator[Sql]:
    with go_program(program, lake.server.uri, WAREHOUSE, table, scratch, {**lake.s3, **lake.login}) as run:
        yield run


@contextmanager
def iceberg_rust(lake: Lake, scratch: Path) -> Iterator[Sql]:
    """DataFusion's SQL over iceberg-rust's client, with the catalog `rest`."""
    if not RUST.exists():
        raise LookupError(f"no {RUST}: `make test-engines` builds it")
    properties = [text for name, value in lake.s3.items() for text in (name, value)]
    with shell([str(RUST), lake.server.uri, WAREHOUSE, *properties], PROJECT, scratch) as run:
        yield run


@pytest.fixture
def duckdb(local_lake: Lake, tmp_path: Path) -> Iterator[Sql]:
    """DuckDB's SQL, with the catalog `rest`."""
    here = f"ENDPOINT '{local_lake.server.uri}', AUTHORIZATION_TYPE 'none'"
    with duckdb_shell(tmp_path, f"ATTACH '{WAREHOUSE}' AS rest (TYPE iceberg, {here})") as sql:
        yield sql


@pytest.fixture
def duckdb_on_system(telling_lake: Lake, tmp_path: Path) -> Iterator[Sql]:
    """DuckDB's SQL, in the namespace `system` of the catalog `telling`."""
    here = f"ENDPOINT '{telling_lake.server.uri}', AUTHORIZATION_TYPE 'none'"
    attach = f"ATTACH '{WAREHOUSE}' AS telling (TYPE iceberg, {here})"
    with duckdb_shell(tmp_path, attach, "USE telling.system", "SET TimeZone = 'UTC'") as sql:
        yield sql


@pytest.fixture
def clickhouse(local_lake: Lake, tmp_path: Path) -> Iterator[Sql]:
    """ClickHouse's SQL. It reads local files below the folder it works in, and no others."""
    store = Path(local_lake.server.store.removeprefix("file:"))
    where = local_lake.server.uri, WAREHOUSE
    with engine("clickhouse_shell", ".venv-engines", tmp_path, *where, folder=store) as sql:
        yield sql


@pytest.fixture
def flink(local_lake: Lake, tmp_path: Path) -> Iterator[Sql]:
    """Flink's SQL, in batches, with the catalog `rest`."""
    here = f"'uri' = '{local_lake.server.uri}', 'warehouse' = '{WAREHOUSE}'"
    made = f"CREATE CATALOG rest WITH ('type' = 'iceberg', 'catalog-type' = 'rest', {here})"
    with flink_shell(tmp_path, made, "USE CATALOG rest") as sql:
        yield sql


@pytest.fixture
def dataframes(local_lake: Lake, tmp_path: Path) -> Iterator[Sql]:
    """DataFusion and Polars, each by its name before the table and the SQL."""
    with engine("dataframes_shell", ".venv-engines", tmp_path, local_lake.server.uri, WAREHOUSE) as sql:
        yield sql
