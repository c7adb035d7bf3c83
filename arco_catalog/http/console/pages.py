"""HTTP handlers of the console: its files, and the public configuration that its pages start with."""

from functools import cache
from importlib.metadata import version

from arco_catalog.http.compression import accepts_gzip, compressed
from arco_catalog.http.console.files import INDEX, Console, StaticFile
from arco_catalog.http.etag import none_match
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.http.service import Service
from arco_catalog.iceberg.errors import NoSuchRoute
from arco_catalog.iceberg.json import JsonValue

ONE_YEAR = "public, max-age=31536000, immutable"


async def root(context: RequestContext) -> Response:
    """Redirects a browser to the console. Raises `NoSuchRoute` unless the header Accept names `text/html`; `*/*` does
    not suffice."""
    if "text/html" not in context.headers.get("accept", ""):
        raise NoSuchRoute("No endpoint at /: /v1/config lists the supported endpoints, and /ui is for browsers")
    return _redirect_to_index(context)


async def index(context: RequestContext) -> Response:
    """Returns the first page of the console, which names the other files relative to `/ui/`, or 304 to a client that
    has it. Redirects a path without the slash at the end to the one with it."""
    if not context.raw_path.endswith(b"/"):
        return _redirect_to_index(context)
    return _response(context, _console(context).index)


async def static_file(context: RequestContext) -> Response:
    """Returns a file of the console, or 304 to a client that has it. The first page has a name, too: a gateway may have
    no route for a path that ends in a slash. Raises `NoSuchRoute` if there is no file of that name."""
    console, name = _console(context), context.params["file"]
    found = console.index if name == INDEX else console.files.get(name)
    if found is None:
        raise NoSuchRoute("The console has no such file: load /ui/ again")
    return _response(context, found)


async def config(context: RequestContext) -> Response:
    """Returns what the console needs before anyone has signed in: the version of the server, its default warehouse, the
    number of its realms, the ways to sign in, none if callers are not authenticated, and the issuers at which people
    sign in."""
    service, console = context.service, _console(context)
    return json_response(
        {
            "version": _version(),
            "warehouse": service.default_warehouse,
            "realms": 0 if service.realms is None else len(service.realms.realms),
            "logins": _logins(service),
            "issuers": [client.shown for client in console.sign_in.clients],
        },
        headers={**console.headers, "Cache-Control": "no-store"},
    )


@cache
def _version() -> str:
    """Returns the version of the installed package, which is read from its files once."""
    return version("arco-catalog")


def _logins(service: Service) -> list[JsonValue]:
    """Returns the ways in which people can log in by the console: with a token, and in a realm that issues tokens also
    with client credentials; none without authentication."""
    realms = service.realms
    authentication = service.authentication if realms is None else realms.authentication
    if authentication is None:
        return []
    has_tokens = realms is not None and realms.token_endpoint is not None
    return ["client-credentials", "token"] if has_tokens else ["token"]


def _console(context: RequestContext) -> Console:
    """Returns the console of a server that has one."""
    assert context.service.console is not None
    return context.service.console


def _redirect_to_index(context: RequestContext) -> Response:
    """Returns a temporary redirect to `ui/`, relative to the request's path, that no cache may use unchecked."""
    return Response(307, headers={**_console(context).headers, "Location": "ui/", "Cache-Control": "no-cache"})


def _response(context: RequestContext, file: StaticFile) -> Response:
    """Returns the response with a file, with the console's headers: compressed if the client accepts that, 304 if the
    client has the file. Caches may use an immutable file for a year, any other only after a new request."""
    headers = {
        **_console(context).headers,
        "ETag": file.etag,
        "Cache-Control": ONE_YEAR if file.immutable else "no-cache",
        "Vary": "Accept-Encoding",
    }
    if not none_match(context.headers.get("if-none-match"), file.etag):
        return Response(304, headers=headers)
    whole = Response(200, file.body, {**headers, "Content-Type": file.media_type})
    return compressed(whole, file.packed) if accepts_gzip(context.headers) else whole
