"""A job opens the catalog of its name: that of the realm, where the store has one."""

import pytest

from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.pipeline import Connection, Limits, arguments, of_maintain
from arco_catalog.iceberg.errors import NotFound
from arco_catalog.operations.load import load_table
from reconciler.catalog_config import CatalogConfig
from storage_backends import ObjectStore
from tests.support.realm_service import RealmApp
from tools.support.request_bodies import schema

URL = "memory:///"


@pytest.fixture
async def app() -> RealmApp:
    """A realm with a catalog that was made in it, and a table there."""
    made = await RealmApp().start()
    await made.catalog("pond")
    await made.principal("owner", {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}, catalog="pond")
    client, base = made.client("owner"), "/v1/pond/namespaces"
    assert (await client.post(base, {"namespace": ["db"]})).status == 200
    assert (await client.post(f"{base}/db/tables", {"name": "t", "schema": schema("a")})).status == 200
    return made


def config(app: RealmApp, warehouse: str) -> CatalogConfig:
    def opens(url: str) -> ObjectStore:
        assert app.store is not None
        return app.store

    return CatalogConfig(URL, warehouse, opens=opens)


async def test_a_job_opens_a_catalog_that_was_made_in_a_realm(app: RealmApp) -> None:
    async with config(app, "pond").session() as session:
        assert (await load_table(session, ("db",), "t")).entity


async def test_a_catalog_that_the_realm_does_not_have_is_told(app: RealmApp) -> None:
    with pytest.raises(NotFound, match="no catalog 'lake' in the realm"):
        async with config(app, "lake").session():
            pass


def test_the_command_names_the_catalog_and_its_realm_and_leaves_it_to_the_job_where_that_is() -> None:
    options = CatalogOptions("s3://bucket/lakes", "pond", ("s3://tables",), "one", {"AWS_REGION": "eu-west-1"})
    said = arguments(options, "compact", Connection("http://127.0.0.1:1"), "local[2]")
    assert said[:7] == ["compact", "--store", "s3://bucket/lakes", "--warehouse", "pond", "--master", "local[2]"]
    assert {"--allowed-location=s3://tables", "--realm=one"} <= {*said}


@pytest.mark.parametrize("delegated", [True, False])
def test_who_logs_in_asks_the_catalog_for_access_to_files(*, delegated: bool) -> None:
    options = CatalogOptions("s3://bucket/lake", "lake", environment={"AWS_REGION": "eu-west-1"})
    said = of_maintain(options, Limits(jars="a.jar"), lambda: "4.1.4", delegated=delegated)
    asks = "--spark-property=header.X-Iceberg-Access-Delegation=vended-credentials"
    assert (asks in said) is delegated
