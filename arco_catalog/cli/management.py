"""Sends the requests of commands to an API of a server; those that manage a realm to the management API, of a server or
of an app over the store in this process, where a command acts as the operator and no grants are checked. Both serve the
same routes, so a command does the same in both."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from urllib.parse import quote, urlencode

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.authentication.authenticator import AuthenticationResult, RequestCredentials
from arco_catalog.authentication.secrets import Secrets
from arco_catalog.cli.command import ManagementOptions
from arco_catalog.cli.errors import CliError, NotThere
from arco_catalog.cli.finders import find_realm
from arco_catalog.cli.session import OPERATOR, open_session
from arco_catalog.cli.tokens import token_for
from arco_catalog.http.app import create_app
from arco_catalog.http.buffered_exchange import BufferedExchange
from arco_catalog.http.realms import RealmService
from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, MalformedJson, dumps, loads
from arco_catalog.operations.realms import Realm
from arco_catalog.planning.access import Identity
from arco_catalog.state.fields import mapping, optional_text
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import StoreError

BASE = "/api/management/v1"
MAX_ANSWER_BYTES = 64 << 20
"""Maximum size of a response in bytes: more than a list of a hundred thousand principals takes."""
SECONDS = 60.0
"""The time in which a server must answer."""
NO_QUERY: Mapping[str, str] = {}
CHANGES = ("PUT", "POST", "DELETE")
FOREIGN = "the answer is none of the catalog's APIs: does --url name a catalog's server?"

Exchange = Callable[[str, str, Mapping[str, str], bytes], Awaitable[tuple[int, bytes]]]
"""Sends a request (method, path, headers, body), and returns the status and the body of the response."""


class ApiClient:
    """A client of an API, whose paths begin with `base`: by default the management API. `foreign` is the message about
    an answer of another form."""

    def __init__(self, exchange: Exchange, base: str = BASE, foreign: str = FOREIGN) -> None:
        self._exchange, self._base, self._foreign = exchange, base, foreign

    async def get(self, *path: str) -> JsonObject:
        """Returns the document at a path. Raises as `send` does, and `CliError` for a document without fields."""
        document = await self._request("GET", path)
        if not document:
            raise CliError(self._foreign)
        return document

    async def change(
        self, method: str, *path: str, body: JsonObject | None = None, query: Mapping[str, str] = NO_QUERY
    ) -> None:
        """Sends a request with the segments of a path and a query, which is answered without a body. Raises as `send`
        does, and `CliError` for a success with a body, or with another status than 201 and 204."""
        if await self._request(method, path, body, query, empty=(201, 204)):
            raise CliError(self._foreign)

    async def send(
        self,
        method: str,
        *path: str,
        has: str,
        body: JsonObject | None = None,
        query: Mapping[str, str] = NO_QUERY,
    ) -> JsonObject:
        """Sends a request with the segments of a path and a query, and returns the document in the answer, which has
        the field `has`. Raises `NotThere` if a principal, role or catalog does not exist, or for any status 404 of
        another API than that of management; `CliError` for every other failure, with the message of the server if it
        has one and the status is not 401, and for a success with a response of another form, as web pages have it and
        servers of something else."""
        document = await self._request(method, path, body, query)
        if has not in document:
            raise CliError(self._foreign)
        return document

    async def _request(
        self,
        method: str,
        path: Sequence[str],
        body: JsonObject | None = None,
        query: Mapping[str, str] = NO_QUERY,
        empty: Sequence[int] = (),
    ) -> JsonObject:
        """Sends a request, and returns the document in the answer; an empty one if the answer has no body, which is a
        success with one of the statuses in `empty`. Raises as `send` does."""
        target = "/".join([self._base, *(quote(segment, safe="") for segment in path)])
        target += f"?{urlencode(query)}" if query else ""
        headers = {} if body is None else {"content-type": "application/json"}
        status, answer = await self._exchange(method, target, headers, b"" if body is None else dumps(body))
        document = _document(answer)
        if status < 300 and (document or (status in empty and not answer)):
            return document
        if status == 401:
            raise CliError(
                "the server accepts no request without a login, or not this login: `arco login URL` makes one, and "
                "--token-file names a file with a token"
            )
        if status < 300:
            raise CliError(self._foreign)
        error = mapping(document, "error")
        reason = optional_text(error, "message") or f"the server answered status {status}"
        # Of management, only what the path names is missing by this type; what a grant names has others.
        missing = error.get("type") == "NotFoundException" or (self._base != BASE and status == 404)
        raise NotThere(reason) if missing else CliError(reason)


def _document(body: bytes) -> JsonObject:
    """Returns the object in a response body; empty for any other body."""
    try:
        document = loads(body) if body else {}
    except MalformedJson:
        return {}
    return document if isinstance(document, dict) else {}


@asynccontextmanager
async def open_management(options: ManagementOptions, command: str, *, writes: bool) -> AsyncIterator[ApiClient]:
    """Yields the client of the management API that the options name. Raises `CliError` for a token file that can't be
    read, for a saved login that can't be used, and if the body meets a response of a server in another form; for a
    store as `open_session` and `find_realm` do. With a URL that is not https or loopback the first request raises
    it."""
    if options.url is not None:
        async with open_server(options.url, options, BASE) as client:
            yield client
        return
    async with open_session(options.catalog, command, find_realm, writes=writes) as (realm, _):
        yield ApiClient(in_process(realm))


@asynccontextmanager
async def open_server(url: str, options: ManagementOptions, base: str) -> AsyncIterator[ApiClient]:
    """Yields the client of the API at `base` of the server at a URL, with the token that the options select. Raises
    `CliError` for a token file that can't be read, for a saved login that can't be used, and if the body can't read an
    answer. With a URL that is not https or loopback the first request raises it."""
    try:
        yield ApiClient(_server(url, await token_for(url, options.token_file, options.catalog.environment)), base)
    except (InternalError, LookupError, OverflowError) as error:
        raise CliError(FOREIGN) from error


class _Operator:
    """The authenticator of commands at the store: every request is the operator's."""

    def __init__(self, realm: str) -> None:
        self._realm = realm

    async def authenticate(self, credentials: RequestCredentials) -> AuthenticationResult:
        """Returns the operator of the realm as the caller, without reading the credentials."""
        return AuthenticationResult(self._realm, Identity(OPERATOR), OPERATOR)


def in_process(realm: Realm) -> Exchange:
    """Returns the exchange with an app over a realm in this process, where each request is the operator's and no grants
    are checked."""
    entropy = SystemRuntime().entropy
    authentication = Authentication([_Operator(realm.name)])
    service = RealmService({realm.name: realm}, realm.name, Secrets(entropy), entropy, authentication, judged=False)
    app = create_app({}, realms=service)

    async def exchange(method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        path, _, query = target.partition("?")
        sent = {"user-agent": "arco", "content-length": str(len(body)), **headers}
        scope = {
            "type": "http",
            "method": method,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        }
        buffered = BufferedExchange(body)
        await app(scope, buffered.receive, buffered.send)
        return buffered.status, buffered.answer

    return exchange


def _server(url: str, token: str | None) -> Exchange:
    """Returns the exchange with the server at a URL, by this token, if there is one. A redirect is not followed: the
    token is for this server alone. The exchange raises `CliError` without a complete response, and for a URL that is
    not https or loopback."""
    from storage_backends.wire.exchange import Ambiguous
    from storage_backends.wire.fetch import fetch
    from storage_backends.wire.pool import Timeouts

    timeouts, now_ms = Timeouts(5.0, SECONDS, SECONDS), SystemRuntime().now_ms
    credentials = {} if token is None else {"authorization": f"Bearer {token}"}

    async def exchange(method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        try:
            answer = await fetch(
                url.rstrip("/") + target,
                {**credentials, **headers},
                now_ms,
                MAX_ANSWER_BYTES,
                method=method,
                body=body,
                plain_loopback=True,
                timeouts=timeouts,
            )
        except StoreError as error:
            sent = method in CHANGES and isinstance(error, Ambiguous)
            unknown = ": it is unknown whether the change was made" if sent else ""
            raise CliError(f"{error}{unknown}") from error
        return answer.status, answer.body

    return exchange
