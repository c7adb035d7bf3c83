"""The pipeline as a principal of a realm, over a real server: what it is granted is enough, others can't do its work,
and a copy of its rows shows a team what is the team's and no more (docs/pipeline.md#rights)."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
import requests
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.state.watermarks import CLOSED_BEFORE
from reconciler.catalog_config import CatalogConfig
from reconciler.compact.driver import compact
from reconciler.compact.stats import CompactStats
from reconciler.executors import Here
from reconciler.system import tables
from reconciler.system.opened import SystemTables
from tests.engines.realm import MANAGEMENT, Realm, realm_served
from tests.support.realm_service import on_catalog, on_namespace, on_table
from tools.demo.server import WAREHOUSE
from tools.support.request_bodies import view_request

ROW = pa.table({"a": pa.array([1], pa.int64())})
ALL_ROLES = "PRINCIPAL_ROLE:ALL"


@dataclass(frozen=True)
class Principals:
    """The principals of a served realm, as its root makes them."""

    realm: Realm

    @property
    def uri(self) -> str:
        return self.realm.owner.server.uri

    def headers(self, credential: str) -> dict[str, str]:
        client_id, _, secret = credential.partition(":")
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
        answer = requests.post(f"{self.uri}/v1/oauth/tokens", {**form, "scope": ALL_ROLES}, timeout=30)
        return {"Authorization": f"Bearer {answer.json()['access_token']}", "Content-Type": "application/json"}

    def manage(self, method: str, path: str, body: JsonObject) -> dict[str, dict[str, str]]:
        headers = self.headers(self.realm.owner.login["credential"])
        url = f"{self.uri}{MANAGEMENT}/{path}"
        answer = requests.request(method, url, data=json.dumps(body), headers=headers, timeout=30)
        assert answer.status_code < 300, answer.text
        made: dict[str, dict[str, str]] = answer.json() if answer.content else {}
        return made

    def make(self, name: str, *grants: JsonObject, **properties: str) -> str:
        """A principal with these grants in the catalog; its credential."""
        made = self.manage("POST", "principals", {"principal": {"name": name, "properties": {**properties}}})
        people: JsonObject = {"principalRole": {"name": f"{name}-role"}}
        doing: JsonObject = {"catalogRole": {"name": f"{name}-may"}}
        self.manage("POST", "principal-roles", people)
        self.manage("PUT", f"principals/{name}/principal-roles", people)
        self.manage("POST", f"catalogs/{WAREHOUSE}/catalog-roles", doing)
        self.manage("PUT", f"principal-roles/{name}-role/catalog-roles/{WAREHOUSE}", doing)
        for grant in grants:
            self.manage("PUT", f"catalogs/{WAREHOUSE}/catalog-roles/{name}-may/grants", {"grant": grant})
        return f"{made['credentials']['clientId']}:{made['credentials']['clientSecret']}"

    def login(self, credential: str) -> dict[str, str]:
        tokens = f"{self.uri}/v1/oauth/tokens"
        return {"credential": credential, "scope": ALL_ROLES, "oauth2-server-uri": tokens}

    def catalog(self, credential: str) -> RestCatalog:
        found = load_catalog("arco", type="rest", uri=self.uri, warehouse=WAREHOUSE, **self.login(credential))
        assert isinstance(found, RestCatalog)
        return found

    def system(self, credential: str) -> SystemTables:
        """As the job connects."""
        return SystemTables.connect(self.uri, WAREHOUSE, self.login(credential), SystemRuntime())

    def compact(self, credential: str) -> CompactStats:
        """A run of the job, in this process."""
        config = CatalogConfig(self.realm.owner.server.store, WAREHOUSE)
        return asyncio.run(compact(self.system(credential), config, Here()))


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
        opened.mark({"pipeline.test": "1"})
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


def test_a_job_whose_principal_is_not_registered_says_what_it_lacks(principals: Principals, writer: str) -> None:
    principals.catalog(writer).load_table("finance.t").append(ROW)
    with pytest.raises(ForbiddenError, match=r"engine is not registered by the property arco\.pipeline"):
        principals.compact(writer)


def test_a_view_over_them_opens_no_table_and_hides_no_row(principals: Principals, writer: str, pipeline: str) -> None:
    """An engine loads what is beneath a view as whoever asks."""
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
