"""Loads with fewer snapshots, and compressed ones, are made once for a metadata file."""

import asyncio
import gzip
from collections.abc import Callable

import pytest

from arco_catalog.http.app import create_app
from arco_catalog.http.compression import ALWAYS_BYTES
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations import table_forms
from arco_catalog.state import files
from arco_catalog.state.gzip_stream import DeflatedPart, deflate
from storage_backends import StoreUnavailable
from tests.support.http_service import HttpService
from tools.support.asgi_client import Client
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import append, set_property

TABLE = "/v1/wh/namespaces/db/tables/t"


class FormCounter:
    """Counts how often the forms of table metadata are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[str] = []

        def visible(size: int, document: JsonObject) -> bytes:
            self.made.append("visible")
            return make_visible(size, document)

        def deflated(body: bytes) -> DeflatedPart:
            self.made.append("deflated")
            return deflate(body)

        make_visible = table_forms._without_hidden_snapshots
        monkeypatch.setattr(table_forms, "_without_hidden_snapshots", visible)
        monkeypatch.setattr(table_forms, "deflate", deflated)

    def take(self) -> list[str]:
        """What was made since the last call."""
        made, self.made = self.made, []
        return sorted(made)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> FormCounter:
    return FormCounter(monkeypatch)


async def table_of(service: HttpService, size: int) -> HttpService:
    """A table of two snapshots, of which one has a ref."""
    await service.namespace("db", "db")
    metadata = (await service.table("t")).json["metadata"]
    assert isinstance(metadata, dict)
    location = str(metadata["location"])
    for number, parent in ((1, None), (2, 1)):
        answer = await service.client.post(TABLE, append(location, number, parent))
        assert answer.status == 200, answer.body
    await service.client.post(TABLE, set_property("a", "b" * size))
    return service


@pytest.mark.parametrize("snapshots", ["all", "refs"])
async def test_a_compressed_load_is_the_plain_one(snapshots: str, service_with: Callable[..., HttpService]) -> None:
    client = (await table_of(service_with(), ALWAYS_BYTES)).client

    plain = await client.get(f"{TABLE}?snapshots={snapshots}")
    for _ in range(2):
        packed = await client.get(f"{TABLE}?snapshots={snapshots}", accept_encoding="gzip")

        assert packed.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(packed.body) == plain.body
        assert packed.headers["ETag"] == f"W/{plain.headers['ETag']}"
        assert packed.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"


async def test_each_form_is_made_once_for_a_metadata_file(
    service_with: Callable[..., HttpService], counted: FormCounter
) -> None:
    client = (await table_of(service_with(), ALWAYS_BYTES)).client

    async def load(query: str, coding: str) -> list[str]:
        answers = await asyncio.gather(*(client.get(f"{TABLE}{query}", accept_encoding=coding) for _ in range(8)))
        assert {answer.status for answer in answers} == {200}
        assert len({answer.body for answer in answers}) == 1
        return counted.take()

    assert await load("", "gzip") == ["deflated"]
    assert await load("?snapshots=refs", "identity") == ["visible"]
    assert await load("?snapshots=refs", "gzip") == ["deflated"]
    for query in ("", "?snapshots=refs"):
        assert await load(query, "gzip") == []
    assert (await client.post(TABLE, set_property("c", "d"))).status == 200
    counted.take()
    assert await load("?snapshots=refs", "gzip") == ["deflated", "visible"]


async def test_forms_count_in_the_cache(service_with: Callable[..., HttpService]) -> None:
    service = await table_of(service_with(), ALWAYS_BYTES)
    catalog = service.catalog()
    client = Client(create_app({"wh": catalog}))
    await client.get(TABLE)
    before = catalog.files.size

    visible = await client.get(f"{TABLE}?snapshots=refs")

    assert catalog.files.size - before > 0.9 * len(visible.body)


async def test_a_form_that_takes_longer_than_the_request_has_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> bytes:
        await asyncio.Event().wait()
        return b""

    fixture = CatalogFixture()
    await fixture.namespace()
    state = await fixture.table()
    monkeypatch.setattr(files, "off_loop", never)

    with pytest.raises(StoreUnavailable, match="deadline"):
        await table_forms.visible_snapshots(fixture.session(deadline_ms=20), state)
