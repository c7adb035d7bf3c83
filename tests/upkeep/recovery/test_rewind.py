"""A prefix is brought back to an instant out of the versions that a bucket keeps (docs/recovery.md#an-earlier-time)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import pytest

from arco_catalog.iceberg.errors import BadRequest, CommitFailed, NoSuchTable
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.lost_head import HeadLost
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.reconcile import reconcile
from arco_catalog.upkeep.recovery.rewind import rewind
from storage_backends import Applied, Outcome, StoreError, Unknown, When
from storage_backends.s3.config import Carrier
from storage_backends.s3.store import S3Store
from storage_backends.s3.versions import S3Versions
from storage_backends.versions import KeptVersion
from storage_backends.wire.exchange import Request
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property
from tools.support.s3_servers import S3Server

DAY_MS = 24 * 60 * 60_000
ENABLE = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"


def quietly(_: str) -> None:
    """Ignores the reported change."""


@dataclass
class Bucket:
    """A bucket that keeps versions, with a catalog in it."""

    store: S3Store
    versions: S3Versions
    fixture: CatalogFixture

    async def instant(self) -> int:
        """Returns a time by the bucket's clock, which has seconds, after all earlier and before all later changes."""
        page = await self.store.list("nothing/")
        for _ in range(600):
            await asyncio.sleep(0.05)
            if (await self.store.list("nothing/")).now_ms > page.now_ms:
                return page.now_ms
        raise AssertionError("the bucket's clock stands still")

    async def kept(self) -> list[KeptVersion]:
        return [each async for each in self.versions.list("wh/_catalog/")]

    async def property_of(self, name: str) -> object:
        return (await inspect_relation(self.fixture.another().session(), NS, name))["metadata_location"]

    async def codes(self) -> list[str]:
        session = self.fixture.another().session(deadline_ms=DAY_MS)
        return [each.code async for each in check(Examination(session))]


@pytest.fixture
async def bucket(s3_server: S3Server, s3_bucket: str) -> AsyncIterator[Bucket]:
    config = replace(s3_server.config, carrier=Carrier.WIRE)
    store, versions = S3Store(s3_bucket, "lake", config=config), S3Versions(s3_bucket, "lake", config=config)
    versions.page_size = 3
    assert not await versions.enabled()
    await versions._client.write(Request("PUT", "", {}, {"versioning": ""}, ENABLE))
    yield Bucket(store, versions, CatalogFixture(store, settings=Settings("wh"), url=f"s3://{s3_bucket}/lake"))
    await store.close()
    await versions.close()


async def test_what_was_stored_then_is_stored_again_and_no_version_goes(bucket: Bucket) -> None:
    fixture = bucket.fixture
    await fixture.namespace(*NS)
    for name in ("a", "b"):
        await fixture.table(name)
    made = await fixture.commit(set_property("p", "1"), "a", key=fixture.key())
    then_ms = await bucket.instant()
    await fixture.commit(set_property("p", "2"), "a", key=fixture.key())
    await fixture.table("c")
    await drop_table(fixture.session(), NS, "b", purge=False)
    before = await bucket.kept()
    session = fixture.another().session(deadline_ms=DAY_MS)
    printed: list[str] = []

    planned = await rewind(session, bucket.versions, then_ms, dry=True, report=printed.append)
    assert await bucket.kept() == before
    done = await rewind(session, bucket.versions, then_ms, dry=False, report=quietly)

    assert planned == {**done, "dry_run": True}
    assert done["restored"] == 3, "the pointers of a and b, and HEAD"
    assert "restore wh/_catalog/core/manifest.json" in printed
    assert len(printed) == sum(count for count in (done["restored"], done["hidden"]) if isinstance(count, int))
    again = await rewind(session, bucket.versions, then_ms, dry=False, report=quietly)
    assert (again["restored"], again["hidden"]) == (0, 0)
    assert await bucket.property_of("a") == made.metadata_location
    assert (await inspect_relation(fixture.another().session(), NS, "b"))["state"] == "live"
    with pytest.raises(NoSuchTable):
        await bucket.property_of("c")
    after = await bucket.kept()
    assert {(each.key, each.id) for each in before} <= {(each.key, each.id) for each in after}
    await reconcile(fixture.another().session())
    assert await bucket.codes() == []
    await fixture.another().commit(set_property("p", "3"), "a")


async def test_an_interrupted_rewind_serves_no_client_and_continues(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture = bucket.fixture
    await fixture.namespace(*NS)
    made = await fixture.table("a")
    then_ms = await bucket.instant()
    await fixture.commit(set_property("p", "2"), "a")
    await fixture.table("b")
    session = fixture.another().session(deadline_ms=DAY_MS)
    original = S3Versions.get

    async def fails(self: S3Versions, kept: KeptVersion) -> bytes:
        raise StoreError("no answer")

    monkeypatch.setattr(S3Versions, "get", fails)
    with pytest.raises(StoreError):
        await rewind(session, bucket.versions, then_ms, dry=False, report=quietly)
    with pytest.raises(HeadLost):
        await fixture.another().session().state.head()
    monkeypatch.setattr(S3Versions, "get", original)

    await rewind(session, bucket.versions, then_ms, dry=False, report=quietly)

    assert await bucket.property_of("a") == made.metadata_location


async def test_a_write_whose_answer_was_lost_is_no_other_writer(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture = bucket.fixture
    await fixture.namespace(*NS)
    made = await fixture.table("a")
    then_ms = await bucket.instant()
    await fixture.commit(set_property("p", "2"), "a")
    session = fixture.another().session(deadline_ms=DAY_MS)
    original, sent = S3Store.put, []

    async def loses_the_answer(self: S3Store, key: str, body: bytes, when: When) -> Outcome:
        sent.append(key)
        outcome = await original(self, key, body, when)
        return Unknown("the answer was lost") if sent.count(key) == 1 else outcome

    monkeypatch.setattr(S3Store, "put", loses_the_answer)
    await rewind(session, bucket.versions, then_ms, dry=False, report=quietly)
    monkeypatch.setattr(S3Store, "put", original)

    assert [sent.count(key) for key in {*sent}] == [2, 2]
    assert await bucket.property_of("a") == made.metadata_location


async def test_who_writes_meanwhile_is_noticed(bucket: Bucket) -> None:
    fixture = bucket.fixture
    await fixture.namespace(*NS)
    made = await fixture.table("a")
    then_ms = await bucket.instant()
    await fixture.commit(set_property("p", "2"), "a")
    pointer = f"wh/_catalog/iceberg_pointers/{made.entity}.json"

    def meddle(original: Callable[[KeptVersion], object]) -> None:
        async def get(kept: KeptVersion) -> bytes:
            if kept.key == pointer:
                await bucket.store.delete(pointer)
            body = await S3Versions.get(bucket.versions, kept)
            assert isinstance(body, bytes)
            return body

        bucket.versions.get = get  # type: ignore[method-assign]

    meddle(bucket.versions.get)
    with pytest.raises(CommitFailed, match="stop all writers"):
        await rewind(fixture.another().session(deadline_ms=DAY_MS), bucket.versions, then_ms, dry=False, report=quietly)


async def test_a_time_before_the_catalog_and_a_bucket_without_versions_are_refused(
    bucket: Bucket, s3_server: S3Server
) -> None:
    then_ms = await bucket.instant()
    await bucket.fixture.namespace(*NS)
    session = bucket.fixture.session(deadline_ms=DAY_MS)

    with pytest.raises(BadRequest, match="did not exist at that time"):
        await rewind(session, bucket.versions, then_ms, dry=False, report=quietly)
    s3_server.make_bucket("unversioned")
    unversioned = S3Versions("unversioned", config=s3_server.config)
    with pytest.raises(BadRequest, match="keeps no versions"):
        await rewind(session, unversioned, then_ms, dry=False, report=quietly)
    await unversioned.close()
    assert isinstance(await bucket.store.delete("nothing"), Applied)
