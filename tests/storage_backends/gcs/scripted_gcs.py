"""A GCS that misbehaves by a script: each request takes the next step of a script, and our fake serves it after its
end."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from storage_backends.gcs.config import GcsClient
from storage_backends.gcs.store import GcsStore
from storage_backends.wire.client import Pauses
from tests.storage_backends.answers import PlayedScript, Sleep, playing
from tests.storage_backends.s3.scripted_s3 import Reply, ScriptedS3, Step
from tests.support.gcs_protocol_fake import GcsProtocolFake
from tests.support.stub_server import stub_server
from tools.support.gcs_servers import GcsServer

BUCKET = "bucket"


def refusal(status: int, reason: str = "", message: str = "as scripted") -> Reply:
    """Returns an error as GCS writes it, or without a reason that of another server."""
    if not reason:
        return Reply(status, text="<html>")
    report = {"message": message, "domain": "global", "reason": reason}
    return Reply(status, text=json.dumps({"error": {"code": status, "message": message, "errors": [report]}}))


@dataclass
class ScriptedGcs(ScriptedS3):
    """The player of scripts for S3, with our fake behind it."""

    fake: GcsProtocolFake = field(default_factory=GcsProtocolFake)

    def _serve(self, request: web.BaseRequest, body: bytes) -> web.Response:
        return self.fake.answer(request, body)

    @property
    def landed(self) -> dict[str, bytes]:
        """The objects of the bucket."""
        return {name: stored.body for name, stored in self.fake.buckets[BUCKET].items()}


@asynccontextmanager
async def playing_gcs(
    script: Sequence[Step], client: GcsClient, server: ScriptedGcs | None = None, **variables: str
) -> AsyncIterator[PlayedScript]:
    """Runs a server and a store on it."""
    gcs = server or ScriptedGcs([])
    gcs.script = [*script]
    gcs.fake.buckets[BUCKET] = {}
    async with stub_server(gcs.handle) as running:
        gcs._server, gcs.endpoint = running, running.uri
        config = GcsServer(running.uri).config(client, **variables)

        def open_store(sleep: Sleep, **settings: Any) -> GcsStore:
            changed = replace(config, **settings)
            return GcsStore(BUCKET, "some/prefix", config=changed, pauses=Pauses(sleep, lambda: 1.0))

        async with playing(gcs, open_store) as played:
            yield played
