"""A Lambda function with an ASGI app and S3's usual asyncio client, to compare cold starts with. The client is made
when the process starts, and makes the calls that the catalog would make: COLD_GETS are keys to read, COLD_PUTS keys to
write, one after the other."""

import asyncio
import os

from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
from aiobotocore.session import get_session  # type: ignore[import-untyped]
from mangum import Mangum
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

BUCKET = os.environ["COLD_BUCKET"]
GETS, PUTS = (os.environ.get(name, "").split() for name in ("COLD_GETS", "COLD_PUTS"))

loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
making = get_session().create_client("s3", config=AioConfig(s3={"addressing_style": "path"}))
client = loop.run_until_complete(making.__aenter__())


async def answer(_request: Request) -> JSONResponse:
    body = b""
    for key in GETS:
        found = await client.get_object(Bucket=BUCKET, Key=key)
        async with found["Body"] as stream:
            body = await stream.read()
    for key in PUTS:
        await client.put_object(Bucket=BUCKET, Key=key, Body=body)
    return JSONResponse({"bytes": len(body)})


handler = Mangum(Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])]), lifespan="off")
