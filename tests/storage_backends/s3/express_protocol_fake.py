"""A fake of ours that speaks the protocol of directory buckets (S3 Express One Zone).

It does what Amazon's documents say of sessions, conditions and listings, and checks signatures by the code that signs
for the wire. What passes on it fits the documents as we read them: it does not show what Amazon's own servers do.
Unlike Amazon, it has the bucket in the path.

Sources: S3 API reference, `CreateSession`, `PutObject`, `DeleteObject`, `ListObjectsV2`; S3 user guide, "Differences
for directory buckets".
"""

import base64
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import sha256
from urllib.parse import quote, unquote
from xml.sax.saxutils import escape

from aiohttp import web

from storage_backends.s3.signature import Credentials, Scope, query_of, signed

SESSION_S = 300.0
"""How long a session lasts."""
_OWN = ("x-amz-content-sha256", "x-amz-date")  # headers that signing adds by itself


@dataclass(frozen=True)
class StoredObject:
    """An object, with an ETag that does not depend on its bytes."""

    body: bytes
    etag: str
    written_s: float


class RequestRefused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, code: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(code)
        self.status, self.code, self.headers = status, code, headers or {}


@dataclass
class ExpressProtocolFake:
    """One directory bucket in memory. One request is handled at a time, so that conditions and writes are one step.

    `refusals` are given to the next requests for objects, in turn, `session_refusals` to those for sessions.
    """

    bucket: str
    keys: Credentials
    session_s: float = SESSION_S
    refusals: list[RequestRefused] = field(default_factory=list)
    session_refusals: list[RequestRefused] = field(default_factory=list)
    objects: dict[str, StoredObject] = field(default_factory=dict)
    sessions: dict[str, Credentials] = field(default_factory=dict)
    made_sessions: int = 0
    requests: list[str] = field(default_factory=list)
    """The methods of the requests in sessions, refused or not."""
    _pages: dict[str, list[str]] = field(default_factory=dict)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to a request."""
        body = await request.content.read()
        try:
            answer = self._answer(request, body)
        except RequestRefused as refused:
            xml = f"<Error><Code>{refused.code}</Code><Message>as documented</Message></Error>" if refused.code else ""
            answer = web.Response(status=refused.status, text=xml, headers=refused.headers)
        answer.headers["Date"] = formatdate(usegmt=True)
        return answer

    def _answer(self, request: web.BaseRequest, body: bytes) -> web.Response:
        _, bucket, *rest = request.rel_url.raw_path.split("/", 2)
        key = unquote("".join(rest))
        if bucket != self.bucket:
            raise RequestRefused(404, "NoSuchBucket")
        if "session" in request.query:
            return self._create_session(request, body)
        self.requests.append(request.method)
        self._check_session(request, body)
        if self.refusals:
            raise self.refusals.pop(0)
        match request.method:
            case "GET" if not key:
                return self._list(request.query)
            case "GET" | "HEAD":
                return self._read(key, request.headers)
            case "PUT":
                return self._write(key, request.headers, body)
            case "DELETE":
                return self._delete(key, request.headers)
        raise RequestRefused(405, "MethodNotAllowed")

    def _create_session(self, request: web.BaseRequest, body: bytes) -> web.Response:
        _check_signature(request, body, self.keys)
        if self.session_refusals:
            raise self.session_refusals.pop(0)
        self.made_sessions += 1
        token = f"session-{self.made_sessions}"
        keys = self.sessions[token] = Credentials(f"ASIA{self.made_sessions}", secrets.token_hex(), token)
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.session_s))
        return web.Response(
            content_type="application/xml",
            text=f"<CreateSessionResult><Credentials><SessionToken>{token}</SessionToken>"
            f"<SecretAccessKey>{keys.secret_key}</SecretAccessKey><AccessKeyId>{keys.access_key}</AccessKeyId>"
            f"<Expiration>{until}</Expiration></Credentials></CreateSessionResult>",
        )

    def _check_session(self, request: web.BaseRequest, body: bytes) -> None:
        """Keys of a session sign, and its token is among what is signed. Raises `RequestRefused`."""
        keys = self.sessions.get(request.headers.get("x-amz-s3session-token", ""))
        if keys is None:
            raise RequestRefused(400, "ExpiredToken")
        if "x-amz-s3session-token" not in _signed_names(request):
            raise RequestRefused(403, "AccessDenied")
        _check_signature(request, body, keys)

    def _read(self, key: str, headers: Mapping[str, str]) -> web.Response:
        stored = self.objects.get(key)
        if stored is None:
            raise RequestRefused(404, "NoSuchKey")
        if headers.get("If-None-Match") == stored.etag:
            raise RequestRefused(304)
        report = {"ETag": stored.etag, "Last-Modified": formatdate(stored.written_s, usegmt=True)}
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("Range", ""))
        if span is None:
            return web.Response(body=stored.body, headers=report)
        start, size = int(span[1]), len(stored.body)
        if start >= size:
            raise RequestRefused(416, "InvalidRange")
        end = min(int(span[2]), size - 1)
        report["Content-Range"] = f"bytes {start}-{end}/{size}"
        return web.Response(status=206, body=stored.body[start : end + 1], headers=report)

    def _write(self, key: str, headers: Mapping[str, str], body: bytes) -> web.Response:
        checksum = base64.b64encode(sha256(body).digest()).decode()
        if headers.get("x-amz-checksum-sha256", checksum) != checksum:
            raise RequestRefused(400, "BadDigest")
        self._check_conditions(key, headers)
        etag = f'"{secrets.token_hex()}"'
        self.objects[key] = StoredObject(body, etag, time.time())
        return web.Response(headers={"ETag": etag})

    def _delete(self, key: str, headers: Mapping[str, str]) -> web.Response:
        self._check_conditions(key, headers)
        self.objects.pop(key, None)
        return web.Response(status=204)

    def _check_conditions(self, key: str, headers: Mapping[str, str]) -> None:
        stored = self.objects.get(key)
        if "If-None-Match" in headers and stored is not None:
            raise RequestRefused(412, "PreconditionFailed")
        if "If-Match" in headers and stored is None:
            raise RequestRefused(404, "NoSuchKey")
        if stored is not None and headers.get("If-Match", stored.etag) != stored.etag:
            raise RequestRefused(412, "PreconditionFailed")

    def _list(self, query: Mapping[str, str]) -> web.Response:
        """A page of a listing that has no order; a prefix ends in a slash."""
        prefix = query.get("prefix", "")
        if prefix and not prefix.endswith("/"):
            raise RequestRefused(400, "InvalidRequest")
        if "continuation-token" in query:
            names = self._pages.pop(query["continuation-token"])
        else:
            names = [key for key in self.objects if key.startswith(prefix)]
            names.sort(key=lambda key: sha256(key.encode()).digest())
        limit = int(query.get("max-keys", "1000"))
        page, rest = names[:limit], names[limit:]
        parts = [_entry(key, self.objects[key]) for key in page if key in self.objects]
        if rest:
            token = secrets.token_hex()
            self._pages[token] = rest
            parts.append(f"<NextContinuationToken>{token}</NextContinuationToken>")
        xml = (
            f"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>{str(bool(rest)).lower()}</IsTruncated>"
            f"{''.join(parts)}</ListBucketResult>"
        )
        return web.Response(text=xml, content_type="application/xml")


def _entry(key: str, stored: StoredObject) -> str:
    written = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(stored.written_s))
    return (
        f"<Contents><Key>{escape(quote(key))}</Key><ETag>{escape(stored.etag)}</ETag><Size>{len(stored.body)}</Size>"
        f"<LastModified>{written}</LastModified><StorageClass>EXPRESS_ONEZONE</StorageClass></Contents>"
    )


def _signed_names(request: web.BaseRequest) -> list[str]:
    match = re.search(r"SignedHeaders=([^,]+)", request.headers.get("Authorization", ""))
    return match[1].split(";") if match else []


def _check_signature(request: web.BaseRequest, body: bytes, keys: Credentials) -> None:
    """Raises `RequestRefused` unless `keys` signed the request, for the service of directory buckets."""
    expected = signed(
        Credentials(keys.access_key, keys.secret_key),
        Scope("us-east-1", "s3express"),
        request.headers.get("x-amz-date", ""),
        request.method,
        request.rel_url.raw_path,
        query_of(request.query.items()),
        {name: request.headers[name] for name in _signed_names(request) if name not in _OWN},
        body,
    )["authorization"]
    if request.headers.get("Authorization") != expected:
        raise RequestRefused(403, "SignatureDoesNotMatch")
