"""Signatures: AWS's published examples, and botocore's signer as an oracle."""

from datetime import UTC, datetime
from unittest.mock import patch
from urllib.parse import unquote

import pytest
from botocore.auth import S3SigV4Auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials as BotocoreCredentials  # type: ignore[import-untyped]
from botocore.utils import percent_encode  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from storage_backends.s3.signature import Credentials, Scope, path_of, query_of, signed, signing_stamp
from storage_backends.validation import is_key
from storage_backends.wire.dates import http_date_ms

EXAMPLE_KEYS = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
EXAMPLE_DATE = {"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"}

odd = st.sampled_from(" +%~#?&=;:@,'\"!*()$/éß日🧊")
keys = st.text(odd | st.characters(codec="utf-8"), min_size=1, max_size=40).filter(is_key)
texts = st.text(odd | st.characters(codec="utf-8"), max_size=20)
tokens = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60)
versions = tokens.map(lambda text: f'"{text}"')
conditions = st.dictionaries(st.sampled_from(["if-match", "if-none-match", "range"]), versions, max_size=2)


@pytest.mark.parametrize(
    ("method", "key", "query", "headers", "body", "signature"),
    [
        (
            *("GET", "test.txt", [], {"range": "bytes=0-9"}, b""),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            *("PUT", "test$file.text", [], EXAMPLE_DATE, b"Welcome to Amazon S3."),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        (
            *("GET", "", [("lifecycle", "")], {}, b""),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            *("GET", "", [("prefix", "J"), ("max-keys", "2")], {}, b""),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_the_examples_in_the_s3_reference_are_signed_as_printed(
    method: str, key: str, query: list[tuple[str, str]], headers: dict[str, str], body: bytes, signature: str
) -> None:
    sent = signed(
        EXAMPLE_KEYS,
        Scope("us-east-1"),
        "20130524T000000Z",
        method,
        f"/{path_of(key)}",
        query_of(query),
        {"host": "examplebucket.s3.amazonaws.com", **headers},
        body,
    )
    assert sent["authorization"].endswith(f"Signature={signature}")


@given(
    method=st.sampled_from(["GET", "PUT", "DELETE", "HEAD"]),
    key=keys,
    query=st.lists(st.tuples(texts, texts), max_size=4),
    headers=conditions,
    body=st.binary(max_size=50),
    token=st.none() | tokens,
    secret=tokens,
    moment=st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)),
)
def test_botocore_signs_alike(
    method: str,
    key: str,
    query: list[tuple[str, str]],
    headers: dict[str, str],
    body: bytes,
    token: str | None,
    secret: str,
    moment: datetime,
) -> None:
    path, escaped = f"/bucket/{path_of(key)}", query_of(query)
    url = f"https://s3.example.com{path}" + (f"?{escaped}" if escaped else "")
    request = AWSRequest(method, url, {"host": "s3.example.com", **headers}, body)
    moment = moment.replace(tzinfo=UTC)
    with patch("botocore.auth.get_current_datetime", return_value=moment):
        S3SigV4Auth(BotocoreCredentials("access", secret, token), "s3", "eu-west-3").add_auth(request)

    stamp = signing_stamp(int(moment.timestamp() * 1_000))
    ours = {"host": "s3.example.com", **headers}
    sent = signed(Credentials("access", secret, token), Scope("eu-west-3"), stamp, method, path, escaped, ours, body)

    assert sent == {name.lower(): value for name, value in request.headers.items()}


@given(key=keys)
def test_keys_are_escaped_as_botocore_escapes_them(key: str) -> None:
    assert path_of(key) == percent_encode(key, safe="-._~/")
    assert unquote(path_of(key)) == key


@given(ms=st.integers(0, 4_000_000_000).map(lambda seconds: seconds * 1_000))
def test_dates_in_headers_are_read_as_they_are_written(ms: int) -> None:
    written = datetime.fromtimestamp(ms / 1_000, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert http_date_ms(written) == ms


@pytest.mark.parametrize("text", ["Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 +0000"])
def test_other_forms_of_dates_are_read_too(text: str) -> None:
    assert http_date_ms(text) == 784_111_777_000


@pytest.mark.parametrize("text", ["", "yesterday", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08-49-37 GMT"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        http_date_ms(text)


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(Credentials("access", "secret", "secret token"))
