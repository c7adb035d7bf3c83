"""Google Cloud Storage takes one write a second to one name, and answers 429 to more: what a commit makes of it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import orjson
import pytest
from aiohttp import web

from arco_catalog.iceberg.errors import CommitStateUnknown
from storage_backends.backoff import ATTEMPTS
from storage_backends.gcs.config import GcsClient
from tests.storage_backends.answers import PlayedScript
from tests.storage_backends.gcs.scripted_gcs import ScriptedGcs, playing_gcs, refusal
from tests.storage_backends.s3.scripted_s3 import respond
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property

POINTERS = "/iceberg_pointers/"
THROTTLED = refusal(429, "rateLimitExceeded", "The object exceeded the rate limit for object mutation operations")


@dataclass
class HotGcs(ScriptedGcs):
    """One that answers so many writes of pointers with 429."""

    throttles: int = 0
    throttled: list[str] = field(default_factory=list)

    def _serve(self, request: web.BaseRequest, body: bytes) -> web.Response:
        name = request.query.get("name", "")
        if request.method == "POST" and POINTERS in name and self.throttles:
            self.throttles -= 1
            self.throttled.append(name)
            return respond(THROTTLED)
        return super()._serve(request, body)


@pytest.fixture(params=list(GcsClient))
async def played(request: pytest.FixtureRequest) -> AsyncIterator[PlayedScript]:
    async with playing_gcs([], request.param, server=HotGcs([])) as played:
        yield played


async def test_a_commit_waits_until_its_pointer_may_be_written(played: PlayedScript) -> None:
    assert isinstance(played.server, HotGcs)
    fixture = CatalogFixture(played.store)
    await fixture.namespace("db")
    await fixture.table("t")
    played.server.throttles = 5

    committed = await fixture.commit(set_property("a", "1"))

    assert orjson.loads(committed.metadata)["properties"]["a"] == "1"
    assert len(played.server.throttled) == 5
    assert len(played.pauses) == 5


async def test_a_commit_whose_pointer_may_not_be_written_has_changed_nothing_and_may_be_sent_again(
    played: PlayedScript,
) -> None:
    assert isinstance(played.server, HotGcs)
    fixture = CatalogFixture(played.store)
    await fixture.namespace("db")
    await fixture.table("t")
    before = {name: body for name, body in played.server.landed.items() if POINTERS in name}
    played.server.throttles = ATTEMPTS

    with pytest.raises(CommitStateUnknown, match="rateLimitExceeded"):  # more careful than it need be
        await fixture.commit(set_property("a", "1"))

    assert {name: body for name, body in played.server.landed.items() if POINTERS in name} == before
    assert len(played.server.throttled) == ATTEMPTS
    committed = await fixture.commit(set_property("a", "1"))
    assert orjson.loads(committed.metadata)["properties"]["a"] == "1"
