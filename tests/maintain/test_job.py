"""The command line of `maintain`, and what Spark is told of the catalog."""

import argparse
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from arco_catalog.cli.client_config import SCALA_OF_SPARK
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.pipeline import Limits, of_maintain, runtime_for
from reconciler.maintain.job import add_arguments, catalog_settings, launch_settings
from reconciler.system import connection
from tools.support.environment import PROJECT

AZURE = {"AZURE_STORAGE_KEY": "c2VjcmV0", "AZURE_STORAGE_ACCOUNT": "acc"}


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--warehouse")
    add_arguments(parser)
    return parser.parse_args(["--uri", "http://127.0.0.1:1/", "--warehouse", "lake", *arguments])


def pyspark() -> str:
    return "4.1.4"


def options(store: str, **environment: str) -> CatalogOptions:
    return CatalogOptions(store, "lake", environment=environment)


def test_a_secret_is_told_to_spark_when_it_runs_and_not_as_it_starts(tmp_path: Path) -> None:
    file = tmp_path / "credential"
    file.write_text("id:secret\n")
    said = parsed("--credential-file", str(file), "--jars", "a.jar", "--spark-property", "key=$AZURE_STORAGE_KEY")
    assert not any("secret" in value for value in launch_settings(said).values())
    told = catalog_settings(said, AZURE)
    assert told["spark.sql.catalog.arco.credential"] == "id:secret"
    assert told["spark.sql.catalog.arco.oauth2-server-uri"] == "http://127.0.0.1:1/v1/oauth/tokens"
    assert told["spark.sql.catalog.arco.key"] == "c2VjcmV0"


def test_spark_and_pyiceberg_get_a_token_that_they_do_not_renew(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a.b.c\n")
    arguments = parsed("--token-file", str(file), "--jars", "a.jar")
    assert not any("a.b.c" in value for value in launch_settings(arguments).values())
    settings = catalog_settings(arguments, AZURE)
    assert settings["spark.sql.catalog.arco.token"] == "a.b.c"
    assert settings["spark.sql.catalog.arco.token-refresh-enabled"] == "false"
    assert "spark.sql.catalog.arco.credential" not in settings
    assert connection.credential(arguments)["token"] == "a.b.c"


def test_without_a_credential_nobody_logs_in() -> None:
    told = catalog_settings(parsed("--catalog", "main"), {})
    assert told["spark.sql.catalog.arco.warehouse"] == "main"
    assert not any("oauth2" in name or "credential" in name for name in told)


HEADER = "spark.sql.catalog.arco.header.X-Iceberg-Access-Delegation"


def test_spark_has_the_catalog_vend_credentials_unless_an_operator_turns_that_off() -> None:
    assert catalog_settings(parsed(), {})[HEADER] == "vended-credentials"
    assert HEADER not in catalog_settings(parsed("--no-vended-credentials"), {})
    signed = parsed("--spark-property", "header.X-Iceberg-Access-Delegation=remote-signing")
    assert catalog_settings(signed, {})[HEADER] == "remote-signing"


@pytest.mark.parametrize("delegated", [True, False])
def test_the_command_turns_vended_credentials_off(*, delegated: bool) -> None:
    limits = Limits(jars="a.jar", vended_credentials=False)
    arguments = of_maintain(options("s3://bucket/lake"), limits, pyspark, delegated=delegated)
    assert "--no-vended-credentials" in arguments
    assert not any("Delegation" in each for each in arguments)


@pytest.mark.parametrize(
    ("said", "size"), [("5", 5), ("2K", 2048), ("3m", 3 << 20), ("100G", 100 << 30), ("1T", 1 << 40)]
)
def test_bytes_may_have_a_unit(said: str, size: int) -> None:
    assert parsed("--max-bytes", said).max_bytes == size


@pytest.mark.parametrize("said", ["", "G", "-1", "1.5G", "ten"])
def test_what_is_no_number_of_bytes_is_refused(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(f"--max-bytes={said}")
    assert "--max-bytes" in capsys.readouterr().err


def test_the_command_hands_limits_on_and_has_spark_fetch_what_the_store_needs() -> None:
    told = of_maintain(options("s3://bucket/lake"), Limits(dry_run=True, max_bytes="100G", minutes=30.0), pyspark)
    assert told[:3] == ["--dry-run", "--max-bytes=100G", "--minutes=30.0"]
    [packages] = [each for each in told if each.startswith("--packages=")]
    assert "iceberg-spark-runtime-4.1" in packages
    assert "iceberg-aws-bundle" in packages
    assert "--spark-property=io-impl=org.apache.iceberg.aws.s3.S3FileIO" in told


def test_jars_that_are_there_are_not_fetched() -> None:
    told = of_maintain(options("file:/lake"), Limits(jars="a.jar"), pyspark)
    assert told == ["--jars=a.jar"]


def test_a_key_is_named_on_the_command_line_and_not_told() -> None:
    told = of_maintain(options("abfss://lake@acc.dfs.core.windows.net/x", **AZURE), Limits(), pyspark)
    assert "--spark-property=adls.auth.shared-key.account.key=$AZURE_STORAGE_KEY" in told
    assert not any("c2VjcmV0" in each for each in told)


@pytest.mark.parametrize(
    ("pyspark", "runtime"),
    [
        ("3.5.9", "iceberg-spark-runtime-3.5_2.12"),
        ("4.0.5", "iceberg-spark-runtime-4.0_2.13"),
        ("4.1.0.dev1", "iceberg-spark-runtime-4.1_2.13"),
    ],
)
def test_iceberg_is_fetched_for_the_spark_that_is_installed(pyspark: str, runtime: str) -> None:
    [packages] = of_maintain(options("file:/lake"), Limits(), lambda: pyspark)
    assert packages.startswith(f"--packages=org.apache.iceberg:{runtime}:1.")


@pytest.mark.parametrize("pyspark", ["3.4.4", "3.50.1", "4.2.0", "5.0"])
def test_a_spark_that_the_jobs_do_not_run_on_is_refused(pyspark: str) -> None:
    with pytest.raises(
        CliError, match=re.escape(f"pyspark {pyspark} is installed, but maintain needs Spark 3.5 or 4.0 or 4.1")
    ):
        runtime_for(pyspark)


def test_the_extra_allows_the_sparks_that_have_a_runtime_and_none_before_or_behind() -> None:
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [allowed] = [Requirement(each).specifier for each in extras["spark"]]
    assert [each for each in ("3.4", *SCALA_OF_SPARK, "4.2", "5.0") if f"{each}.1" in allowed] == [*SCALA_OF_SPARK]
