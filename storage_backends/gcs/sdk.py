"""Sends requests to GCS by google-cloud-storage, in an authorized session of that SDK, with connections that can use
proxies. No request is repeated or redirected, except that one with the status 401 is sent once more if there is a new
token.

The SDK blocks, so each exchange takes a thread.
"""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from ssl import SSLCertVerificationError
from threading import Lock

import requests
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession
from google.cloud import storage  # type: ignore[import-untyped]
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError, MaxRetryError, NewConnectionError, ProxyError, SSLError

from storage_backends.base import StoreError, StoreUnavailable
from storage_backends.gcs.address import part_head, target_of
from storage_backends.gcs.config import GcsConfig
from storage_backends.gcs.google_credentials import GoogleCredentials, failure_of, load_credentials
from storage_backends.wire.connections import ALWAYS_SENT
from storage_backends.wire.exchange import Ambiguous, OversizedAnswer, Request
from storage_backends.wire.http1 import Response
from storage_backends.wire.multipart import CONTENT_TYPE, encode
from storage_backends.wire.sdk_responses import check_end

CHUNK_BYTES = 1024 * 1024
NEVER_SENT = (requests.exceptions.ConnectTimeout, requests.exceptions.InvalidHeader, requests.exceptions.InvalidURL)


class SdkTransport:
    """Sends requests about one bucket of GCS by an authorized session of Google's SDK."""

    def __init__(
        self, base: str, bucket: str, config: GcsConfig, session: AuthorizedSession, credentials: GoogleCredentials
    ) -> None:
        self._base = base
        self._bucket = bucket
        self._config = config
        self._session = session
        self._credentials = credentials
        self._renewing = Lock()
        self._threads = ThreadPoolExecutor(config.max_connections, "gcs")

    async def send(self, request: Request, _clock_skew_ms: int) -> Response:
        """Sends one request in a thread, and returns the response. After the status 401 it sends the request a second
        time with a new token, if there is one. If the caller is cancelled, the thread runs on. Raises
        `StoreUnavailable` if nothing was sent, or if the renewal after a 401 failed for the moment, `Ambiguous` if no
        complete response came, and other `StoreError`s for a request that can't be made."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._config.exchange_timeout_s):
                return await loop.run_in_executor(self._threads, self._exchange, request)
        except TimeoutError as error:
            raise Ambiguous(f"no whole answer of the store came within {self._config.exchange_timeout_s} s") from error

    async def close(self) -> None:
        """Closes idle connections, and returns at once; requests under way run on to the end in their threads."""
        self._threads.shutdown(wait=False)
        self._session.close()

    def _exchange(self, request: Request) -> Response:
        """Sends a request as `send` does, in the thread that calls it, and returns the response. Raises as `send`
        does."""
        try:
            answer = self._sent(request)
            if answer.status_code == HTTPStatus.UNAUTHORIZED and self._has_renewed(answer.request):
                answer.close()
                answer = self._sent(request)  # safe: a refused request was not applied
            body = self._read(answer)
        except GoogleAuthError as error:
            raise failure_of(error) from error
        except (requests.exceptions.RequestException, HTTPError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise (StoreUnavailable if _was_never_sent(error) else Ambiguous)(reason) from error
        headers = {name.lower(): value for name, value in answer.headers.items()}
        response = Response(answer.status_code, headers, body)
        check_end(request.method, response)
        return response

    def _sent(self, request: Request) -> requests.Response:
        """Sends a request once, without following a redirect, and returns the response, of which the body is not read
        yet."""
        headers, body = {**request.headers, **ALWAYS_SENT}, request.body
        if request.parts:
            headers["content-type"] = CONTENT_TYPE
            body = encode([part_head(self._bucket, part, self._config.user_project) for part in request.parts])
        answer: requests.Response = self._session.request(
            request.method,
            self._base + target_of(self._bucket, request, self._config.user_project),
            data=body or None,
            headers=headers,
            timeout=(self._config.connect_timeout_s, self._config.idle_timeout_s),
            allow_redirects=False,
            auth=_as_it_is,
            stream=True,
        )
        return answer

    def _has_renewed(self, refused: requests.PreparedRequest) -> bool:
        """Renews the token if it is still the one in a request that the store refused. Returns whether there is another
        token now; False for a request without a token. Raises `StoreError` if the renewal fails and the old token is no
        longer valid."""
        token = str(refused.headers.get("authorization", "")).removeprefix("Bearer ")
        with self._renewing:
            if token and self._credentials.token() == token:  # no other thread was faster
                self._credentials.renew()
            return bool(token) and self._credentials.token() != token

    def _read(self, answer: requests.Response) -> bytes:
        """Reads the body of a response. Raises `OversizedAnswer` once it is larger than the limit, and `Ambiguous` if
        it takes too long."""
        parts, size = [], 0
        limit, until_s = self._config.max_answer_bytes, time.monotonic() + self._config.exchange_timeout_s
        with answer:
            while part := answer.raw.read1(CHUNK_BYTES):
                parts.append(part)
                size += len(part)
                if size > limit:
                    raise OversizedAnswer(f"the body of the store's answer is longer than {limit:,} bytes")
                if time.monotonic() > until_s:
                    raise Ambiguous(f"no whole answer of the store came within {self._config.exchange_timeout_s} s")
        return b"".join(parts)


def open_sdk(bucket: str, config: GcsConfig) -> SdkTransport:
    """Returns a transport by the SDK, whose client may look for credentials. Raises `StoreError` for credentials or a
    configuration that can't be used."""
    credentials = load_credentials(config)
    try:
        client = storage.Client(
            project=config.project or "none",
            credentials=credentials.current,
            client_options={"api_endpoint": config.endpoint.rstrip("/")},
        )
    except (GoogleAuthError, ValueError) as error:
        raise StoreError(f"no GCS client can be made: {error}") from error
    # A 401 is seen to above: the session would get a new token for each request that was answered so.
    session = AuthorizedSession(credentials.current, refresh_status_codes=(), auth_request=credentials.request)
    session.verify = config.ca_bundle or True
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=config.max_connections, max_retries=0))
    return SdkTransport(client.api_endpoint, bucket, config, session, credentials)


def _as_it_is(prepared: requests.PreparedRequest) -> requests.PreparedRequest:
    """Returns the prepared request as it is. It stands in for the authentication of requests, which would replace the
    token by a password out of ~/.netrc."""
    return prepared


def _was_never_sent(error: Exception) -> bool:
    """Whether it is certain that an exchange failed before the first byte of the request was sent: there was no
    connection, or the request was not valid. False also for a failure that may have come before."""
    if isinstance(error, NEVER_SENT):
        return True
    cause = error.args[0] if error.args else None
    reason = cause.reason if isinstance(cause, MaxRetryError) else cause
    if isinstance(reason, SSLError):
        return any(isinstance(argument, SSLCertVerificationError) for argument in reason.args)
    return isinstance(reason, NewConnectionError | ProxyError)
