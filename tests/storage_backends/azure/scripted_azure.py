"""An Azure Blob Storage that misbehaves by a script: each request takes the next step of a script, and is served
honestly after its end."""

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.storage_backends.s3.scripted_s3 import DATE, LAST_MODIFIED, Reply, ScriptedS3, Step
from tests.support.stub_server import stub_server


def refusal(status: int, code: str, **headers: str) -> Reply:
    """An answer with Azure's error code."""
    return Reply(status, code, headers={"x-ms-error-code": code, **headers})


@dataclass
class ScriptedAzure(ScriptedS3):
    """`etags` is what each object's write was answered with."""

    etags: dict[str, str] = field(default_factory=dict)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def _serve(self, request: web.BaseRequest, body: bytes) -> web.Response:
        key = request.path
        held = self.etags.get(key)
        if request.method == "GET" and held is not None:
            if request.headers.get("If-None-Match") == held:
                return _error(304, "ConditionNotMet")
            headers = {"ETag": held, "Date": DATE, "Last-Modified": LAST_MODIFIED}
            return web.Response(body=self.objects[key], headers=headers)
        if request.headers.get("If-Match", held) != held:
            return _error(412, "ConditionNotMet")
        if request.headers.get("If-None-Match") == "*" and held is not None:
            return _error(409, "BlobAlreadyExists")
        match request.method:
            case "PUT":
                self.objects[key], self.etags[key] = body, f'"0x8D{next(self._numbers):012X}"'
                return web.Response(status=201, headers={"ETag": self.etags[key], "Date": DATE})
            case "DELETE" if held is not None:
                del self.objects[key], self.etags[key]
                return web.Response(status=202, headers={"Date": DATE})
        return _error(404, "BlobNotFound")


def _error(status: int, code: str) -> web.Response:
    """As Azure writes it: with a byte order mark before the XML."""
    error = f"<Error><Code>{code}</Code><Message>as in Azure</Message></Error>"
    text = f'\ufeff<?xml version="1.0" encoding="utf-8"?>{error}'
    headers = {"Date": DATE, "x-ms-error-code": code, "x-ms-request-id": "0001"}
    if status == 304:
        return web.Response(status=status, headers=headers)
    return web.Response(status=status, text=text, content_type="application/xml", headers=headers)


@asynccontextmanager
async def scripted_azure(script: Sequence[Step]) -> AsyncIterator[ScriptedAzure]:
    """Runs one on a free port of 127.0.0.1."""
    azure = ScriptedAzure(list(script))
    async with stub_server(azure.handle) as server:
        azure._server, azure.endpoint = server, server.uri
        yield azure
