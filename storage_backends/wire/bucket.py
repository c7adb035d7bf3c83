"""A prefix of a bucket, and the client that reaches it."""

from collections.abc import Callable
from functools import lru_cache

from storage_backends.validation import PAGE_SIZE, check_key
from storage_backends.wire.client import Client
from storage_backends.wire.http1 import Response


class Bucket:
    """A part of the bucket `name`, whose keys start with `prefix`, with the client that reaches it. Raises `InvalidKey`
    for a prefix that no key can have."""

    page_size = PAGE_SIZE
    """The number of objects that a listing requests for each page."""

    def __init__(self, name: str, prefix: str, client: Client) -> None:
        if prefix:
            check_key(prefix)
        self._name = name
        self._prefix = f"{prefix}/" if prefix else ""
        self._client = client

    async def close(self) -> None:
        """Closes the connections to the bucket if they belong to this event loop, and forgets them in any case; another
        call would open new ones."""
        await self._client.close()

    def observe(self, see: Callable[[Response], None]) -> None:
        """Sets the function that is called with each response of the store from now on, also with failures that are
        retried, but not with a 401 after which the transport sends the request a second time."""
        self._client.observe(see)

    def _key(self, key: str) -> str:
        """Returns the key in the bucket of the object with this key in the store. Raises `InvalidKey` if either is
        invalid."""
        return _key_in_bucket(self._prefix, key)


@lru_cache(maxsize=4_096)  # no key is longer than 1,024 bytes
def _key_in_bucket(prefix: str, key: str) -> str:
    """Returns the prefix and the key, joined. Raises `InvalidKey` if the key, or both together, are no valid key."""
    check_key(key)
    check_key(prefix + key)  # the limit is on the whole
    return prefix + key
