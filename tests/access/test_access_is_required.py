"""A session is opened with the access of its request: a handler that leaves it out fails, and serves no caller."""

from dataclasses import replace
from typing import Any

import pytest

from arco_catalog.http.principal import Caller
from arco_catalog.http.realms import RealmService
from arco_catalog.http.sessions import Sessions
from arco_catalog.operations.realms import Realm
from arco_catalog.protocol.access import ALLOW_ALL, ALREADY_AUTHORIZED
from arco_catalog.protocol.catalog import Session
from tests.access.lake import Lake, T
from tests.support.realm_service import on_table
from tools.support.catalog_fixture import CatalogFixture

UNTYPED: Any = CatalogFixture
"""What a handler would write that the type checker does not see."""


def test_no_session_is_opened_without_access() -> None:
    fixture = UNTYPED()
    request = fixture.session().request

    with pytest.raises(TypeError, match="access"):
        fixture.catalog.session(request)
    with pytest.raises(TypeError, match="access"):
        Session(fixture.catalog, request)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        fixture.catalog.session(request, None)


async def test_a_handler_that_leaves_out_the_access_answers_an_error_to_every_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = await Lake().start()
    reader = await lake.app.principal("reader", on_table("TABLE_READ_DATA", "db", "t"))
    assert (await reader.get(T)).status == 200
    rightly = Sessions.open

    def forgetful(self: Any) -> Any:
        return self.catalog.session(rightly(self).request)

    monkeypatch.setattr(Sessions, "open", forgetful)
    for client in (reader, lake.manager, lake.app.client("stranger")):
        assert (await client.get(T)).status == 500


async def test_a_caller_without_an_identity_is_not_served_where_access_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = await Lake().start()
    rightly = RealmService.identify

    async def anonymous(self: RealmService, *request: Any) -> tuple[Realm, Caller]:
        realm, caller = await rightly(self, *request)
        return realm, replace(caller, identity=None)

    monkeypatch.setattr(RealmService, "identify", anonymous)
    assert (await lake.manager.get(T)).status == 500
    assert (await lake.app.root.get("/api/management/v1/catalogs")).status == 500


def test_access_that_is_not_checked_has_a_name() -> None:
    assert [repr(access) for access in (ALLOW_ALL, ALREADY_AUTHORIZED)] == ["ALLOW_ALL", "ALREADY_AUTHORIZED"]
    assert not ALLOW_ALL.is_restricted
