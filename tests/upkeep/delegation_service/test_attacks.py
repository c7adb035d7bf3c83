"""What a caller who may submit tasks tries: places, files and endpoints that are not its own."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from arco_catalog.iceberg.errors import BadRequest, Forbidden
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.drop import drop_table
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.locations import Location
from arco_catalog.state.task import Status, Task
from arco_catalog.upkeep.delegation_service import places
from arco_catalog.upkeep.delegation_service.payload import DelegatedPurge
from arco_catalog.upkeep.delegation_service.places import LocationHeld
from arco_catalog.upkeep.delegation_service.storage import CredentialsMissing, storage_for
from storage_backends import ANY
from tests.support.foreign_tables import ForeignTable, files, foreign_table
from tests.upkeep.delegation_service.conftest import Services
from tools.support.catalog_fixture import NS
from tools.support.manifests import manifest, manifest_list


async def submit(services: Services, payload: JsonObject) -> Task:
    purge = DelegatedPurge.parse(payload)
    return await services.service.submit(services.session(purge), purge, "them")


async def end(services: Services, payload: JsonObject) -> Task:
    return await services.service.ended((await submit(services, payload)).id)


def renamed(table: ForeignTable, location: str, metadata_location: str | None = None) -> JsonObject:
    """A payload with a location of the table that is not its own."""
    metadata: JsonObject = {"location": location, "table-uuid": table.uuid, "format-version": 2}
    at = metadata_location or f"{location}/metadata/v1.metadata.json"
    return table.payload(metadata=metadata, metadata_location=at)


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data",
        "https://example.com/t",
        "ftp://example.com/t",
        "file:///etc",
        "file:///",
        "s3://another-owners/t",
        "gs://another-owners/t",
        "memory:///wh/warehouse/db/t",
        "/etc/passwd",
        "not a location",
        "{folder}/../outside",
        "{folder}/a/../../outside",
        "{folder}/%2e%2e/outside",
        "{folder}/%252e%252e/outside",
        "{folder}/a%2f..%2f..%2foutside",
        "{folder}\\..\\outside",
        "{folder}?x=/../..",
        "{folder}#x",
        "{folder}-beside/t",
        "{folder}/_catalog/tasks",
        "{folder}/%5Fcatalog/tasks",
        "file://elsewhere{path}/t",
        "{folder}/" + "x" * 4000,
    ],
)
async def test_a_location_outside_of_the_allowed_ones_is_refused(
    services: Services, table: ForeignTable, location: str
) -> None:
    place = location.format(folder=f"file://{services.folder}", path=services.folder)
    before = table.files()

    for payload in (renamed(table, place, table.metadata_location), renamed(table, table.location, place)):
        with pytest.raises(Forbidden):
            await submit(services, payload)

    assert table.files() == before


async def test_nothing_is_allowed_by_default(tmp_path: Path, table: ForeignTable) -> None:
    services = Services(tmp_path, allowed=())

    with pytest.raises(Forbidden, match=r"delegation\.allowed-locations"):
        await submit(services, table.payload())


def rewritten(table: ForeignTable, **fields: JsonValue) -> None:
    """Changes the table's metadata file."""
    path = Path(table.metadata_location.removeprefix("file://"))
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def planted(table: ForeignTable, named: Mapping[str, str]) -> JsonObject:
    """Snapshots whose manifest list is this one."""
    return {"snapshot-id": 1, "timestamp-ms": 1, "summary": {"operation": "append"}, "schema-id": 0, **named}


async def test_files_outside_of_the_table_stay_whatever_its_manifests_name(services: Services) -> None:
    table = foreign_table(services.folder, appends=1)
    neighbour = foreign_table(services.folder, "neighbour")
    outside = services.folder.parent / f"{services.folder.name}-outside"
    outside.mkdir()
    (outside / "victim").write_text("theirs")
    kept = neighbour.files()
    own = table.folder / "data/%2e%2e%2fvictim"
    own.write_text("a name that engines write, and no reader decodes")
    names = [
        *(f"{neighbour.location}/{each}" for each in kept),
        f"{table.location}/../neighbour/{kept[0]}",
        f"{table.location}/data/../../../../{outside.name}/victim",
        f"file://{outside}/victim",
        f"{table.location}-beside/x",
        f"{table.location}%2F..%2Fneighbour/{kept[0]}",
        "http://127.0.0.1:1/x",
        f"{table.location}/data/%2e%2e%2fvictim",
    ]
    (table.folder / "metadata/m.avro").write_bytes(manifest(names))
    (table.folder / "metadata/l.avro").write_bytes(manifest_list([f"{table.location}/metadata/m.avro"]))
    rewritten(table, snapshots=[planted(table, {"manifest-list": f"{table.location}/metadata/l.avro"})])

    task = await end(services, table.payload())

    assert task.status is Status.SUCCESS, task.document
    assert neighbour.files() == kept
    assert files(outside) == ["victim"]
    assert not own.exists()
    assert json.loads(str(task.document["result_extended"]))["outside"] == len(names) - 1


@pytest.mark.parametrize("read", ["manifest-list", "manifest"])
async def test_a_manifest_outside_of_the_allowed_locations_is_not_read(services: Services, read: str) -> None:
    table = foreign_table(services.folder, appends=0)
    outside = services.folder.parent / f"{services.folder.name}-{read}"
    outside.mkdir()
    data = table.folder / "data/a"
    data.parent.mkdir(exist_ok=True)
    data.write_text("a")
    (outside / "m.avro").write_bytes(manifest([f"{table.location}/data/a"]))
    (outside / "l.avro").write_bytes(manifest_list([f"file://{outside}/m.avro"]))
    (table.folder / "metadata/l.avro").write_bytes(manifest_list([f"file://{outside}/m.avro"]))
    named = f"file://{outside}/l.avro" if read == "manifest-list" else f"{table.location}/metadata/l.avro"
    rewritten(table, snapshots=[planted(table, {"manifest-list": named})])

    task = await end(services, table.payload())

    assert (task.status, "can't be read" in str(task.summary)) == (Status.FAILURE, True), task.document
    assert data.exists()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"location": "file:///somewhere/else"}, "its location is not the one in the task"),
        ({"table-uuid": "00000000-0000-4000-8000-000000000000"}, "its table-uuid is not the one in the task"),
        ({"properties": {"write.data.path": "file:///etc"}}, "Not allowed by delegation.allowed-locations"),
        ({"properties": {"write.metadata.path": "s3://elsewhere/x"}}, "Not allowed by delegation.allowed-locations"),
        ({"properties": {"gc.enabled": "false"}}, "gc.enabled=false"),
    ],
)
async def test_a_metadata_file_must_be_that_of_the_table(
    services: Services, table: ForeignTable, fields: Mapping[str, JsonValue], why: str
) -> None:
    rewritten(table, **fields)
    before = table.files()

    task = await end(services, table.payload())

    assert task.status is Status.FAILURE
    assert why in str(task.summary)
    assert table.files() == before


async def test_a_giant_metadata_file_is_not_read(tmp_path: Path) -> None:
    services = Services(tmp_path, max_metadata=1 << 20)
    table = foreign_table(tmp_path)
    rewritten(table, properties={"x": "y" * (2 << 20)})
    before = table.files()

    task = await end(services, table.payload())

    assert (task.status, "larger than" in str(task.summary)) == (Status.FAILURE, True), task.summary
    assert table.files() == before


@pytest.mark.parametrize("where", ["at", "inside", "around"])
@pytest.mark.parametrize("dropped", [False, True])
async def test_a_place_that_a_catalog_here_holds_or_held_is_refused(
    services: Services, table: ForeignTable, where: str, dropped: bool
) -> None:
    place = {"at": table.location, "inside": f"{table.location}/data/x", "around": f"file://{services.folder}"}[where]
    await services.ours.namespace()
    await services.ours.table("ours", location=place)
    if dropped:
        await drop_table(services.ours.session(), NS, "ours", purge=True)
    before = table.files()

    with pytest.raises(LocationHeld, match="a location that a catalog of this service holds or held") as refused:
        await submit(services, table.payload())

    assert table.files() == before
    assert "wh" not in str(refused.value).split(" overlaps ")[1]
    assert "entity" not in str(refused.value)


@pytest.mark.parametrize(
    ("dropped", "named"), [(False, r"db\.ours \(entity "), (True, r"db\.ours \(entity .+, which was dropped,")]
)
async def test_a_catalogs_own_worker_learns_the_name_of_the_table_that_blocks_its_purge(
    services: Services, table: ForeignTable, *, dropped: bool, named: str
) -> None:
    await services.ours.namespace()
    await services.ours.table("ours", location=table.location)
    if dropped:
        await drop_table(services.ours.session(), NS, "ours", purge=False)
    session = services.ours.another().session()
    index = (await session.state.head()).index

    holder = await carry_out(session.state, index, places._holder(index, Location.parse(table.location), None))

    assert re.match(named, str(holder))


async def test_a_place_that_became_ours_is_left(services: Services, table: ForeignTable) -> None:
    rewritten(table, properties={"gc.enabled": "false"})
    assert (await end(services, table.payload())).status is Status.FAILURE
    rewritten(table, properties={})
    await services.ours.namespace()
    await services.ours.table("ours", location=table.location)
    before = table.files()

    task = await end(services, table.payload())

    assert (task.status, "may have deleted files" in str(task.summary)) == (Status.FAILURE, True), task.document
    assert table.files() == before


async def test_where_our_catalogs_lie_no_others_table_is_purged(tmp_path: Path) -> None:
    services = Services(tmp_path, allowed=("memory:///",))
    body = manifest_list([])
    await services.store.put("another-catalog/warehouse/db/t/metadata/v1.metadata.json", body, ANY)
    place = "memory:///another-catalog/warehouse/db/t"
    table = ForeignTable("t", place, f"{place}/metadata/v1.metadata.json", "00000000-0000-4000-8000-000000000000")

    with pytest.raises(LocationHeld, match="inside or around the store of this service"):
        await submit(services, table.payload())


@pytest.mark.parametrize(
    "config",
    [
        {"s3.endpoint": "http://169.254.169.254/"},
        {"s3.endpoint": "https://s3.example.com"},
        {"s3.endpoint": "https://allowed.example.com.evil.example"},
        {"s3.endpoint": "https://user@allowed.example.com"},
        {"S3.Endpoint": "https://evil.example.com"},
        {"s3.proxy-uri": "http://evil.example.com"},
        {"gcs.service.host": "https://evil.example.com"},
        {"adls.connection-string.account": "BlobEndpoint=https://evil.example.com"},
        {"adls.account-host": "evil.example.com"},
        {"uri": "https://evil.example.com"},
        {"client.region": "x.evil.example.com/"},
        {"s3.region": "us-east-1#"},
    ],
)
def test_config_sends_no_request_to_an_endpoint_that_was_not_allowed(config: Mapping[str, str]) -> None:
    keys = {"s3.access-key-id": "AKIATHEIRS", "s3.secret-access-key": "secret-of-theirs"}

    with pytest.raises(BadRequest, match="Not allowed"):
        storage_for(Location.parse("s3://b/t"), {**keys, **config}, {}, ["https://allowed.example.com"])


def test_config_may_name_an_endpoint_that_was_allowed() -> None:
    config = {
        "s3.access-key-id": "AKIATHEIRS",
        "s3.secret-access-key": "secret-of-theirs",
        "s3.session-token": "token-of-theirs",
        "s3.endpoint": "https://Allowed.example.com/",
        "client.region": "eu-west-1",
        "s3.signer.endpoint": "v1/sign",
    }
    operator = {"AWS_ACCESS_KEY_ID": "ours", "AWS_SECRET_ACCESS_KEY": "ours", "AWS_PROFILE": "ours", "HOME": "/root"}

    storage = storage_for(Location.parse("s3://b/t"), config, operator, ["https://allowed.example.com"])

    assert storage.environment == {
        "AWS_ENDPOINT_URL_S3": "https://Allowed.example.com/",
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "AKIATHEIRS",
        "AWS_SECRET_ACCESS_KEY": "secret-of-theirs",
        "AWS_SESSION_TOKEN": "token-of-theirs",
    }
    assert storage.redacted("refused: secret-of-theirs by token-of-theirs") == "refused: *** by ***"
    assert "theirs" not in repr(storage)


@pytest.mark.parametrize(
    ("location", "config"),
    [
        ("s3://b/t", {}),
        ("s3://b/t", {"s3.access-key-id": "only-half"}),
        ("s3://b/t", {"s3.access-key-id": "", "s3.secret-access-key": ""}),
        ("gs://b/t", {"s3.access-key-id": "a", "s3.secret-access-key": "b"}),
        ("abfss://c@a.dfs.core.windows.net/t", {"adls.sas-token.other.dfs.core.windows.net": "sig=x"}),
    ],
)
def test_the_services_own_credentials_open_nothing(location: str, config: Mapping[str, str]) -> None:
    operator = {
        "AWS_ACCESS_KEY_ID": "ours",
        "AWS_SECRET_ACCESS_KEY": "ours",
        "GOOGLE_OAUTH_ACCESS_TOKEN": "ours",
        "AZURE_STORAGE_KEY": "ours",
    }

    with pytest.raises(CredentialsMissing):
        storage_for(Location.parse(location), config, operator, [])
