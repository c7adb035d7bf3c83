"""The tables of `system`, as Spark, Trino and PyIceberg read them: each question has one answer.

A Spark job of two steps tells of itself by events, as OpenLineage's integration for Spark sends them; that itself could
not be fetched.
"""

import pytest

from reconciler.system.questions import MADE_FROM, STALE_TABLES, Question
from tests.engines.asking import ASKED, expected, fill, ordered, stale_at_once
from tests.engines.lake import Lake
from tests.engines.shell import Sql
from tools.support.openlineage import Query, dataset


@pytest.fixture(scope="module")
def nightly(spark: Sql, telling_lake: Lake) -> Lake:
    """The lake after a job of Spark's: a table is cleaned, then summed up."""
    spark("CREATE NAMESPACE telling.nightly")
    spark("CREATE TABLE telling.nightly.orders USING iceberg AS SELECT id AS number, id * 2 AS price FROM range(10)")
    spark("CREATE TABLE telling.nightly.clean (number BIGINT, price BIGINT) USING iceberg")
    spark("CREATE TABLE telling.nightly.daily (orders BIGINT, turnover BIGINT) USING iceberg")
    step(spark, telling_lake, "orders", "clean", "SELECT * FROM telling.nightly.orders WHERE price > 0")
    step(spark, telling_lake, "clean", "daily", "SELECT count(*), sum(price) FROM telling.nightly.clean")
    fill(telling_lake)
    return telling_lake


def step(spark: Sql, lake: Lake, source: str, target: str, select: str) -> None:
    """One query of the job, and its events."""
    read, written = (lake.bystander.load_table(f"nightly.{name}") for name in (source, target))
    query = Query(lake.server.uri, f"nightly.append_data.{target}")
    query.start([read], [written])
    spark(f"INSERT INTO telling.nightly.{target} {select}")
    query.complete([dataset(read)], [written.refresh()])


def test_the_lineage_of_a_spark_job_leads_from_snapshot_to_snapshot(nightly: Lake, trino: Sql) -> None:
    snapshots = {
        name: nightly.bystander.load_table(f"nightly.{name}").metadata.current_snapshot_id
        for name in ("orders", "clean", "daily")
    }
    edges = trino(
        "SELECT input_name, input_snapshot_id, output_name, output_snapshot_id, matched_by, lineage_confidence "
        "FROM telling.system.lineage WHERE output_namespace = 'nightly' ORDER BY happened_at"
    )
    assert edges == [
        ("orders", snapshots["orders"], "clean", snapshots["clean"], "snapshot", "DeclaredUnverified"),
        ("clean", snapshots["clean"], "daily", snapshots["daily"], "snapshot", "DeclaredUnverified"),
    ]
    made_by = trino(
        "SELECT c.engine, l.job_name FROM telling.system.lineage l JOIN telling.system.commits c "
        "ON c.commit_key = l.commit_key WHERE l.output_name = 'daily'"
    )
    assert [(str(engine).partition("/")[0], job) for engine, job in made_by] == [("spark", "nightly.append_data.daily")]


@pytest.mark.parametrize("question", ASKED, ids=lambda question: question.name)
def test_each_engine_gives_the_same_answer(nightly: Lake, spark: Sql, trino: Sql, question: Question) -> None:
    answer = expected(nightly, question)
    assert answer
    for sql, quote in ((trino, '"'), (spark, "`")):
        columns = ", ".join(f"{quote}{name}{quote}" for name, _ in question.columns)
        of_view = ordered(sql(f"SELECT {columns} FROM telling.system.{question.name}"))
        assert of_view == ([] if question is STALE_TABLES else answer)
        assert ordered(sql(stale_at_once(question, "telling.system."))) == answer


def test_what_policies_saved_can_be_asked_where_none_acted_yet(nightly: Lake, spark: Sql, trino: Sql) -> None:
    assert spark("SELECT * FROM telling.system.savings") == []
    assert trino("SELECT * FROM telling.system.savings") == []


def test_a_view_says_what_it_answers(nightly: Lake) -> None:
    view = nightly.bystander.load_view(("system", MADE_FROM.name))
    assert view.properties["comment"] == MADE_FROM.description
    assert {version.root.dialect for version in view.current_version().representations} == {"spark", "trino"}
