"""A fake of ours that speaks GCS's JSON protocol: `python -m tests.support.gcs_protocol_fake`.

It does what Google's reference says of the requests that the store and PyArrow make, generations and preconditions
included. What passes on it fits the reference as we read it: it does not show what Google's own servers do.

It prints its port, and ends when its standard input does, so it never outlives the program that started it.
"""

import asyncio
import base64
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from urllib.parse import unquote

from aiohttp import web
from yarl import URL

from tools.support.gcs_servers import GcsServer
from tools.support.server_process import announcing

JsonObject = dict[str, object]
_OBJECTS = re.compile(r"/(?:download/|upload/|resumable/upload/)?storage/v1/b/([^/]+)/o(?:/([^/]+))?")
_MAX_BATCH = 100
_FIRST_GENERATION = 1_700_000_000_000_000


@dataclass(frozen=True)
class StoredObject:
    """One generation of an object."""

    body: bytes
    generation: int
    created_ms: int


@dataclass
class Upload:
    """One in parts, which is not an object until its last part is here."""

    bucket: str
    name: str
    query: Mapping[str, str]
    body: bytearray = field(default_factory=bytearray)


class Refused(Exception):
    """An answer that is an error, with its reason and message as the reference has them."""

    def __init__(self, status: int, reason: str = "", message: str = "") -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message


class GcsProtocolFake:
    """Buckets in memory. One request is handled at a time, so that conditions and writes are one step."""

    def __init__(self, token: str | None = None) -> None:
        self.buckets: dict[str, dict[str, StoredObject]] = {}
        self.token = token
        self._uploads: dict[str, Upload] = {}
        self._generation = _FIRST_GENERATION

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to a request."""
        return self.answer(request, await request.content.read())

    def answer(self, request: web.BaseRequest, body: bytes) -> web.Response:
        """The answer to a request with this body."""
        try:
            if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
                raise Refused(401, "authError", "Invalid Credentials")
            answer = self._answer(request, body)
        except Refused as refused:
            answer = _error(refused, media=request.query.get("alt") == "media")
        answer.headers["Date"] = formatdate(usegmt=True)
        return answer

    def _answer(self, request: web.BaseRequest, body: bytes) -> web.Response:
        path = request.rel_url.raw_path
        if path == "/storage/v1/b" and request.method == "POST":
            name = str(json.loads(body)["name"])
            self.buckets.setdefault(name, {})
            return _json({"kind": "storage#bucket", "name": name})
        if path == "/batch/storage/v1" and request.method == "POST":
            return self._batch(request, body)
        bucket, name = self._named(path)
        query = dict(request.query)
        if "/upload/" in path:
            return self._upload(request, bucket, query, body)
        match request.method, name:
            case "GET", "":
                return self._list(bucket, query)
            case "GET", _:
                return self._read(request, bucket, name, query)
            case "DELETE", _ if name:
                self._delete(bucket, name, query)
                return web.Response(status=204)
        raise Refused(405, "methodNotAllowed", request.method)

    def _named(self, path: str) -> tuple[str, str]:
        """The bucket and the object of a path."""
        match = _OBJECTS.fullmatch(path)
        if match is None:
            raise Refused(404, "notFound", "Not Found")
        bucket, name = unquote(match[1]), unquote(match[2] or "")
        if bucket not in self.buckets:
            raise Refused(404, "notFound", "The specified bucket does not exist.")
        return bucket, name

    def _delete(self, bucket: str, name: str, query: Mapping[str, str]) -> None:
        _check(self._existing(bucket, name), query)
        del self.buckets[bucket][name]

    def _batch(self, request: web.BaseRequest, body: bytes) -> web.Response:
        """Deletions in one request, of which the reference allows a hundred; their answers come in any order."""
        boundary = re.search(r'boundary="?([^";]+)"?', request.headers.get("Content-Type", ""))
        parts = [] if boundary is None else body.split(b"--" + boundary[1].encode())[1:-1]
        if not 0 < len(parts) <= _MAX_BATCH:
            raise Refused(400, "badRequest", f"a batch of {len(parts)}")
        answers = "".join(f"--batch_x\r\n{self._deleted(part)}" for part in reversed(parts))
        headers = {"Content-Type": "multipart/mixed; boundary=batch_x"}
        return web.Response(body=f"{answers}--batch_x--\r\n".encode(), headers=headers)

    def _deleted(self, part: bytes) -> str:
        content_id = re.search(rb"(?i)content-id: *<?([^>\r]+)", part)
        target = re.search(rb"DELETE (\S+) HTTP/1.1", part)
        if content_id is None or target is None:
            raise Refused(400, "badRequest", "a part that is no deletion")
        url = URL(target[1].decode(), encoded=True)
        try:
            self._delete(*self._named(url.raw_path), dict(url.query))
            answer = "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
        except Refused as refused:
            text = _error(refused, media=False).text
            answer = f"HTTP/1.1 {refused.status} Refused\r\nContent-Type: application/json\r\n\r\n{text}"
        head = f"Content-Type: application/http\r\nContent-ID: <response-{content_id[1].decode()}>\r\n\r\n"
        return f"{head}{answer}\r\n"

    def _existing(self, bucket: str, name: str) -> StoredObject:
        stored = self.buckets[bucket].get(name)
        if stored is None:
            raise Refused(404, "notFound", f"No such object: {bucket}/{name}")
        return stored

    def _read(self, request: web.BaseRequest, bucket: str, name: str, query: Mapping[str, str]) -> web.Response:
        stored = self._existing(bucket, name)
        _check(stored, query)
        if query.get("alt") != "media":
            return _json(_selected(_resource(bucket, name, stored), query.get("fields")))
        headers = {
            "X-Goog-Generation": str(stored.generation),
            "Last-Modified": formatdate(stored.created_ms // 1_000, usegmt=True),
        }
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range", ""))
        if span is None:
            return web.Response(body=stored.body, headers=headers)
        start, size = int(span[1]), len(stored.body)
        if start >= size:
            return web.Response(status=416)
        end = min(int(span[2] or size), size - 1)
        headers["Content-Range"] = f"bytes {start}-{end}/{size}"
        return web.Response(status=206, body=stored.body[start : end + 1], headers=headers)

    def _list(self, bucket: str, query: Mapping[str, str]) -> web.Response:
        after = base64.urlsafe_b64decode(query["pageToken"]).decode() if "pageToken" in query else ""
        stored, prefix = self.buckets[bucket], query.get("prefix", "")
        names = sorted(name for name in stored if name.startswith(prefix) and name > after)
        most = int(query.get("maxResults", "1000"))
        page: JsonObject = {"kind": "storage#objects"}
        if items := [_resource(bucket, name, stored[name]) for name in names[:most]]:
            page["items"] = items
        if len(names) > most:
            page["nextPageToken"] = base64.urlsafe_b64encode(names[most - 1].encode()).decode()
        return _json(_selected(page, query.get("fields")))

    def _upload(self, request: web.BaseRequest, bucket: str, query: Mapping[str, str], body: bytes) -> web.Response:
        if request.method == "PUT":
            return self._part(request, self._uploads[query["upload_id"]], body)
        match query.get("uploadType"):
            case "media":
                return self._write(bucket, query["name"], query, body)
            case "multipart":
                resource, content = _parts(request.headers["Content-Type"], body)
                return self._write(bucket, str(resource.get("name") or query["name"]), query, content)
            case "resumable":
                name = query.get("name") or str(json.loads(body)["name"])
                upload_id = f"upload-{len(self._uploads)}"
                self._uploads[upload_id] = Upload(bucket, name, query)
                place = f"http://{request.host}{request.rel_url.raw_path}?uploadType=resumable&upload_id={upload_id}"
                return web.Response(headers={"Location": place})
        raise Refused(400, "invalid", "uploadType")

    def _part(self, request: web.BaseRequest, upload: Upload, body: bytes) -> web.Response:
        upload.body += body
        if request.headers.get("Content-Range", "").endswith("/*"):
            headers = {"Range": f"bytes=0-{len(upload.body) - 1}"} if upload.body else {}
            return web.Response(status=308, headers=headers)
        return self._write(upload.bucket, upload.name, upload.query, bytes(upload.body))

    def _write(self, bucket: str, name: str, query: Mapping[str, str], body: bytes) -> web.Response:
        _check(self.buckets[bucket].get(name), query)
        self._generation += 1
        stored = StoredObject(body, self._generation, time.time_ns() // 1_000_000)
        self.buckets[bucket][name] = stored
        return _json(_selected(_resource(bucket, name, stored), query.get("fields")))


def _check(stored: StoredObject | None, query: Mapping[str, str]) -> None:
    """Raises `Refused` if a precondition does not hold; a missing object has the generation 0."""
    generation = 0 if stored is None else stored.generation
    if "ifGenerationMatch" in query and int(query["ifGenerationMatch"]) != generation:
        raise Refused(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
    if "ifGenerationNotMatch" in query and int(query["ifGenerationNotMatch"]) == generation:
        raise Refused(304)


def _resource(bucket: str, name: str, stored: StoredObject) -> JsonObject:
    seconds, milliseconds = divmod(stored.created_ms, 1_000)
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{milliseconds:03}Z"
    return {
        "kind": "storage#object",
        "bucket": bucket,
        "name": name,
        "generation": str(stored.generation),
        "metageneration": "1",
        "size": str(len(stored.body)),
        "timeCreated": moment,
        "updated": moment,
        "storageClass": "STANDARD",
    }


def _selected(value: JsonObject, fields: str | None) -> JsonObject:
    """The part of an answer that `fields` names: names, and names with others in parentheses for what is in a list."""
    if fields is None:
        return value
    wanted = {match[1]: match[2] for match in re.finditer(r"(\w+)(?:\(([^)]*)\))?", fields)}
    selected: JsonObject = {}
    for name, inner in wanted.items():
        inside = value.get(name)
        if isinstance(inside, list) and inner:
            selected[name] = [_selected(item, inner) for item in inside]
        elif inside is not None:
            selected[name] = inside
    return selected


def _parts(content_type: str, body: bytes) -> tuple[JsonObject, bytes]:
    """The resource and the content of a multipart upload."""
    boundary = content_type.partition("boundary=")[2].strip('"').encode()
    first, second = body.split(b"--" + boundary)[1:3]
    resource, content = (part.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n") for part in (first, second))
    return json.loads(resource), content


def _json(value: JsonObject) -> web.Response:
    return web.Response(text=json.dumps(value), content_type="application/json")


def _error(refused: Refused, *, media: bool) -> web.Response:
    """An error's body is JSON, but a line of text for a download."""
    if refused.status == 304:
        return web.Response(status=304)
    if media:
        return web.Response(status=refused.status, text=refused.message)
    detail = {"message": refused.message, "domain": "global", "reason": refused.reason}
    error = {"error": {"code": refused.status, "message": refused.message, "errors": [detail]}}
    return web.Response(status=refused.status, text=json.dumps(error), content_type="application/json")


async def serve() -> None:
    """Serves until standard input ends."""
    runner = web.ServerRunner(web.Server(GcsProtocolFake().handle, access_log=None), shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)  # the program that started it reads the port
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


@contextmanager
def gcs_protocol_fake() -> Iterator[GcsServer]:
    """The fake in a process of its own."""
    with announcing("tests.support.gcs_protocol_fake") as url:
        yield GcsServer(url)


if __name__ == "__main__":
    asyncio.run(serve())
