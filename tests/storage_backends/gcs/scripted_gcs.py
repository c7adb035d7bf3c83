"""A GCS that misbehaves as told: each request takes the next step of a script, and our fake serves it after its end."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from storage_backends.gcs.config import GcsClient, GcsConfig
from storage_backends.gcs.store import GcsStore
from tests.storage_backends.s3.scripted_s3 import Reply, ScriptedS3, Step
from tests.support.stub_server import stub_server
from tools.support.gcs_protocol_fake import GcsProtocolFake
from tools.support.gcs_servers import GcsServer

BUCKET = "bucket"


def refusal(status: int, reason: str = "", message: str = "as scripted") -> Reply:
    """An error as GCS writes it, or with no reason one of somebody else."""
    if not reason:
        return Reply(status, text="<html>")
    told = {"message": message, "domain": "global", "reason": reason}
    return Reply(status, text=json.dumps({"error": {"code": status, "message": message, "errors": [told]}}))


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


class Played:
    """A store on a scripted server, and the pauses that it made."""

    def __init__(self, gcs: ScriptedGcs, config: GcsConfig) -> None:
        self.gcs = gcs
        self.pauses: list[float] = []
        self.store = GcsStore(BUCKET, "some/prefix", config=config, sleep=self._sleep, random=lambda: 1.0)

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    @property
    def wire(self) -> list[str]:
        """The methods of what came over the wire."""
        return [request.method for request in self.gcs.requests]


@asynccontextmanager
async def playing(script: Sequence[Step], client: GcsClient, **variables: str) -> AsyncIterator[Played]:
    """Runs a server and a store on it."""
    gcs = ScriptedGcs(list(script))
    gcs.fake.buckets[BUCKET] = {}
    async with stub_server(gcs.handle) as server:
        gcs._server, gcs.endpoint = server, server.uri
        played = Played(gcs, GcsServer(server.uri).config(client, **variables))
        try:
            yield played
        finally:
            await played.store.close()
