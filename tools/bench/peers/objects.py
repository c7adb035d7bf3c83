"""A server of S3 in memory, with what the compared servers need: objects with conditional reads and writes, and
listings.

Its place is where moto's 1.5 ms a request would be what is measured. That it answers as S3 does is proved by the
contract of every store: `tests/bench/test_objects.py`.
"""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate
from typing import TypeAlias
from urllib.parse import parse_qs, quote, unquote
from xml.sax.saxutils import escape

Answer: TypeAlias = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""

PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Stored:
    """One object of S3 in memory: its bytes, its ETag, and the time at which it was written."""

    body: bytes
    etag: str
    written: float

    @property
    def headers(self) -> dict[str, str]:
        """What GET and HEAD say of it."""
        return {
            "ETag": self.etag,
            "Last-Modified": formatdate(self.written, usegmt=True),
            "Content-Type": "binary/octet-stream",
            "Accept-Ranges": "bytes",
        }


class Objects:
    """The buckets and objects of S3 in memory. Requests are handled one at a time: nothing comes between a condition
    and its write."""

    def __init__(self) -> None:
        self._buckets: dict[str, dict[str, Stored]] = {}

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Answers one request; `headers` by names in lower case."""
        status, more, data = self._answer(method, path, query, headers, body)
        return status, {"Date": formatdate(usegmt=True), "x-amz-request-id": "0", **more}, data

    def _answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Answer:
        name, _, key = unquote(path.removeprefix("/")).partition("/")
        if method == "PUT" and not key:
            self._buckets.setdefault(name, {})
            return 200, {}, b""
        bucket = self._buckets.get(name)
        if bucket is None:
            return error(404, "NoSuchBucket")
        match method:
            case "GET" if not key:
                return self._list(bucket, name, query)
            case "GET" | "HEAD":
                return read(bucket.get(key), headers, with_body=method == "GET")
            case "PUT":
                return self._put(bucket, key, headers, body)
            case "DELETE":
                return self._delete(bucket, key, headers)
        return error(405, "MethodNotAllowed")

    def _put(self, bucket: dict[str, Stored], key: str, headers: Mapping[str, str], body: bytes) -> Answer:
        current, wanted = bucket.get(key), headers.get("if-match")
        if current is not None and headers.get("if-none-match") == "*":
            return error(412, "PreconditionFailed")
        if wanted is not None and current is None:
            return error(404, "NoSuchKey")
        if wanted is not None and current is not None and wanted != current.etag:
            return error(412, "PreconditionFailed")
        if "aws-chunked" in headers.get("content-encoding", ""):
            body = unchunked(body)
        etag = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
        bucket[key] = Stored(body, etag, time.time())
        return 200, {"ETag": etag}, b""

    def _delete(self, bucket: dict[str, Stored], key: str, headers: Mapping[str, str]) -> Answer:
        current, wanted = bucket.get(key), headers.get("if-match")
        if wanted is not None and current is None:
            return error(404, "NoSuchKey")
        if wanted is not None and current is not None and wanted not in (current.etag, "*"):
            return error(412, "PreconditionFailed")
        bucket.pop(key, None)
        return 204, {}, b""

    def _list(self, bucket: dict[str, Stored], name: str, query: str) -> Answer:
        asked = {field: values[0] for field, values in parse_qs(query, keep_blank_values=True).items()}
        prefix = asked.get("prefix", "")
        after = asked.get("continuation-token") or asked.get("start-after", "")
        keys = sorted(key for key in bucket if key.startswith(prefix) and key > after)
        page = keys[: int(asked.get("max-keys", PAGE))]
        more = len(keys) > len(page)
        encode = quote if asked.get("encoding-type") == "url" else escape
        entries = "".join(
            f"<Contents><Key>{encode(key)}</Key><LastModified>{iso(bucket[key].written)}</LastModified>"
            f"<ETag>{escape(bucket[key].etag)}</ETag><Size>{len(bucket[key].body)}</Size></Contents>"
            for key in page
        )
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        encoding = "<EncodingType>url</EncodingType>" if encode is quote else ""
        text = (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{name}</Name><Prefix>{encode(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
            f"<MaxKeys>{PAGE}</MaxKeys>{encoding}<IsTruncated>{str(more).lower()}</IsTruncated>{token}{entries}"
            "</ListBucketResult>"
        )
        return 200, {"Content-Type": "application/xml"}, text.encode()


def read(stored: Stored | None, headers: Mapping[str, str], *, with_body: bool) -> Answer:
    """GET or HEAD of an object."""
    if stored is None:
        return error(404, "NoSuchKey")
    if headers.get("if-none-match") == stored.etag:
        return 304, {"ETag": stored.etag}, b""
    if "if-match" in headers and headers["if-match"] != stored.etag:
        return error(412, "PreconditionFailed")
    asked = headers.get("range", "").removeprefix("bytes=")
    if not asked or not with_body:
        return 200, stored.headers | ({} if with_body else {"Content-Length": str(len(stored.body))}), stored.body
    first, _, last = asked.partition("-")
    size = len(stored.body)
    start = int(first) if first else max(0, size - int(last))
    end = min(int(last), size - 1) if first and last else size - 1
    if start >= size:
        return error(416, "InvalidRange")
    return 206, stored.headers | {"Content-Range": f"bytes {start}-{end}/{size}"}, stored.body[start : end + 1]


def unchunked(body: bytes) -> bytes:
    """What a body in AWS's chunks holds: each has its size in front, in hexadecimal, and perhaps a signature."""
    parts: list[bytes] = []
    place = 0
    while True:
        end = body.index(b"\r\n", place)
        size = int(body[place:end].partition(b";")[0], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(body[end + 2 : end + 2 + size])
        place = end + 2 + size + 2


def error(status: int, code: str) -> Answer:
    """A refusal in S3's form."""
    text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
    return status, {"Content-Type": "application/xml"}, text.encode()


def iso(seconds: float) -> str:
    """A time as listings tell it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000:03}Z"
