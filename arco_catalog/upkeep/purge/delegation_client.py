"""Calls a delegation service over HTTP (docs/delegation-service.openapi.yaml)."""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from arco_catalog.config.variables import (
    DELEGATION_CA,
    DELEGATION_CLIENT_CERT,
    DELEGATION_CLIENT_KEY,
    DELEGATION_TOKEN_FILE,
    DELEGATION_URL,
    PURGE_EXECUTOR,
)
from arco_catalog.iceberg.json import JsonObject, MalformedJson, dumps, loads
from arco_catalog.state.fields import mapping, optional_text
from arco_catalog.upkeep.purge.delegation_service import DelegatedTask, DelegationClient
from storage_backends import StoreDenied, StoreUnavailable
from storage_backends.wire.fetch import checked_url, fetch
from storage_backends.wire.http1 import Response

TASKS = "/delegation-service/api/v1/tasks"
MAX_ANSWER_BYTES = 1 << 20
MAX_TOKEN_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """The paths of the files by which a client and a service authenticate each other: the client's token, certificate
    and private key, and the authorities that must have issued the service's certificate. They are read for each
    request, since they are renewed."""

    token: str | None = None
    certificate: str | None = None
    key: str | None = None
    authorities: str | None = None

    def tls(self) -> ssl.SSLContext | None:
        """Makes the TLS context of the client's certificate and the service's authorities; None without either, for the
        system's defaults. Raises `OSError` or `ValueError` for a file that can't be used."""
        if self.authorities is None and self.certificate is None:
            return None
        context = ssl.create_default_context(cafile=self.authorities)
        context.set_alpn_protocols(["http/1.1"])
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context

    def headers(self) -> Mapping[str, str]:
        """Returns the header `authorization` with the token in the token file; empty if none is configured.
        Raises `OSError` if the configured file is missing or can't be read, and `ValueError` if it has more than
        `MAX_TOKEN_BYTES` or is no text."""
        if self.token is None:
            return {}
        with open(self.token, "rb") as file:
            token = file.read(MAX_TOKEN_BYTES + 1)
        if len(token) > MAX_TOKEN_BYTES:
            raise ValueError(f"the token file {self.token} has more than {MAX_TOKEN_BYTES:,} bytes")
        return {"authorization": f"Bearer {token.decode().strip()}"}


class HttpDelegationClient:
    """Calls a delegation service by HTTP, each time over a connection of its own: a purge has few calls, seconds
    apart."""

    def __init__(self, url: str, files: ClientFiles, now_ms: Callable[[], int]) -> None:
        """Raises `StoreDenied` for a URL that is neither https nor on the loopback interface, or that has a user, a
        fragment, blanks or letters outside of ASCII."""
        self._url = url.rstrip("/")
        self._files = files
        self._now_ms = now_ms
        checked_url(self._url, plain_loopback=True)

    @property
    def url(self) -> str:
        """The URL of the service, without a slash at the end, as checkpoints and messages name it."""
        return self._url

    async def submit(self, payload: JsonObject, key: str) -> DelegatedTask:
        """Submits a purge to the service under an idempotency key, and returns the service's task. Raises `StoreDenied`
        for a refusal, and `StoreUnavailable` if the service is busy or fails, or the outcome is unknown: the caller may
        resubmit the purge."""
        headers = {"content-type": "application/json", "idempotency-key": key}
        response = await self._send(TASKS, headers, dumps(payload))
        if response.status == 202:
            return _task(response)
        raise _failure(response)

    async def status(self, task: str) -> DelegatedTask | None:
        """Reads the task with this id; None if the service has no such task. Raises `StoreError`: `StoreUnavailable` if
        the service can't be reached or has failed, and another one for a refusal."""
        response = await self._send(f"{TASKS}/{task}", {}, None)
        if response.status == 404:
            return None
        if response.status == 200:
            return _task(response)
        raise _failure(response)

    async def _send(self, path: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        """Sends a request with the configured token and certificates, a POST if it has a body, and returns the response
        of any status. Raises `StoreUnavailable` if their files can't be read, and `StoreError` without a response."""
        try:
            tls, credentials = await asyncio.to_thread(lambda: (self._files.tls(), self._files.headers()))
        except (OSError, ValueError) as error:
            raise StoreUnavailable(
                f"the token or certificate files for calls of the delegation service can't be read: {error}"
            ) from error
        return await fetch(
            self._url + path,
            {**headers, **credentials},
            self._now_ms,
            MAX_ANSWER_BYTES,
            method="GET" if body is None else "POST",
            body=body or b"",
            plain_loopback=True,
            tls=tls,
        )


def client_from_env(environment: Mapping[str, str], now_ms: Callable[[], int]) -> DelegationClient:
    """Makes the client of the delegation service that the environment variables name. Raises `ValueError` if they have
    no URL, or one that is not allowed."""
    url = environment.get(DELEGATION_URL.name)
    if not url:
        raise ValueError(f"{PURGE_EXECUTOR.name}=delegated needs {DELEGATION_URL.name}")
    token, certificate, key, authorities = (
        environment.get(variable.name) or None
        for variable in (DELEGATION_TOKEN_FILE, DELEGATION_CLIENT_CERT, DELEGATION_CLIENT_KEY, DELEGATION_CA)
    )
    try:
        return HttpDelegationClient(url, ClientFiles(token, certificate, key, authorities), now_ms)
    except StoreDenied as error:
        raise ValueError(f"{DELEGATION_URL.name}: {error}") from error


def _task(response: Response) -> DelegatedTask:
    """Reads a task from the service's response: the id, the status, and the error code, summary and result, each empty
    if the response has none. Raises `StoreUnavailable` for a response without the id or the status."""
    body = _json(response)
    task, status = optional_text(body, "delegation_task_id"), optional_text(body, "status")
    if task is None or status is None:
        raise StoreUnavailable(
            f"the answer of the delegation service has no delegation_task_id or no status: check {DELEGATION_URL.name}"
        )
    code, summary = optional_text(body, "error_code") or "", optional_text(body, "result_summary") or ""
    return DelegatedTask(task, status, code, summary, mapping(body, "execution_result"))


def _failure(response: Response) -> StoreDenied | StoreUnavailable:
    """Returns the error for a response other than a task: `StoreUnavailable` for the statuses 429 and 5xx, else
    `StoreDenied`. The message has the service's error code and message, which quote no credentials."""
    body = _json(response)
    reason = f"{optional_text(body, 'error_code') or ''} {optional_text(body, 'message') or ''}".strip()[:500]
    text = f"the delegation service answered status {response.status}: {reason}"
    is_temporary = response.status >= 500 or response.status == 429
    return StoreUnavailable(text) if is_temporary else StoreDenied(text)


def _json(response: Response) -> JsonObject:
    """Returns the JSON object in a response; an empty one if the body is no JSON object."""
    try:
        document = loads(response.body)
    except MalformedJson:
        return {}
    return document if isinstance(document, dict) else {}
