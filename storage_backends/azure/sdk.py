"""Sends requests to Azure with azure-storage-blob: its credentials, its pipeline, its proxies.

The SDK sends a request twice only after the status 401, with a new token: its pipeline retries nothing and follows no
redirect, and the session below it does not resend on a connection that the server has closed, as aiohttp does with a
PUT or a DELETE by default.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, cast

from storage_backends.azure.authorization import API_VERSION, KeyAuthorizer, SasAuthorizer, TokenAuthorizer
from storage_backends.azure.config import AzureConfig, SasToken, SharedKey
from storage_backends.azure.credentials import SCOPE, EntraTokens
from storage_backends.azure.endpoint import ContainerEndpoint
from storage_backends.azure.signature import query_of
from storage_backends.base import StoreDenied, StoreError, StoreUnavailable
from storage_backends.clock import system_now_ms
from storage_backends.wire.exchange import Ambiguous, Request
from storage_backends.wire.http1 import Response, request_head
from storage_backends.wire.sdk_responses import check_end, read_body

if TYPE_CHECKING:  # the SDK is optional, and imported at the first use
    from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
    from azure.core.pipeline import AsyncPipeline
    from azure.core.pipeline.transport import AsyncHttpResponse, HttpRequest
    from azure.storage.blob.aio import ContainerClient

_PART_BYTES = 64 * 1024
_UNSIGNED = {"accept-encoding": "identity"}


class SdkTransport:
    """Sends requests about one container by Azure's SDK. The SDK's client is made with the first request."""

    def __init__(
        self, endpoint: ContainerEndpoint, config: AzureConfig, make_client: "Callable[[], ContainerClient]"
    ) -> None:
        self._endpoint = endpoint
        self._config = config
        self._make_client = make_client
        self._client: ContainerClient | None = None

    async def send(self, request: Request, clock_skew_ms: int) -> Response:
        """Sends one request by the SDK, and returns the response. The SDK signs by this machine's clock:
        `clock_skew_ms` is not used. If tokens of Entra ID are used, the SDK sends it a second time with a new token
        after the status 401. Raises `StoreUnavailable` if nothing was sent, `Ambiguous` if no complete response came in
        time, and other `StoreError`s for a request that can't be made."""
        import aiohttp
        from azure.core.exceptions import AzureError, ClientAuthenticationError

        self._client = client = self._client or self._make_client()
        pipeline = cast("AsyncPipeline[HttpRequest, AsyncHttpResponse]", client._pipeline)  # typed as a blocking one
        try:
            async with asyncio.timeout(self._config.exchange_timeout_s):
                answer = (await pipeline.run(self._sent(request), stream=True)).http_response
                body = await read_body(answer.internal_response, self._config.max_answer_bytes)
        except ClientAuthenticationError as error:
            raise StoreDenied(f"no Azure credentials: {error}") from error
        except AzureError as error:
            if isinstance(error.__cause__, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
                raise StoreUnavailable(f"no connection to the store could be made: {error}") from error
            raise Ambiguous(f"no complete answer of the store to a read or write arrived: {error!r}") from error
        except (aiohttp.ClientError, OSError) as error:  # a TimeoutError, too
            raise Ambiguous(f"no complete answer of the store to a read or write arrived: {error!r}") from error
        response = Response(answer.status_code, {name.lower(): value for name, value in answer.headers.items()}, body)
        check_end(request.method, response)
        return response

    async def close(self) -> None:
        """Closes the connections of the SDK, if its client exists. A later request opens another."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _sent(self, request: Request) -> "HttpRequest":
        """Returns a request in the SDK's form. Raises `StoreError` for a header that is not printable ASCII."""
        from azure.core.pipeline.transport import HttpRequest

        headers = {**request.headers, "x-ms-version": API_VERSION, **_UNSIGNED}
        request_head(request.method, "/", headers, len(request.body))  # refuses what is not printable ASCII
        query = query_of(request.query.items())
        url = f"{self._endpoint.origin}{self._endpoint.path_to(request.key)}"
        sent = HttpRequest(request.method, f"{url}?{query}" if query else url, headers)
        if request.body:
            sent.set_streamed_data_body(_Body(request.body))  # in parts, which leaves the loop to others
        if request.parts:
            parts = (HttpRequest(part.method, self._endpoint.path_to(part.key)) for part in request.parts)
            sent.set_multipart_mixed(*parts, policies=self._part_policies(), enforce_https=False)
        if request.method == "PUT":
            sent.headers["content-length"] = str(len(request.body))
        return sent

    def _part_policies(self) -> list[Any]:
        """Returns the SDK's policies that add the date and the authorization to a request within another request, as
        the SDK does for its own batches."""
        from azure.storage.blob._shared.policies import StorageHeadersPolicy

        assert self._client is not None
        return [StorageHeadersPolicy(), *filter(None, [self._client._credential_policy])]


class _Body:
    """The body of a request, which the SDK reads from its beginning each time that it sends it: after a 401 the SDK
    sends again."""

    def __init__(self, body: bytes) -> None:
        self._body = memoryview(body)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._body), _PART_BYTES):
            yield bytes(self._body[start : start + _PART_BYTES])


class _Tokens:
    """Adapts the tokens of an identity to the SDK's interface."""

    def __init__(self, tokens: EntraTokens) -> None:
        self._tokens = tokens
        self._given = ""

    async def get_token(self, *scopes: str, **options: Any) -> "AccessToken":
        """Returns the present token of Entra ID; after a 401, which the SDK announces by the option `tenant_id`, a
        renewed one in place of the last one that was returned without this option. The renewed one is not itself
        replaced after a 401. Raises `StoreError` for any scope but that of Azure Storage, and as `EntraTokens.current`
        does."""
        from azure.core.credentials import AccessToken

        if scopes != (SCOPE,):
            raise StoreError(f"the SDK of Azure requests a token for {scopes}, expected {SCOPE}")
        if "tenant_id" in options:  # the SDK follows the challenge of a 401, and sends again
            held = await self._tokens.renewed(self._given)
        else:
            held = await self._tokens.current()
            self._given = held.token
        return AccessToken(held.token, held.expires_ms // 1_000)

    async def close(self) -> None:
        """Does nothing: a source of tokens for the SDK has no connection of its own."""

    async def __aenter__(self) -> "_Tokens":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def open_sdk(endpoint: ContainerEndpoint, config: AzureConfig, tls: ssl.SSLContext | None) -> SdkTransport:
    """Returns a transport by the SDK, without connecting. Raises `StoreError` without the SDK, or for a configuration
    that can't be followed."""
    try:
        await asyncio.to_thread(__import__, "azure.storage.blob.aio")
        import aiohttp
        from azure.core.pipeline.transport import AioHttpTransport
        from azure.storage.blob.aio import ContainerClient
    except ModuleNotFoundError as error:
        raise StoreError(
            f"the SDK of Azure is not installed ({error.name}): install the extra 'azure' of arco-catalog"
        ) from error
    credential = _credential(endpoint, config)

    def make_client() -> ContainerClient:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=config.max_connections, ssl=True if tls is None else tls),
            trust_env=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        session._retry_connection = False
        transport = AioHttpTransport(
            session=session, connection_timeout=config.connect_timeout_s, read_timeout=config.idle_timeout_s
        )
        return ContainerClient.from_container_url(
            endpoint.url, credential=credential, transport=transport, retry_total=0, permit_redirects=False
        )

    return SdkTransport(endpoint, config, make_client)


def _credential(
    endpoint: ContainerEndpoint, config: AzureConfig
) -> "AzureNamedKeyCredential | AzureSasCredential | _Tokens":
    """Returns the credential for the SDK that the configuration names, after the checks of the client without the SDK:
    the SDK would report a malformed key only when it signs. Raises `StoreError` for credentials that can't be used."""
    from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

    match config.credentials:
        case SharedKey(key):
            KeyAuthorizer(endpoint.account, key)
            return AzureNamedKeyCredential(endpoint.account, key)
        case SasToken(token):
            SasAuthorizer(token)
            return AzureSasCredential(token)
        case identity:
            tokens = EntraTokens(identity, system_now_ms)
            TokenAuthorizer(tokens, endpoint)
            return _Tokens(tokens)
