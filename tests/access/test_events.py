"""The events of a feed are shown by the caller's rights on what an object is now, as the history is: not the changes of
what had its name before, and no name in a namespace that is hidden (docs/design/access.md#events)."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.feed import newest_token
from arco_catalog.state.feed import FeedRecord, FeedSegment, RegistryPosition
from arco_catalog.state.fields import mapping, objects, texts
from tests.access.lake import DB, NAMESPACES, Lake
from tests.support.realm_service import on_catalog, on_namespace, on_table, table_request
from tools.support.asgi_client import Client
from tools.support.request_bodies import set_property, view_request

EVENTS = "/v1/lake/events"


@pytest.fixture
async def lake(first: Lake) -> Lake:
    """The lake, whose feed has begun, and then gets changes of `t`, of a view and of a table that is dropped."""
    lake = first.copy()
    await lake.ok(await lake.manager.post(f"{DB}/tables/t", set_property("a", "b")))
    await lake.ok(await lake.manager.post(f"{DB}/views", view_request("w")))
    await lake.ok(await lake.manager.post(f"{DB}/tables", table_request("x")))
    await lake.ok(await lake.manager.delete(f"{DB}/tables/x"))
    await lake.ok(await lake.manager.post(NAMESPACES, {"namespace": ["third"]}))
    await lake.enter()
    return lake


async def seen(client: Client, names: list[JsonValue] | None = None) -> Sequence[JsonObject]:
    """The operations of all events that a caller sees, or of those that names select."""
    found: list[JsonObject] = []
    token: JsonValue = None
    while True:
        answer = await client.post(
            EVENTS, {"catalog-objects-by-name": names, "continuation-token": token, "page-size": 3}
        )
        assert answer.status == 200, answer.body
        found += [mapping(each, "operation") for each in objects(answer.json, "events")]
        if answer.json["continuation-token"] == token:
            return found
        token = answer.json["continuation-token"]


def names(operations: Sequence[JsonObject]) -> Sequence[tuple[str, str]]:
    return [
        (str(each["operation-type"]), str(mapping(each, "identifier").get("name") or texts(each, "namespace")[-1]))
        for each in operations
        if not str(each["operation-type"]).startswith("rename")
    ]


async def by(lake: Lake, *grants: JsonObject) -> Sequence[tuple[str, str]]:
    return names(await seen(await lake.app.principal("reader", *grants)))


@pytest.mark.parametrize(
    ("grant", "shown"),
    [
        (on_table("TABLE_READ_PROPERTIES", "db", "t"), [("update-table", "t")]),
        (on_table("TABLE_LIST", "db", "t"), []),
        (on_namespace("TABLE_READ_DATA", "other"), []),
        (on_namespace("NAMESPACE_READ_PROPERTIES", "third"), [("create-namespace", "third")]),
        (on_namespace("VIEW_READ_PROPERTIES", "db"), [("create-view", "w")]),
        (
            on_namespace("TABLE_READ_PROPERTIES", "db"),
            [("update-table", "t"), ("create-table", "x"), ("drop-table", "x")],
        ),
    ],
    ids=lambda value: None,
)
async def test_a_caller_sees_the_events_of_what_it_may_read(
    lake: Lake, grant: JsonObject, shown: Sequence[tuple[str, str]]
) -> None:
    assert sorted(await by(lake, grant)) == sorted(shown)


async def test_the_owner_of_a_catalog_sees_all_events(lake: Lake) -> None:
    owner = [*map(on_catalog, ("CATALOG_MANAGE_ACCESS", "CATALOG_MANAGE_METADATA"))]

    assert {kind for kind, _ in await by(lake, *owner)} == {
        "update-table",
        "create-view",
        "create-table",
        "drop-table",
        "create-namespace",
    }


async def move(lake: Lake, source: tuple[str, str], destination: tuple[str, str]) -> None:
    identifiers: JsonObject = {
        "source": {"namespace": [source[0]], "name": source[1]},
        "destination": {"namespace": [destination[0]], "name": destination[1]},
    }
    await lake.ok(await lake.manager.post("/v1/lake/tables/rename", identifiers))
    await lake.enter()


async def test_a_rename_out_of_a_hidden_namespace_does_not_show_the_old_name(lake: Lake) -> None:
    reader = await lake.app.principal("reader", on_namespace("TABLE_READ_PROPERTIES", "other"))
    await move(lake, ("db", "t"), ("other", "moved"))

    assert await seen(reader) == [
        {"operation-type": "rename-table", "destination": {"namespace": ["other"], "name": "moved"}}
    ]
    assert await seen(reader, [["db", "t"]]) == [], "a filter shows no hidden name"
    assert await seen(reader, [["db"]]) == []
    assert len(await seen(reader, [["other"]])) == 1


async def test_a_rename_into_a_hidden_namespace_is_not_shown_there(lake: Lake) -> None:
    reader = await lake.app.principal("reader", on_namespace("TABLE_READ_PROPERTIES", "other"))
    await move(lake, ("db", "t"), ("other", "t"))
    await move(lake, ("other", "t"), ("third", "secret"))

    assert await seen(reader) == []


async def test_who_may_list_both_namespaces_sees_both_names(lake: Lake) -> None:
    grants = on_namespace("TABLE_READ_PROPERTIES", "other"), on_namespace("TABLE_LIST", "db")
    reader = await lake.app.principal("reader", *grants)
    await move(lake, ("db", "t"), ("other", "moved"))

    [renamed] = await seen(reader)
    assert mapping(renamed, "source") == {"namespace": ["db"], "name": "t"}


async def test_a_new_table_of_a_name_shows_nothing_of_the_earlier_one(lake: Lake) -> None:
    reader = await lake.app.principal("reader", on_table("TABLE_READ_PROPERTIES", "db", "t"))
    await move(lake, ("db", "t"), ("other", "moved"))
    await lake.ok(await lake.manager.post(f"{DB}/tables", table_request("t")))
    await lake.app.grant("reader", on_table("TABLE_READ_PROPERTIES", "db", "t"))
    await lake.enter()

    shown = await seen(reader, [["db", "t"]])
    assert [each["operation-type"] for each in shown] == ["create-table"]


async def test_a_rename_hides_the_commits_under_the_old_name_but_not_the_rename(lake: Lake) -> None:
    """As docs/events.md has it: a record has the name at that time."""
    reader = await lake.app.principal("reader", on_namespace("TABLE_READ_PROPERTIES", "db"))
    assert ("update-table", "t") in names(await seen(reader))
    await move(lake, ("db", "t"), ("db", "t2"))

    shown = await seen(reader)
    assert ("update-table", "t") not in names(shown)
    assert "rename-table" in [each["operation-type"] for each in shown]


async def test_a_hole_is_shown_to_who_may_read_the_catalog(lake: Lake) -> None:
    [session] = await lake.sessions()
    state = session.state
    number, first, previous = (await newest_token(state)).split("-")
    gap = FeedRecord(int(number) + 1, "gap", "", "an-entity", 1, {})
    segment = FeedSegment(
        "01KDVDNA00000000000000000Z", previous, int(first), gap.number, RegistryPosition(None, 0, 0), True, 1, [gap]
    )
    await state.create(state.paths.feed_segment(gap.number), segment.body)
    reader = await lake.app.principal("reader", on_namespace("TABLE_READ_PROPERTIES", "db"))
    owner = await lake.app.principal("owner", on_catalog("CATALOG_READ_PROPERTIES"))

    for client, shown in ((reader, []), (owner, ["x-gap"])):
        found = await seen(client, [["none"]])
        assert [each["operation-type"] for each in found] == shown


async def test_a_revocation_applies_to_the_next_page(lake: Lake) -> None:
    grant = on_table("TABLE_READ_PROPERTIES", "db", "t")
    reader = await lake.app.principal("reader", grant, on_catalog("TABLE_LIST"))
    assert len(await seen(reader)) == 1

    await lake.app.revoke("reader", grant)

    assert await seen(reader) == []


async def test_a_stranger_gets_what_a_missing_catalog_gets(lake: Lake) -> None:
    stranger = await lake.app.principal("stranger")

    for target in (EVENTS, "/v1/nowhere/events"):
        bodies: Sequence[JsonObject] = ({}, {"continuation-token": "x"}, {"page-size": 0})
        for body in bodies:
            refused = await stranger.post(target, body)
            assert (refused.status, refused.error_type) == (404, "NoSuchWarehouseException"), body
