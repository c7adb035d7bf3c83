"""Shared Key signatures, beside those that Azure's SDK makes of the same requests."""

import pytest
from azure.core.pipeline import PipelineContext, PipelineRequest
from azure.core.pipeline.transport import HttpRequest
from azure.storage.blob._shared.authentication import SharedKeyCredentialPolicy
from hypothesis import given
from hypothesis import strategies as st

from storage_backends.azure.signature import date_stamp, decoded_key, path_of, query_of, signed
from storage_backends.wire.dates import http_date_ms

KEY = "c2VjcmV0IGtleQ=="
DATE = {"x-ms-date": "Sat, 21 Nov 2026 12:00:00 GMT", "x-ms-version": "2023-11-03"}


def by_the_sdk(method: str, path: str, query: str, headers: dict[str, str], length: int) -> str:
    url = f"http://127.0.0.1:10000{path}{'?' if query else ''}{query}"
    request = HttpRequest(method, url, {**headers, **({"content-length": str(length)} if length else {})})
    carried = PipelineRequest(request, PipelineContext(None))
    policy = SharedKeyCredentialPolicy("account", KEY)  # type: ignore[no-untyped-call]
    policy.on_request(carried)  # type: ignore[no-untyped-call]
    return str(request.headers["Authorization"])


def by_us(method: str, path: str, query: dict[str, str], headers: dict[str, str], length: int) -> str:
    return signed("account", decoded_key(KEY), method, path, query, headers, length)["authorization"]


@pytest.mark.parametrize(
    ("method", "key", "query", "headers", "length"),
    [
        ("GET", "a/b", {}, {}, 0),
        ("GET", "a/b", {}, {"if-none-match": '"0x8D1"'}, 0),
        ("GET", "a/b", {}, {"x-ms-range": "bytes=0-9"}, 0),
        ("PUT", "a b/é+%2F", {}, {"x-ms-blob-type": "BlockBlob", "content-type": "a/b", "if-none-match": "*"}, 12),
        ("PUT", "empty", {}, {"x-ms-blob-type": "BlockBlob", "if-match": '"0x8D1"'}, 0),
        ("DELETE", "a/b", {}, {"if-match": '"0x8D1"'}, 0),
        ("GET", "", {"restype": "container", "comp": "list", "prefix": "a b/é&=+", "marker": "2!8=/+"}, {}, 0),
    ],
)
def test_the_signature_is_the_sdks(
    method: str, key: str, query: dict[str, str], headers: dict[str, str], length: int
) -> None:
    path, sent = f"/container/{path_of(key)}", {**headers, **DATE}

    assert by_us(method, path, query, sent, length) == by_the_sdk(method, path, query_of(query.items()), sent, length)


VALUES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=20)


@given(key=VALUES, prefix=VALUES, marker=VALUES, length=st.integers(0, 10**9))
def test_any_key_and_query_is_signed_as_the_sdk_signs_it(key: str, prefix: str, marker: str, length: int) -> None:
    path, query = f"/container/{path_of(key)}", {"prefix": prefix, "marker": marker, "comp": "list"}

    assert by_us("PUT", path, query, DATE, length) == by_the_sdk(
        "PUT", path, query_of(query.items()), dict(DATE), length
    )


def test_a_range_and_a_type_are_signed() -> None:
    headers = {**DATE, "range": "bytes=0-9", "content-type": "text/plain"}

    assert len({by_us("GET", "/c/k", {}, part, 0) for part in (headers, DATE, {**headers, "range": "bytes=0-8"})}) == 3


@given(now_ms=st.integers(0, 4_102_444_800_000))
def test_a_date_is_written_as_headers_have_it(now_ms: int) -> None:
    assert http_date_ms(date_stamp(now_ms)) == now_ms // 1_000 * 1_000


def test_a_date_has_two_digits_for_the_day() -> None:
    assert date_stamp(1_796_083_200_000) == "Tue, 01 Dec 2026 00:00:00 GMT"


def test_a_key_is_base64() -> None:
    with pytest.raises(ValueError, match=r"base64|padding"):
        decoded_key("no key!")
