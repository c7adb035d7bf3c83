"""A name with a variable of Spark's in it stays that name in each statement (reconciler/session.py)."""

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from reconciler.maintain.calls import Call, Procedure
from reconciler.maintain.procedures import SparkProcedures

# PySpark leaves the sockets to its JVM for the garbage collector to close.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

NAME = "payroll${spark:x}"


def test_a_name_with_a_variable_in_it_is_no_other_name(spark: SparkContext) -> None:
    session = SparkSession(spark).newSession()
    session.conf.set("spark.sql.variable.substitute", "true")
    statement = f"SELECT 1 AS `{NAME}`"
    assert session.sql(statement).columns == ["payroll"]

    SparkProcedures(session, "arco")

    assert session.sql(statement).columns == [NAME]


TEXTS = [
    "it's",
    "a\\'b",
    "\\",
    "${spark:x}",
    "a`b",
    "x -- y",
    "/* z",
    "line\nbreak",
    "\\u0041\\101\\n",
    'quote"',
    "é😀",
]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_of_users_mean_themselves_to_spark(spark: SparkContext, text: str) -> None:
    """Names and texts are quoted as Spark reads them (reconciler/maintain/calls.py)."""
    session = SparkSession(spark).newSession()
    SparkProcedures(session, "arco")
    statement = Call(Procedure.REWRITE_DATA_FILES, {"sort_order": text}).statement("arco", (text,))
    table, order = statement.removesuffix(")").partition("table => ")[2].rsplit(", sort_order => ", 1)

    [read] = session.sql(f"SELECT {table}, {order}").collect()

    assert read[0].startswith("`arco`.")
    assert session.sql(f"SELECT 1 AS {read[0].removeprefix('`arco`.')}").columns == [text]
    assert read[1] == text
