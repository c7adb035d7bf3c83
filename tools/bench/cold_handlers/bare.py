"""The least that an ASGI app in a Lambda function can be, to compare cold starts with: starlette, mangum, and one small
answer."""

from mangum import Mangum
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def answer(_request: Request) -> JSONResponse:
    return JSONResponse({"defaults": {}, "overrides": {}})


handler = Mangum(Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])]), lifespan="off")
