"""Publishes CloudEvents to topics of Azure Event Grid, by requests of our own: to custom topics, and to topics of
namespaces.

Source: Azure Event Grid, "Publish events to custom topics using access keys", "Event Grid event schema" (limits),
"Event Grid data plane REST API" (publish cloud events); the authentication of azure-eventgrid, Azure's library.
"""

import re
from collections.abc import Callable, Mapping

from storage_backends.azure.config import AzureConfig, ClientSecret, DefaultChain
from storage_backends.azure.credentials import EntraTokens
from storage_backends.wire.fetch import failure_of, fetch

TOPIC = re.compile(
    r"(https://[A-Za-z0-9-]{3,50}\.[a-z0-9-]+\.eventgrid\.azure\.(?:net|us|cn))(?:/api/events|/topics/([A-Za-z0-9-]{3,50}))"
)
"""The URL of a topic: the endpoint, and the name of a topic in a namespace, which a custom topic does not have."""
ENDPOINT = "EVENTGRID_TOPIC_ENDPOINT"
"""The variable with a URL in place of the endpoint of a topic, which may be http on this machine."""
KEY = "EVENTGRID_TOPIC_KEY"
"""The variable with the access key of a topic; without it a token of Entra ID authorizes."""
SCOPE = "https://eventgrid.azure.net/.default"
CONTENT_TYPE = "application/cloudevents-batch+json; charset=utf-8"
MAX_MESSAGE_BYTES = (1 << 20) - 1024
"""Less than the megabyte that a request may have."""
MAX_ANSWER_BYTES = 64 << 10


class Topic:
    """A topic of Event Grid, given by its URL, with the credentials that the variables of `environment` name: the
    topic's key, or else an identity of Entra ID, and never a key of a storage account. Raises `ValueError` for a URL
    that is not one of a topic, and for a variable that can't be parsed."""

    def __init__(self, url: str, environment: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        match = TOPIC.fullmatch(url)
        if match is None:
            raise ValueError(f"{url!r} is not the URL of a topic of Event Grid")
        endpoint, self._of_namespace = match.groups()
        configured = environment.get(ENDPOINT)
        self._may_be_plain = configured is not None
        path = "/api/events?api-version=2018-01-01"
        if self._of_namespace is not None:
            path = f"/topics/{self._of_namespace}:publish?api-version=2024-06-01"
        self._url, self._name = f"{configured or endpoint}{path}", url
        self._key = environment.get(KEY)
        credentials = AzureConfig.from_environment(environment).credentials
        identity = credentials if isinstance(credentials, ClientSecret) else DefaultChain()
        self._tokens = EntraTokens(identity, now_ms, SCOPE)
        self._now_ms = now_ms

    async def publish(self, event: bytes) -> None:
        """Publishes a CloudEvent in JSON, as a batch of one. Raises `InvalidContent` if the event is not accepted,
        `StoreDenied` without credentials or rights, or if there is no such topic, and `StoreUnavailable` if the service
        is too busy or the outcome is unknown."""
        answer = await fetch(
            self._url,
            {"content-type": CONTENT_TYPE, **await self._authorization()},
            self._now_ms,
            MAX_ANSWER_BYTES,
            method="POST",
            body=b"[%s]" % event,
            plain_loopback=self._may_be_plain,
        )
        if answer.status != 200:
            raise failure_of(f"the event was not confirmed: Event Grid, for {self._name},", answer)

    async def _authorization(self) -> Mapping[str, str]:
        """Returns the header that authorizes a request: by the topic's key, or without one by a token of Entra ID.
        Raises `StoreError` if there is no key and no token of Entra ID."""
        if not self._key:
            return {"authorization": f"Bearer {(await self._tokens.current()).token}"}
        if self._of_namespace is None:
            return {"aeg-sas-key": self._key}
        return {"authorization": f"SharedAccessKey {self._key}"}
