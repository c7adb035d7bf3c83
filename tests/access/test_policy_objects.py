"""A policy decides about each object by the object's own name, whatever it allows on the namespace and the catalog
around it: unlike grants, its rules are not inherited."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.access.lake import DB, Lake
from tests.access.test_borrowing import Places
from tests.access.test_events import names
from tests.access.test_events import seen as events_seen
from tests.access.test_history import seen
from tests.access.test_policy import PolicyServer
from tests.access.test_resolve import resolve
from tests.access.test_search import found
from tests.support.policy_stub import Allows, PolicyStub, everything
from tests.support.realm_service import MANAGEMENT
from tools.support.request_bodies import set_property


@pytest.fixture
async def places() -> Places:
    return await Places().made()


def all_but(hidden: str) -> Allows:
    """Allows everything but one object, also on what contains it."""
    return lambda principal, action, kind, name: name != hidden


async def test_a_search_hides_what_the_policy_denies_in_a_namespace_that_it_allows(first: Lake) -> None:
    policed = PolicyServer(first)
    policed.stub.allows = all_but("db.u")

    assert await found(policed.manager, "t")
    assert not await found(policed.manager, "u")


async def test_the_history_hides_what_the_policy_denies_in_a_catalog_that_it_allows(first: Lake) -> None:
    policed = PolicyServer(first)
    policed.stub.allows = all_but("db.u")

    shown = await seen(policed.client("root"))

    assert ("create-table", "t") in shown
    assert ("create-table", "u") not in shown


async def test_the_history_names_tables_that_exist_to_the_policy(first: Lake) -> None:
    policed = PolicyServer(first)

    await seen(policed.manager)

    targets = {
        (target["type"], target["name"], target.get("dropped", False))
        for _, given in policed.stub.calls
        for each in given.get("requests", [given])
        for target in each["resource"]["targets"]
    }
    assert {("TABLE", "t", False), ("TABLE", "u", False), ("VIEW", "v", False)} <= targets


async def test_events_of_what_the_policy_denies_are_hidden_in_a_catalog_that_it_allows(first: Lake) -> None:
    lake = first.copy()
    for name in ("t", "u"):
        await lake.ok(await lake.manager.post(f"{DB}/tables/{name}", set_property("a", "b")))
    await lake.enter()
    policed = PolicyServer(lake)
    policed.stub.allows = all_but("db.u")

    assert names(await events_seen(policed.client("root"))) == [("update-table", "t")]

    await lake.ok(
        await lake.manager.post(
            "/v1/lake/tables/rename",
            {
                "source": {"namespace": ["db"], "name": "t"},
                "destination": {"namespace": ["other"], "name": "moved"},
            },
        )
    )
    await lake.enter()
    policed = PolicyServer(lake)
    policed.stub.allows = all_but("db")

    [renamed] = [each for each in await events_seen(policed.client("root")) if "destination" in each]
    assert "source" not in renamed, "the policy denies the namespace of the old name"


async def test_a_caller_learns_its_own_name_and_roles(first: Lake) -> None:
    policed = PolicyServer(first)

    own = await policed.manager.get(f"{MANAGEMENT}/caller")

    assert own.json == {"principal": "manager", "principalRoles": ["manager-role"]}


async def test_a_commit_takes_files_of_no_table_to_which_the_policy_denies_writes(places: Places) -> None:
    stub = PolicyStub(all_but("mine.beside"))
    served = replace(places.app, policy=stub.agent(places.app.clock.now_ms)).serve()
    owner = places.app.client("owner", app=served)
    file = f"{places.locations['beside']}/metadata/snap-1.avro"

    refused = await places.commit(file, owner)

    assert refused.status == 403
    assert "TABLE_WRITE_DATA on that table" in refused.message
    stub.allows = everything
    assert (await places.commit(file, owner)).status == 200


@pytest.mark.parametrize("types", [("TABLE", "VIEW"), ("VIEW",)], ids=["any type", "views alone"])
@pytest.mark.parametrize("request_for", ["resolve", "policies"])
async def test_a_hidden_view_is_refused_as_a_name_that_nothing_has(
    first: Lake, request_for: str, types: Sequence[str]
) -> None:
    """Where the request does not say whether it means a table or a view."""
    policed = PolicyServer(first)
    policed.stub.allows = lambda principal, action, kind, name: name not in ("db.v", "db.none") or kind not in types

    async def answer(name: str) -> tuple[int, bytes]:
        if request_for == "resolve":
            answered = await resolve(policed.manager, name)
        else:
            target = f"namespace=db&target-name={name}"
            answered = await policed.manager.get(f"/polaris/v1/lake/applicable-policies?{target}")
        return answered.status, answered.body.replace(f'"{name}"'.encode(), b'"?"').replace(f"db.{name}".encode(), b"?")

    refused = await answer("v")
    assert refused == await answer("none")
    policed.stub.allows = everything
    assert refused != await answer("v")
