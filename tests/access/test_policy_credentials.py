"""Access to files needs the consent of the policy at that moment: vended credentials, signatures, plans."""

from dataclasses import replace

from tests.access.lake import Lake
from tests.access.test_delegation import VENDED, Fixture, T, lake, location_of, to_sign, token_of
from tests.access.test_scans import first_task, planned
from tests.access.test_scans import lake as scanned_lake
from tests.support.policy_stub import PolicyStub
from tests.support.realm_service import RealmApp
from tests.vending.aws_policies import allows
from tools.support.asgi_client import Client

scanned = scanned_lake


def policed(app: RealmApp, stub: PolicyStub, name: str) -> Client:
    served = replace(app, policy=stub.agent(app.clock.now_ms))
    return app.client(name, app=served.serve())


def owner_of(it: Fixture, stub: PolicyStub) -> Client:
    return policed(it.app, stub, "owner")


async def test_credentials_read_where_the_policy_denies_writes() -> None:
    stub = PolicyStub(lambda principal, action, kind, name: action != "TABLE_WRITE_DATA")
    async with lake() as it:
        loaded = await owner_of(it, stub).get(T, **VENDED)

        files = f"arn:aws:s3:::{location_of(loaded).removeprefix('s3://')}"
        assert token_of(loaded) is not None
        assert allows(it.policies[-1], "s3:GetObject", f"{files}/1")
        assert not allows(it.policies[-1], "s3:PutObject", f"{files}/1")


async def test_cached_credentials_are_not_given_once_the_policy_denies() -> None:
    stub = PolicyStub()
    async with lake() as it:
        owner = owner_of(it, stub)
        assert token_of(await owner.get(T, **VENDED)) is not None
        stub.allows = lambda principal, action, kind, name: action != "TABLE_READ_DATA"

        assert (await owner.get(T, **VENDED)).status == 403
        assert (await owner.get(f"{T}/credentials")).status == 403
        assert token_of(await owner.get(T)) is None


async def test_no_answer_gives_no_credentials() -> None:
    stub = PolicyStub()
    async with lake() as it:
        owner = owner_of(it, stub)

        def once(*_: str) -> bool:
            stub.silent = True
            return True

        stub.allows = once
        assert (await owner.get(T, **VENDED)).status == 503
        assert not it.sts.asked


async def test_each_signature_is_queried_about() -> None:
    stub = PolicyStub()
    async with lake() as it:
        owner = owner_of(it, stub)
        file = f"{location_of(await owner.get(T)).removeprefix('s3://')}/1"
        assert (await owner.post(f"{T}/sign", to_sign("PUT", file))).status == 200
        stub.allows = lambda principal, action, kind, name: action != "TABLE_WRITE_DATA"

        assert (await owner.post(f"{T}/sign", to_sign("PUT", file))).status == 403
        assert (await owner.post(f"{T}/sign", to_sign("GET", file))).status == 200
        stub.silent = True
        assert (await owner.post(f"{T}/sign", to_sign("GET", file))).status == 503


async def test_a_plan_ends_where_the_policy_denies(scanned: Lake) -> None:
    stub = PolicyStub()
    manager = policed(scanned.app, stub, "manager")
    found = await planned(manager)
    assert (await first_task(manager, found)).status == 200
    stub.allows = lambda principal, action, kind, name: action != "TABLE_READ_DATA"

    assert (await planned(manager)).status == 403
    assert (await first_task(manager, found)).status == 403
    assert (await manager.get(f"/v1/lake/namespaces/db/tables/t/plan/{found.json['plan-id']}")).status == 403
    stub.silent = True
    assert (await first_task(manager, found)).status == 503
