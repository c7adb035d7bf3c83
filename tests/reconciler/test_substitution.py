"""A name with a variable of Spark's in it stays that name in each statement (reconciler/session.py)."""

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from reconciler.maintain.procedures import OnSpark

# PySpark leaves the sockets to its JVM for the garbage collector to close.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

NAME = "payroll${spark:x}"


def test_a_name_with_a_variable_in_it_is_no_other_name(spark: SparkContext) -> None:
    session = SparkSession(spark).newSession()
    session.conf.set("spark.sql.variable.substitute", "true")
    statement = f"SELECT 1 AS `{NAME}`"
    assert session.sql(statement).columns == ["payroll"]

    OnSpark(session, "arco")

    assert session.sql(statement).columns == [NAME]
