"""Large answers may be compressed, for clients that can read that."""

import gzip
from collections.abc import Callable

import pytest

from arco_catalog.http.compression import WORTHWHILE_BYTES, accepts_gzip
from tests.support.http_service import HttpService
from tools.support.request_bodies import set_property

TABLE = "/v1/wh/namespaces/db/tables/t"


@pytest.mark.parametrize(
    "header", ["gzip", "GZIP", "br, gzip", "gzip;q=0.5", "*", "gzip;q=1, *;q=0", "deflate,gzip ;q=0.1"]
)
def test_gzip_is_wanted(header: str) -> None:
    assert accepts_gzip({"accept-encoding": header})


@pytest.mark.parametrize("header", ["", "br", "gzip;q=0", "gzip; q=0.000", "*;q=0", "gzip;q=0, *", "xgzip"])
def test_gzip_is_not_wanted(header: str) -> None:
    assert not accepts_gzip({"accept-encoding": header})


def test_gzip_is_accepted_only_if_the_header_lists_it() -> None:
    assert not accepts_gzip({})


async def big_table(service: HttpService) -> HttpService:
    await service.namespace("db", "db")
    await service.table("t")
    await service.client.post(TABLE, set_property("a", "b" * WORTHWHILE_BYTES))
    return service


async def test_a_small_answer_is_left_as_it_is(service_with: Callable[..., HttpService]) -> None:
    service = service_with(gzip=True)
    await service.namespace("db", "db")
    await service.table("t")

    answer = await service.client.get(TABLE, accept_encoding="gzip")

    assert "Content-Encoding" not in answer.headers
    assert "Vary" not in answer.headers


async def test_a_large_answer_is_compressed_and_its_tag_made_weak(service_with: Callable[..., HttpService]) -> None:
    client = (await big_table(service_with(gzip=True))).client

    plain = await client.get(TABLE)
    packed = await client.get(TABLE, accept_encoding="gzip, deflate")

    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["content-length"] == str(len(packed.body))
    assert len(packed.body) < len(plain.body)
    assert gzip.decompress(packed.body) == plain.body
    assert packed.headers["ETag"] == f"W/{plain.headers['ETag']}"
    assert packed.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    assert (await client.get(TABLE, if_none_match=packed.headers["ETag"])).status == 304


async def test_nothing_is_compressed_without_the_option(service_with: Callable[..., HttpService]) -> None:
    client = (await big_table(service_with())).client

    answer = await client.get(TABLE, accept_encoding="gzip")

    assert "Content-Encoding" not in answer.headers
    assert answer.json["config"] == {}
