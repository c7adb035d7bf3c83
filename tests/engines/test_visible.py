"""Who asks the views of `system` sees the rows of what it may load, and no others: by Trino, whose access control keeps
users from the tables beneath, it can't be got around; Spark shows the same."""

from collections import Counter
from collections.abc import Callable

import pytest
from trino.exceptions import TrinoQueryError

from reconciler.system import tables, visible
from reconciler.system.definition import SystemTable
from tests.engines.shell import Sql
from tests.engines.spark_shell import SPARK_USER
from tests.engines.walled import NAME, Walled
from tests.support.realm_service import on_namespace, on_table

BY_ENTITY = [shown.table for shown in visible.VISIBLE_TABLES if shown.table not in (tables.LINEAGE, tables.VIEWS)]
OF_SALES = {"sales.t", "sales.eu.t", "sales.came"}
Ask = Callable[[str], Sql]


@pytest.fixture(scope="module")
def asker(spark: Sql, walled: Walled) -> str:
    """A reader of `sales`: the user that Spark names."""
    assert spark("SELECT current_user()") == [(SPARK_USER,)]
    reads = (on_namespace(f"{kind}_READ_PROPERTIES", "sales") for kind in ("TABLE", "VIEW"))
    walled.principals.make(SPARK_USER, *reads)
    walled.fill()
    return SPARK_USER


@pytest.fixture(params=["trino", pytest.param("spark", marks=pytest.mark.slow)])
def ask(request: pytest.FixtureRequest, spark: Sql, trino_as: Ask, asker: str) -> Sql:
    """Returns rows of a query that an engine executes for that reader: Trino, or Spark in `make test-thorough`."""
    return trino_as(asker) if request.param == "trino" else spark


def seen(ask: Sql, table: SystemTable, walled: Walled) -> dict[str, int]:
    """How many rows are shown about what, by its name as it is today."""
    rows = ask(f"SELECT entity, count(*) FROM {NAME}.system.visible_{table.name} GROUP BY entity")
    names = walled.names()
    return {names[str(entity)]: int(str(count)) for entity, count in rows}


def test_a_grant_shows_rows_with_the_next_batch_and_a_revocation_hides_them(walled: Walled, trino_as: Ask) -> None:
    alice, one, more = "alice", on_table("TABLE_READ_DATA", "finance", "t"), on_namespace("TABLE_READ_DATA", "sales")
    walled.principals.make(alice, one)
    walled.fill()
    ask = trino_as(alice)
    assert {*seen(ask, tables.COMMITS, walled)} == {"finance.t"}

    walled.principals.grant(alice, more)
    assert {*seen(ask, tables.COMMITS, walled)} == {"finance.t"}, "no batch has told of it"
    walled.fill()
    assert {*seen(ask, tables.COMMITS, walled)} == OF_SALES | {"finance.t"}

    walled.principals.revoke(alice, one)
    walled.fill()
    assert {*seen(ask, tables.COMMITS, walled)} == OF_SALES


def test_trino_s_users_read_no_table_beneath(trino_as: Ask, asker: str) -> None:
    for table in (*tables.ALL, tables.READERS):
        with pytest.raises(
            TrinoQueryError, match=f"Access Denied: Cannot select from table {NAME}.system.{table.name}"
        ):
            trino_as(asker)(f"SELECT count(*) FROM {NAME}.system.{table.name}")
    with pytest.raises(TrinoQueryError, match="Access Denied: Cannot select from"):
        trino_as(asker)(f"SELECT count(*) FROM {NAME}.system.growth")


def test_a_condition_that_fails_on_hidden_rows_does_not_tell_of_them(trino_as: Ask, asker: str) -> None:
    """An engine may ask what a reader wants to know before it hides rows: the message of an error would tell."""
    spying = (
        ("commits", "CASE WHEN namespace = 'salesforce' THEN CAST(name AS bigint) ELSE 1 END"),
        ("tables", "CASE WHEN namespace = 'salesforce' THEN CAST(location AS bigint) ELSE 1 END"),
        ("lineage", "CASE WHEN output_namespace = 'salesforce' THEN CAST(output_name AS bigint) ELSE 1 END"),
    )
    for view, condition in spying:
        [[count]] = trino_as(asker)(f"SELECT count(*) FROM {NAME}.system.visible_{view} WHERE {condition} = 1")
        assert int(str(count)) > 0


def test_a_namespace_that_was_made_again_shows_nothing_of_the_one_before(walled: Walled, trino_as: Ask) -> None:
    walled.principals.make("carol", on_namespace("TABLE_READ_DATA", "anew"))
    walled.fill()
    assert {*seen(trino_as("carol"), tables.COMMITS, walled)} == {"anew.t"}


def test_one_who_is_no_principal_sees_nothing(trino_as: Ask) -> None:
    assert trino_as("mallory")(f"SELECT * FROM {NAME}.system.visible_commits") == []


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(table, id=table.name, marks=() if table is tables.COMMITS else pytest.mark.slow)
        for table in BY_ENTITY
    ],
)
def test_both_engines_show_the_rows_of_what_may_be_loaded_today(
    walled: Walled, spark: Sql, trino_as: Ask, asker: str, table: SystemTable
) -> None:
    of_views = {"sales.v"} if table in (tables.COMMITS, tables.COLUMNS, tables.CATALOG_EVENTS) else set()
    names = walled.names()
    there = Counter(names[str(row["entity"])] for row in walled.rows(table) if str(row["entity"]) in names)
    assert {*there} >= {"finance.t", "finance.left", "salesforce.t"}
    shown = {name: count for name, count in there.items() if name in OF_SALES | of_views}
    for ask in (trino_as(asker), spark):
        assert seen(ask, table, walled) == shown


def test_views_are_shown_to_readers_of_views(walled: Walled, ask: Sql) -> None:
    assert seen(ask, tables.VIEWS, walled) == {"sales.v": 1}


def test_of_an_edge_the_end_that_may_not_be_seen_is_not_told(
    walled: Walled, spark: Sql, trino_as: Ask, asker: str
) -> None:
    told = "input_namespace, input_name, output_namespace, output_name, job_name"
    of_input = "input_entity, input_snapshot_id, input_dataset"
    of_output = "output_entity, output_snapshot_id, output_dataset"
    nothing = (None, None, None)
    for ask in (trino_as(asker), spark):
        edges = ask(f"SELECT {told}, {of_input}, {of_output}, commit_key, edge_id FROM {NAME}.system.visible_lineage")
        by_names = {tuple(edge[:5]): tuple(edge[5:]) for edge in edges}
        from_hidden, to_hidden, within = (
            (None, None, "sales", "t", "nightly.sales.t"),
            ("sales", "t", None, None, None),
            ("sales.eu", "t", "sales", "t", "nightly.sales.t"),
        )
        assert by_names.keys() == {from_hidden, to_hidden, within}
        assert (by_names[from_hidden][:3], by_names[from_hidden][-1]) == (nothing, None)
        assert by_names[to_hidden][3:] == (*nothing, None, None)
        assert None not in by_names[within]


def test_what_is_said_in_words_of_others_is_not_told(ask: Sql) -> None:
    [row] = ask(f"SELECT DISTINCT explanation FROM {NAME}.system.visible_maintenance")
    assert tuple(row) == (None,)
    [row] = ask(f"SELECT DISTINCT summary, checkpoint FROM {NAME}.system.visible_tasks")
    assert tuple(row) == (None, None)


@pytest.mark.slow
def test_usual_questions_are_answered_of_what_may_be_loaded(spark: Sql, trino_as: Ask, asker: str) -> None:
    for ask in (trino_as(asker), spark):
        writers = ask(f"SELECT DISTINCT namespace, name FROM {NAME}.system.visible_last_writers")
        assert ("sales", "t") in {tuple(row) for row in writers}
        assert not [row for row in writers if str(row[0]).partition(".")[0] == "salesforce" or row[1] == "left"]
        assert ask(f"SELECT * FROM {NAME}.system.visible_stale_tables") == []
