"""A catalog in Azure Blob Storage as Azurite serves it: made and inspected by `arco`, written and read by PyIceberg."""

import itertools
import json

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import load_catalog

from arco_catalog.cli.checks import denied
from arco_catalog.cli.program import main
from arco_catalog.embed import serving
from storage_backends.azure.config import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, ClientKind
from tools.support.azurite import AzuriteServer
from tools.support.environment import exported

pytestmark = pytest.mark.needs("node", "npm")

_containers = itertools.count(1)


@pytest.fixture
def container(azurite_server: AzuriteServer) -> str:
    name = f"lake-{next(_containers)}"
    azurite_server.make_container(name)
    return name


def checks(capsys: pytest.CaptureFixture[str], store: str, environment: dict[str, str], code: int) -> dict[str, str]:
    """Status and finding of each check, and the advice."""
    assert main(["doctor", "--json", "--store", store], environment) == code
    document = json.loads(capsys.readouterr().out)
    return {each["check"]: f"{each['status']}: {each['found']} ({each['advice']})" for each in document["checks"]}


@pytest.mark.parametrize("client", ClientKind)
def test_a_catalog_in_azure_is_made_and_passes_every_check(
    azurite_server: AzuriteServer, container: str, capsys: pytest.CaptureFixture[str], client: ClientKind
) -> None:
    environment = {**azurite_server.environment, "ARCO_AZURE_CLIENT": client.value}
    assert main(["init", "--store", f"az://{container}/catalog"], environment) == 0
    capsys.readouterr()

    by_account = f"abfss://{container}@{DEVELOPMENT_ACCOUNT}.dfs.core.windows.net/catalog"
    for store in (f"az://{container}/catalog", by_account):
        found = checks(capsys, store, environment, code=0)

        assert {text.partition(":")[0] for text in found.values()} == {"ok"}
        assert f"the account's key, {azurite_server.endpoint}/{container}, client {client}" in found["credentials"]
        assert DEVELOPMENT_KEY not in str(found)


def test_what_is_wrong_is_reported(
    azurite_server: AzuriteServer, container: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = azurite_server.environment

    nowhere = checks(capsys, "az://nowhere/catalog", environment, code=1)
    no_one = checks(capsys, f"az://{container}/x", {**environment, "AZURE_STORAGE_KEY": "d3Jvbmc="}, code=1)
    no_key = checks(capsys, f"az://{container}/x", {**environment, "AZURE_STORAGE_KEY": "?"}, code=1)
    no_account = checks(capsys, f"az://{container}/x", {}, code=1)

    assert "container 'nowhere' does not exist" in nowhere["store"]
    assert "that the container is there" in nowhere["store"]
    assert "Storage Blob Data Contributor" in no_one["store"]  # Azurite has no other code for a wrong key
    assert "check AZURE_STORAGE_ACCOUNT and its key" in denied("status 403 AuthenticationFailed")
    assert "not base64" in no_key["credentials"]
    assert "set AZURE_STORAGE_ACCOUNT" in no_account["credentials"]


def test_pyiceberg_creates_appends_and_reads_where_the_catalog_states(
    azurite_server: AzuriteServer, container: str
) -> None:
    account = f"AccountName={DEVELOPMENT_ACCOUNT};AccountKey={DEVELOPMENT_KEY}"
    connection = f"{account};BlobEndpoint={azurite_server.endpoint}"
    rows = pa.table({"id": [1, 2, 3]})
    with exported(azurite_server.environment), serving(f"az://{container}/catalog") as served:
        catalog = load_catalog(
            "arco",
            type="rest",
            uri=served.uri,
            warehouse=served.warehouse,
            **{"adls.connection-string": connection, "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"},
        )
        catalog.create_namespace("sales")
        table = catalog.create_table("sales.orders", schema=rows.schema)
        table.append(rows)
        table.append(rows)

        read = catalog.load_table("sales.orders").scan().to_arrow()
        assert sorted(read["id"].to_pylist()) == [1, 1, 2, 2, 3, 3]
        root = f"abfss://{container}@{DEVELOPMENT_ACCOUNT}.dfs.core.windows.net/catalog/arco/warehouse/sales/orders"
        assert table.location().startswith(root)
        catalog.close()
