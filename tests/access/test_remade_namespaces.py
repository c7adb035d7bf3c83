"""A namespace that was dropped and made again under its name is another one: rights on it are no rights on what was
dropped from the earlier one (docs/design/access.md#rule-10)."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.management.catalogs import list_catalogs
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.index import Edits
from arco_catalog.state.needs import Steps, immediately
from arco_catalog.state.registry import RegistryState
from tests.access.lake import NAMESPACES, Lake
from tests.support.realm_service import on_catalog, on_namespace, table_request
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import view_request

HR = f"{NAMESPACES}/hr"
SALARIES = f"{HR}/tables/salaries"
DEEP = f"{NAMESPACES}/hr%1Fpay"
PRIVILEGES = ("NAMESPACE_FULL_METADATA", "TABLE_FULL_METADATA", "VIEW_FULL_METADATA", "TABLE_WRITE_DATA")


async def granted(lake: Lake, *levels: str, name: str = "bob") -> Client:
    """A principal with every privilege on a namespace, and none besides."""
    return await lake.app.principal(name, *(on_namespace(privilege, *levels) for privilege in PRIVILEGES))


async def make(lake: Lake, *namespaces: str) -> None:
    """Makes namespaces, whose levels are joined by dots."""
    for namespace in namespaces:
        await lake.ok(await lake.manager.post(NAMESPACES, {"namespace": [*namespace.split(".")]}))


async def remade() -> tuple[Lake, str]:
    """A catalog whose namespace `hr` was dropped and made again after its table `salaries`, its view `w` and its
    generic table `g` were dropped, and the metadata file of the table."""
    lake = await Lake().start()
    await make(lake, "hr")
    made = await lake.ok(await lake.manager.post(f"{HR}/tables", table_request("salaries")))
    await lake.ok(await lake.manager.post(f"{HR}/views", view_request("w")))
    generic = HR.replace("/v1/", "/polaris/v1/") + "/generic-tables"
    await lake.ok(await lake.manager.post(generic, {"name": "g", "format": "delta"}))
    for path in (SALARIES, f"{HR}/views/w", f"{generic}/g", HR):
        await lake.ok(await lake.manager.delete(path))
    await make(lake, "hr")
    return lake, str(made["metadata-location"])


def names(answer: Answer) -> Sequence[object]:
    listed = answer.json["identifiers"]
    assert isinstance(listed, list)
    return [each["name"] for each in listed if isinstance(each, dict)]


@pytest.mark.parametrize("name", ["salaries", "w", "g"])
async def test_rights_on_the_new_namespace_restore_nothing_of_the_old(name: str) -> None:
    lake, _ = await remade()
    bob = await granted(lake, "hr")
    absent = await bob.post(f"{HR}/tables/never/undrop", {})
    refused = await bob.post(f"{HR}/tables/{name}/undrop", {})
    assert (refused.status, refused.error_type) == (absent.status, absent.error_type) == (404, "NoSuchTableException")
    assert refused.message == absent.message.replace("hr.never", f"hr.{name}")
    assert (await lake.manager.get(SALARIES)).status == 404


async def test_rights_on_the_catalog_restore_it() -> None:
    lake, _ = await remade()
    ann = await lake.app.principal("ann", on_catalog("TABLE_DROP"), on_namespace("TABLE_CREATE", "hr"))
    assert (await ann.post(f"{SALARIES}/undrop", {})).status == 204
    assert (await lake.manager.get(SALARIES)).status == 200


async def test_a_right_on_the_table_alone_does_not_restore_it_into_another_namespace() -> None:
    lake = await Lake().start()
    await make(lake, "hr")
    await lake.ok(await lake.manager.post(f"{HR}/tables", table_request("salaries")))
    table: JsonObject = {"type": "table", "privilege": "TABLE_DROP", "namespace": ["hr"], "tableName": "salaries"}
    dave = await lake.app.principal("dave", table, on_namespace("TABLE_CREATE", "db"))
    await lake.ok(await dave.delete(SALARIES))
    await lake.ok(await lake.manager.delete(HR))
    await make(lake, "hr")
    await lake.app.grant("dave", *(on_namespace(privilege, "hr") for privilege in PRIVILEGES))
    assert (await dave.post(f"{SALARIES}/undrop", {})).status == 404


async def test_the_refusal_names_what_is_lacking_to_a_caller_who_may_list_the_catalog() -> None:
    lake, _ = await remade()
    lister = await lake.app.principal("lister", on_catalog("TABLE_LIST"), on_namespace("TABLE_FULL_METADATA", "hr"))
    refused = await lister.post(f"{SALARIES}/undrop", {})
    assert (refused.status, refused.error_type) == (403, "NotAuthorizedException")
    assert "takes the privilege TABLE_DROP on the catalog" in str(refused.message)
    assert "had this name before" in str(refused.message)


async def test_what_is_dropped_from_the_new_namespace_is_restored_by_rights_on_it() -> None:
    lake, _ = await remade()
    bob = await granted(lake, "hr")
    made = await lake.ok(await bob.post(f"{HR}/tables", table_request("salaries")))
    await lake.ok(await bob.delete(SALARIES))
    assert (await bob.post(f"{SALARIES}/undrop", {})).status == 204
    assert (await bob.get(SALARIES)).json["metadata-location"] == made["metadata-location"]


async def test_what_was_renamed_into_a_namespace_and_dropped_belongs_to_that_one() -> None:
    lake = await Lake().start()
    await make(lake, "hr")
    names: JsonObject = {
        "source": {"namespace": ["db"], "name": "t"},
        "destination": {"namespace": ["hr"], "name": "salaries"},
    }
    await lake.ok(await lake.manager.post("/v1/lake/tables/rename", names))
    bob = await granted(lake, "hr")
    await lake.ok(await bob.delete(SALARIES))
    assert (await bob.post(f"{SALARIES}/undrop", {})).status == 204


async def test_a_namespace_whose_parent_was_made_again_is_another_one() -> None:
    lake = await Lake().start()
    await make(lake, "hr", "hr.pay")
    await lake.ok(await lake.manager.post(f"{DEEP}/tables", table_request("salaries")))
    for path in (f"{DEEP}/tables/salaries", DEEP, HR):
        await lake.ok(await lake.manager.delete(path))
    await make(lake, "hr", "hr.pay")
    for number, levels in enumerate([("hr",), ("hr", "pay")]):
        bob = await granted(lake, *levels, name=f"bob{number}")
        assert (await bob.post(f"{DEEP}/tables/salaries/undrop", {})).status == 404
    assert (await lake.manager.post(f"{DEEP}/tables/salaries/undrop", {})).status == 204


async def test_the_list_of_what_was_dropped_shows_an_earlier_namespaces_tables_to_who_may_list_the_catalog() -> None:
    lake, _ = await remade()
    bob = await granted(lake, "hr")
    await lake.ok(await bob.post(f"{HR}/tables", table_request("bonus")))
    await lake.ok(await bob.delete(f"{HR}/tables/bonus"))
    assert names(await bob.get(f"{HR}/tables?deleted=true")) == ["bonus"]
    assert names(await bob.get(f"{HR}/tables?deleted=true&pageToken=&pageSize=1")) == ["bonus"]
    lister = await lake.app.principal("lister", on_catalog("TABLE_LIST"))
    assert sorted(map(str, names(await lister.get(f"{HR}/tables?deleted=true")))) == ["bonus", "salaries"]


@pytest.mark.parametrize("listed", ["tables?deleted=true", "tables?"])
async def test_a_page_that_was_begun_in_the_old_namespace_does_not_go_on_in_the_new_one(listed: str) -> None:
    lake = await Lake().start()
    await make(lake, "hr")
    for name in ("a", "b"):
        await lake.ok(await lake.manager.post(f"{HR}/tables", table_request(name)))
        if "deleted" in listed:
            await lake.ok(await lake.manager.delete(f"{HR}/tables/{name}"))
    bob = await granted(lake, "hr")
    first = await bob.get(f"{HR}/{listed}&pageToken=&pageSize=1")
    assert names(first) == ["a"]
    for name in "" if "deleted" in listed else "ab":
        await lake.ok(await lake.manager.delete(f"{HR}/tables/{name}"))
    await lake.ok(await lake.manager.delete(HR))
    await make(lake, "hr")
    await lake.app.grant("bob", *(on_namespace(privilege, "hr") for privilege in PRIVILEGES))
    rest = await bob.get(f"{HR}/{listed}&pageToken={first.json['next-page-token']}")
    assert (rest.status, rest.message) == (400, "The page token has expired: list again from the start")


async def test_rights_on_the_new_namespace_register_no_file_of_a_table_of_the_old() -> None:
    lake, file = await remade()
    bob = await granted(lake, "hr")
    refused = await bob.post(f"{HR}/register", {"name": "mine", "metadata-location": file})
    assert (refused.status, refused.error_type) == (403, "NotAuthorizedException")
    assert "takes the privilege TABLE_READ_DATA on that table" in str(refused.message)
    reader = await lake.app.principal("reader", on_catalog("TABLE_READ_DATA"), on_namespace("TABLE_CREATE", "hr"))
    assert (await reader.post(f"{HR}/register", {"name": "mine", "metadata-location": file})).status == 200


async def test_rights_on_a_namespace_whose_folder_is_the_same_register_no_dropped_tables_file() -> None:
    lake = await Lake().start()
    await make(lake, "p_q", "p q")
    made = await lake.ok(await lake.manager.post(f"{NAMESPACES}/p_q/tables", table_request("salaries")))
    await lake.ok(await lake.manager.delete(f"{NAMESPACES}/p_q/tables/salaries"))
    bob = await granted(lake, "p q")
    file: JsonObject = {"name": "mine", "metadata-location": made["metadata-location"]}
    refused = await bob.post(f"{NAMESPACES}/p%20q/register", file)
    assert (refused.status, refused.error_type) == (403, "NotAuthorizedException")


async def forget_namespaces(lake: Lake) -> None:
    """Gives the tombstones and claims of the catalog the form of a version that recorded no namespace's id."""

    def edit(head: RegistryState) -> Steps[Edits | None]:
        edits: dict[str, JsonObject | None] = {}
        for prefix in ("tombstone\n", "dropped\n"):
            for key, entry in head.index.scan(prefix):
                if "namespace_entity" in entry:
                    edits[key] = {field: value for field, value in entry.items() if field != "namespace_entity"}
        return immediately(edits or None)

    realm = lake.app.realms()["r"]
    [entry] = await list_catalogs(lake.app.session(realm))
    deadline = lake.app.clock.now_ms() + 20_000
    session = realm.catalog(entry).session(OperationRequest("POST", "", "", None, "operator", {}, deadline), ALLOW_ALL)
    await change_registry(session, "as of old", {}, edit)


async def test_a_tombstone_of_a_version_that_recorded_no_namespace_takes_rights_on_the_catalog() -> None:
    lake = await Lake().start()
    await make(lake, "hr")
    made = await lake.ok(await lake.manager.post(f"{HR}/tables", table_request("salaries")))
    await lake.ok(await lake.manager.delete(SALARIES))
    await forget_namespaces(lake)
    bob = await granted(lake, "hr")
    assert (await bob.post(f"{SALARIES}/undrop", {})).status == 404
    assert names(await bob.get(f"{HR}/tables?deleted=true")) == []
    file: JsonObject = {"name": "mine", "metadata-location": made["metadata-location"]}
    assert (await bob.post(f"{HR}/register", file)).status == 403
    lister = await lake.app.principal("lister", on_catalog("TABLE_LIST"), on_namespace("TABLE_CREATE", "hr"))
    refused = await lister.post(f"{SALARIES}/undrop", {})
    assert refused.status == 403
    assert "its tombstone does not record" in str(refused.message)
    assert (await lake.manager.post(f"{SALARIES}/undrop", {})).status == 204
