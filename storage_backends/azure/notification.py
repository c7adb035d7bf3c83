"""Puts messages into queues of Azure Storage, by requests of our own.

Source: Azure Storage REST API, "Put Message", "Authorize with Shared Key"; "Connect to Azurite".
"""

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace

from storage_backends.azure.authorization import API_VERSION, authorizer_of
from storage_backends.azure.config import AzureConfig
from storage_backends.azure.endpoint import ContainerEndpoint
from storage_backends.azure.signature import date_stamp
from storage_backends.wire.endpoint import parse_endpoint
from storage_backends.wire.exchange import Request
from storage_backends.wire.fetch import failure_of, fetch

QUEUE = re.compile(
    r"https://([a-z0-9]{3,24})\.queue\.core\.(?:windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)/([a-z0-9-]{3,63})"
)
"""The URL of a queue: its account and its name."""
ENDPOINT = "AZURE_STORAGE_QUEUE_ENDPOINT"
"""The variable with the URL of the queues of an account, in place of `https://ACCOUNT.queue.core.windows.net`."""
MAX_MESSAGE_BYTES = 48 << 10
"""The largest message that a queue takes: 64 KiB in base64."""
MAX_ANSWER_BYTES = 64 << 10


class MessageQueue:
    """A queue of Azure Storage, given by its URL, with the credentials that the variables of `environment` name. Raises
    `ValueError` for a URL that is not one of a queue and for a variable that can't be parsed, and `StoreError` for an
    endpoint or credentials that can't be used."""

    def __init__(self, url: str, environment: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        match = QUEUE.fullmatch(url)
        if match is None:
            raise ValueError(f"{url!r} is not the URL of a queue of Azure Storage")
        account, self._name = match.groups()
        configured = environment.get(ENDPOINT)
        self._may_be_plain = configured is not None
        server = parse_endpoint(configured or url.rpartition("/")[0], "Azure queue")
        self._endpoint = ContainerEndpoint(
            server.tls, server.host, server.port, server.authority, f"{server.path}/{self._name}", account
        )
        config = replace(AzureConfig.from_environment(environment), account=account)
        self._authorizer = authorizer_of(config.credentials, self._endpoint)
        self._now_ms = now_ms

    async def put(self, body: bytes) -> None:
        """Puts a message into the queue, in base64, as Azure's libraries and Functions read it by default. Raises
        `StoreDenied` without credentials or if the message is refused, and `StoreUnavailable` if the service is too
        busy or the outcome is unknown: the message may then be in the queue."""
        content = b"<QueueMessage><MessageText>%s</MessageText></QueueMessage>" % b64encode(body)
        path = self._endpoint.path_to("messages")
        headers = {
            "x-ms-date": date_stamp(self._now_ms()),
            "x-ms-version": API_VERSION,
            "content-type": "application/xml",
        }
        signed = await self._authorizer.authorize(Request("POST", "messages", body=content), path, headers)
        answer = await fetch(
            f"{self._endpoint.origin}{path}{f'?{signed.query}' if signed.query else ''}",
            signed.headers,
            self._now_ms,
            MAX_ANSWER_BYTES,
            method="POST",
            body=content,
            plain_loopback=self._may_be_plain,
        )
        if answer.status != 201:
            raise failure_of(f"the message was not confirmed: Azure Storage, for the queue {self._name},", answer)
