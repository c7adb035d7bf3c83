"""Who may take a manifest list or statistics from the place of another table: a table that borrows there holds back the
other's purge and maintenance (docs/design/purge.md#rule-16)."""

import pytest

from arco_catalog.iceberg.json import JsonObject
from tests.support.realm_service import RealmApp, on_catalog, on_namespace, on_table, table_request
from tools.support.asgi_client import Answer, Client


def adding(manifest_list: str, number: int = 1) -> JsonObject:
    """A commit of a snapshot with this manifest list."""
    added: JsonObject = {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": 1_900_000_000_000 + number,
        "manifest-list": manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": added}]}


class Places:
    """Two namespaces with tables, and a principal that may write to `mine.m` alone."""

    async def made(self) -> "Places":
        self.app = await RealmApp().start()
        await self.app.catalog()
        self.owner = await self.app.principal("owner", on_catalog("CATALOG_MANAGE_CONTENT"))
        self.locations: dict[str, str] = {}
        for namespace, name in (("mine", "m"), ("mine", "beside"), ("theirs", "t")):
            await self.owner.post("/v1/lake/namespaces", {"namespace": [namespace]})
            made = await self.owner.post(f"/v1/lake/namespaces/{namespace}/tables", table_request(name))
            assert made.status == 200
            metadata = made.json["metadata"]
            assert isinstance(metadata, dict)
            self.locations[name] = str(metadata["location"])
        self.writer = await self.app.principal("writer", on_table("TABLE_WRITE_DATA", "mine", "m"))
        return self

    async def commit(self, file: str, client: Client | None = None, number: int = 1) -> Answer:
        return await (client or self.writer).post("/v1/lake/namespaces/mine/tables/m", adding(file, number))


@pytest.fixture
async def places() -> Places:
    return await Places().made()


@pytest.mark.parametrize(
    "where",
    [
        "{beside}/metadata",
        "{beside}",
        "{beside}/data/deep",
        "{t}/metadata",
        "memory:///lake",
        "{t}/../x",
        "{m}/../../theirs/x/metadata",
        "{m}/%2e%2e/x",
    ],
)
async def test_who_may_write_to_one_table_takes_no_list_from_elsewhere(places: Places, where: str) -> None:
    refused = await places.commit(f"{where.format(**places.locations)}/snap-1.avro")
    assert refused.status in (400, 403)
    assert refused.status == 400 or "privilege" in refused.message
    purged = await places.owner.send("DELETE", "/v1/lake/namespaces/mine/tables/beside?purgeRequested=true")
    assert purged.status == 204


async def test_it_adds_snapshots_at_its_own_table_s_location(places: Places) -> None:
    assert (await places.commit(f"{places.locations['m']}/metadata/snap-1.avro")).status == 200


async def test_a_list_at_a_dropped_table_s_location_takes_the_privilege_on_that_table(places: Places) -> None:
    await places.owner.send("DELETE", "/v1/lake/namespaces/mine/tables/beside?purgeRequested=true")
    assert (await places.commit(f"{places.locations['beside']}/metadata/snap-1.avro")).status == 403
    assert (await places.commit(f"{places.locations['beside']}/metadata/snap-1.avro", places.owner)).status == 200


async def test_who_may_write_to_both_tables_may_take_files_of_one_for_the_other(places: Places) -> None:
    await places.app.grant("writer", on_table("TABLE_WRITE_DATA", "mine", "beside"))
    assert (await places.commit(f"{places.locations['beside']}/metadata/snap-1.avro")).status == 200


async def test_a_reader_of_the_other_table_may_not(places: Places) -> None:
    await places.app.grant("writer", on_table("TABLE_READ_DATA", "mine", "beside"))
    assert (await places.commit(f"{places.locations['beside']}/metadata/snap-1.avro")).status == 403


async def test_the_owner_of_a_namespace_registers_a_copy_of_a_table_there(places: Places) -> None:
    await places.app.grant("writer", on_namespace("CATALOG_MANAGE_CONTENT", "mine"))
    assert (await places.commit(f"{places.locations['beside']}/metadata/snap-1.avro")).status == 200
    assert (await places.commit(f"{places.locations['t']}/metadata/snap-2.avro", number=2)).status == 403


async def test_folders_that_are_widened_around_another_table_take_the_privilege_on_it(places: Places) -> None:
    namespace = places.locations["m"].rpartition("/")[0]
    body = {**table_request("inner"), "location": f"{namespace}/shared/inner"}
    assert (await places.owner.post("/v1/lake/namespaces/mine/tables", body)).status == 200
    statuses = [(await places.commit(f"{namespace}/shared/{n}/snap.avro", number=n)).status for n in range(1, 34)]
    assert statuses == [200] * 32 + [403]


async def test_a_table_that_is_made_with_a_snapshot_takes_no_list_from_elsewhere_either(places: Places) -> None:
    maker = await places.app.principal("maker", on_namespace("TABLE_CREATE", "mine"))
    staged = await maker.post("/v1/lake/namespaces/mine/tables", {**table_request("new"), "stage-create": True})
    assert staged.status == 200
    metadata = staged.json["metadata"]
    assert isinstance(metadata, dict)
    schemas = metadata["schemas"]
    assert isinstance(schemas, list)
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": schemas[0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
        *adding(f"{places.locations['beside']}/metadata/snap-1.avro")["updates"],  # type: ignore[misc]
    ]
    made = await maker.post(
        "/v1/lake/namespaces/mine/tables/new", {"requirements": [{"type": "assert-create"}], "updates": updates}
    )
    assert made.status == 403, made.body
