"""The pipeline as a principal of a realm, over a real server: what it is granted is enough, others can't do its work,
and a copy of its rows shows a team what is the team's and no more (docs/pipeline.md#rights)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
import requests
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError

from arco_catalog.state.watermarks import CLOSED_BEFORE
from reconciler.system import tables
from tests.engines.principals import Principals
from tests.engines.realm import realm_served
from tests.support.realm_service import on_catalog, on_namespace, on_table
from tools.demo.server import WAREHOUSE
from tools.support.request_bodies import view_request

ROW = pa.table({"a": pa.array([1], pa.int64())})


@pytest.fixture(scope="module")
def principals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Principals]:
    folder: Path = tmp_path_factory.mktemp("realm")
    with realm_served(folder, lifetime_s="600") as realm:
        yield Principals(realm)


@pytest.fixture(scope="module")
def writer(principals: Principals) -> str:
    """An engine's principal that may write everywhere, with tables of two teams."""
    credential = principals.make("engine", on_catalog("CATALOG_MANAGE_CONTENT"))
    catalog = principals.catalog(credential)
    for team in ("sales", "finance"):
        catalog.create_namespace(team)
        catalog.create_table(f"{team}.t", ROW.schema).append(ROW)
    return credential


@pytest.fixture(scope="module")
def pipeline(principals: Principals, writer: str) -> str:
    """The pipeline's principal, after a run."""
    pipeline = {"arco.pipeline": "true"}
    credential = principals.make("pipeline", on_catalog("CATALOG_MANAGE_CONTENT"), **pipeline)
    principals.compact(credential)
    return credential


def test_with_what_it_is_granted_the_pipeline_makes_and_commits_all_its_tables(
    principals: Principals, pipeline: str
) -> None:
    system = principals.system(pipeline)

    commits = system.open(tables.COMMITS)
    assert commits.table.scan().count() >= 4
    assert commits.watermark(CLOSED_BEFORE) is not None
    for table in tables.ALL:
        opened = system.open(table)
        opened.set_watermarks({"pipeline.test": "1"})
        assert system.open(table).watermark("pipeline.test") == "1", table.name


def test_once_the_namespace_is_there_a_grant_on_it_alone_is_enough(
    principals: Principals, writer: str, pipeline: str
) -> None:
    narrow = principals.make("narrow", on_namespace("CATALOG_MANAGE_CONTENT", "system"), **{"arco.pipeline": "true"})
    principals.catalog(writer).load_table("sales.t").append(ROW)

    stats = principals.compact(narrow)

    assert stats.rows["commits"] >= 1
    with pytest.raises(NoSuchTableError):
        principals.catalog(narrow).load_table("sales.t")


def test_an_engine_that_may_write_everywhere_forges_no_watermark(
    principals: Principals, writer: str, pipeline: str
) -> None:
    engine = principals.catalog(writer).load_table(("system", "commits"))
    before = engine.properties

    with pytest.raises(ForbiddenError, match="Only the pipeline writes to the namespace system"):
        engine.transaction().set_properties({CLOSED_BEFORE: "9999-12-31"}).commit_transaction()
    with pytest.raises(ForbiddenError, match="Only the pipeline writes"):
        engine.delete()
    with pytest.raises(ForbiddenError, match="Only the pipeline writes"):
        principals.catalog(writer).drop_table(("system", "commits"))

    assert principals.system(pipeline).open(tables.COMMITS).table.properties == before


def test_a_job_whose_principal_is_not_registered_fails_with_the_missing_property(
    principals: Principals, writer: str
) -> None:
    principals.catalog(writer).load_table("finance.t").append(ROW)
    with pytest.raises(ForbiddenError, match=r"engine is not registered by the property arco\.pipeline"):
        principals.compact(writer)


def test_a_view_over_them_opens_no_table_and_hides_no_row(principals: Principals, writer: str, pipeline: str) -> None:
    """An engine loads what is beneath a view with the rights of the caller."""
    view = view_request("of_sales")
    version = view["view-version"]
    assert isinstance(version, dict)
    sql = "SELECT * FROM system.commits WHERE namespace = 'sales'"
    version["representations"] = [{"type": "sql", "sql": sql, "dialect": "spark"}]
    views = f"{principals.uri}/v1/{WAREHOUSE}/namespaces/sales/views"
    made = requests.post(views, data=json.dumps(view), headers=principals.headers(writer), timeout=30)
    assert made.status_code == 200, made.text
    of_view = principals.make("of-view", on_namespace("VIEW_READ_PROPERTIES", "sales"))
    of_table = principals.make("of-table", on_table("TABLE_READ_DATA", "system", "commits"))

    shown = requests.get(f"{views}/of_sales", headers=principals.headers(of_view), timeout=30)
    assert sql in shown.text
    with pytest.raises(NoSuchTableError):
        principals.catalog(of_view).load_table(("system", "commits"))
    rows = principals.catalog(of_table).load_table(("system", "commits")).scan().to_arrow()
    assert {*rows["namespace"].to_pylist()} >= {"sales", "finance"}


def test_a_copy_shows_a_team_its_own_rows_and_nothing_else(principals: Principals, writer: str, pipeline: str) -> None:
    everything = principals.catalog(writer).load_table(("system", "commits"))
    of_sales = everything.scan(row_filter="namespace = 'sales'").to_arrow()
    principals.catalog(writer).create_table("sales.commits", of_sales.schema).append(of_sales)
    team = principals.catalog(principals.make("team", on_table("TABLE_READ_DATA", "sales", "commits")))

    assert {*team.load_table("sales.commits").scan().to_arrow()["namespace"].to_pylist()} == {"sales"}
    for name in (table.name for table in tables.ALL):
        with pytest.raises(NoSuchTableError):
            team.load_table(("system", name))
