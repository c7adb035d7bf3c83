"""`python -m tools.newer_versions` finds every pin, and reads what the package indexes' own commands print."""

from collections import Counter
from pathlib import Path

import pytest

from tools.newer_versions import Pin, compared, newest, pins

ANSWERS = {
    "pip index versions polars": "polars (2.3.0)\nAvailable versions: 2.3.0, 2.1.0\n",
    "go list -m github.com/apache/iceberg-go@latest": "github.com/apache/iceberg-go v0.8.0\n",
    "npm view azurite version": "3.38.0\n",
    "cargo info --quiet --color=never iceberg": "iceberg #rust\nApache Iceberg\nversion: 0.11.0\nlicense: Apache-2.0\n",
}


def answered(command: list[str]) -> str:
    return ANSWERS[" ".join(command)]


def test_every_index_has_pins_and_each_has_a_version() -> None:
    found = pins()
    assert {"PyPI", "Maven", "Go", "npm", "crates.io"} == {pin.index for pin in found}
    assert max(Counter((pin.index, pin.name) for pin in found).values()) == 1
    assert [pin for pin in found if not pin.version.removeprefix("v")[0].isdigit()] == []
    names = {pin.name for pin in found}
    assert names >= {"pyspark", "pyiceberg", "duckdb", "chdb", "apache-flink", "dbt-core", "dagster", "iceberg"}
    assert names >= {"io.trino:trino-server-core", "org.apache.kafka:kafka_2.13", "github.com/apache/iceberg-go"}


@pytest.mark.parametrize(
    ("pin", "latest"),
    [
        (Pin("PyPI", "polars", "2.1.0"), "2.3.0"),
        (Pin("Go", "github.com/apache/iceberg-go", "v0.7.0"), "v0.8.0"),
        (Pin("npm", "azurite", "3.37.0"), "3.38.0"),
        (Pin("crates.io", "iceberg", "0.10.1"), "0.11.0"),
    ],
    ids=lambda value: value.index if isinstance(value, Pin) else None,
)
def test_the_newest_release_is_what_the_command_of_its_index_prints(pin: Pin, latest: str) -> None:
    assert newest(pin, answered) == latest


def test_maven_copies_the_newest_release_and_its_file_has_the_version() -> None:
    def copies(command: list[str]) -> str:
        [folder] = [part.partition("=")[2] for part in command if part.startswith("-DoutputDirectory=")]
        Path(folder, "iceberg-spark-runtime-4.1_2.13-1.13.0.pom").touch()
        return ""

    pin = Pin("Maven", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13", "1.12.0")
    assert newest(pin, copies) == "1.13.0"


def test_a_line_has_the_newest_release_only_where_it_is_another_one() -> None:
    assert compared(Pin("npm", "azurite", "3.37.0"), answered).split() == ["npm", "azurite", "3.37.0", "3.38.0"]
    assert compared(Pin("npm", "azurite", "3.38.0"), answered).split() == ["npm", "azurite", "3.38.0"]


def test_an_index_without_an_answer_is_shown_with_the_reason() -> None:
    line = compared(Pin("npm", "azurite", "3.37.0"), lambda command: "")
    assert line.endswith("unknown: npm names no release of azurite")
