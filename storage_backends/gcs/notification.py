"""Publishes messages to topics of Google Cloud Pub/Sub, by requests of our own with the tokens of google-auth.

Source: Pub/Sub REST reference, projects.topics.publish; "Testing apps locally with the emulator".
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping

from storage_backends.gcs.config import GcsConfig
from storage_backends.gcs.credentials import FixedToken, tokens_of
from storage_backends.wire.fetch import failure_of, fetch

TOPIC = re.compile(r"projects/[a-z][a-z0-9.:-]{4,62}/topics/[A-Za-z][A-Za-z0-9._~+%-]{2,254}")
"""The full name of a topic."""
EMULATOR = "PUBSUB_EMULATOR_HOST"
"""The variable with the address of an emulator, which takes requests without a token."""
SCOPE = "https://www.googleapis.com/auth/pubsub"
MAX_MESSAGE_BYTES = 10_000_000
MAX_ANSWER_BYTES = 64 << 10


class Topic:
    """A topic of Pub/Sub, given by its full name, with the credentials that the variables of `environment` name;
    without any if they name an emulator. The name is taken as it is. Raises `ValueError` for a variable that can't be
    parsed."""

    def __init__(self, name: str, environment: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        emulator = environment.get(EMULATOR)
        self._is_emulated = bool(emulator)
        self._url = f"{f'http://{emulator}' if emulator else 'https://pubsub.googleapis.com'}/v1/{name}:publish"
        self._name = name
        self._tokens = FixedToken("") if emulator else tokens_of(GcsConfig.from_environment(environment), (SCOPE,))
        self._now_ms = now_ms

    async def publish(self, body: bytes, ordering_key: str) -> None:
        """Publishes a message to the topic of Pub/Sub. Subscriptions that keep order do so for the messages of one
        `ordering_key`, which may be empty. Raises `StoreDenied` without credentials or if the message is refused, and
        `StoreUnavailable` if the service is too busy or the outcome is unknown."""
        token = await self._tokens.current()
        message = {"data": b64encode(body).decode(), **({"orderingKey": ordering_key} if ordering_key else {})}
        answer = await fetch(
            self._url,
            {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})},
            self._now_ms,
            MAX_ANSWER_BYTES,
            method="POST",
            body=json.dumps({"messages": [message]}).encode(),
            plain_loopback=self._is_emulated,
        )
        if answer.status != 200:
            raise failure_of(f"the message was not confirmed: Pub/Sub, for {self._name},", answer)
