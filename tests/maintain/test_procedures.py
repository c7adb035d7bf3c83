"""What an exception of Spark's means: a writer was first, or something is wrong."""

from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from reconciler.maintain.procedures import MAX_EXPLANATION, SparkProcedures, parse_failure

ORG = "org.apache.iceberg.exceptions"


@pytest.mark.parametrize(
    ("told", "explanation"),
    [
        (
            f"An error occurred\n: {ORG}.CommitFailedException: Requirement failed: branch main has changed\n\tat x",
            f"{ORG}.CommitFailedException: Requirement failed: branch main has changed",
        ),
        (
            f": {ORG}.ValidationException: Missing required files\n",
            f"{ORG}.ValidationException: Missing required files",
        ),
        (f": {ORG}.CommitStateUnknownException: timeout\n", f"{ORG}.CommitStateUnknownException: timeout"),
        ("a\nls: cannot access 'x': No such file or directory\n", "ls: cannot access 'x': No such file or directory"),
    ],
)
def test_a_writer_that_was_first_is_a_conflict(told: str, explanation: str) -> None:
    failed = parse_failure(told)
    assert (failed.conflict, str(failed)) == (True, explanation)


def test_anything_else_is_a_failure_told_without_where_it_came_from() -> None:
    failed = parse_failure(": java.lang.IllegalArgumentException: Cannot find field x\n\tat a.b.C\n\tat d.e.F")
    assert (failed.conflict, str(failed)) == (False, ": java.lang.IllegalArgumentException: Cannot find field x")


def test_what_is_told_is_bounded() -> None:
    assert len(str(parse_failure("x" * 5_000))) == MAX_EXPLANATION


def test_no_statement_of_a_session_has_its_variables_substituted() -> None:
    settings: dict[str, str] = {"spark.sql.variable.substitute": "true"}
    session = SimpleNamespace(conf=SimpleNamespace(set=settings.__setitem__))
    SparkProcedures(cast(SparkSession, session), "arco")
    assert settings == {"spark.sql.variable.substitute": "false"}
