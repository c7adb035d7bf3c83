"""The base class of the clouds' stores: a prefix of a bucket, and the results of reads, writes and listings made of
HTTP responses."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from storage_backends.base import (
    Absent,
    Anything,
    Cursor,
    Found,
    Listed,
    Matches,
    Page,
    StoreError,
    StoreUnavailable,
    Version,
    When,
)
from storage_backends.validation import PAGE_SIZE, check_key, is_key
from storage_backends.wire.client import Client
from storage_backends.wire.dates import http_date_ms
from storage_backends.wire.exchange import Answer
from storage_backends.wire.http1 import Response

RANDOM = random.SystemRandom().random
"""Uniform on [0, 1). The default generator's state is shared by processes restored from one snapshot."""


@dataclass(frozen=True, slots=True)
class ListedPage:
    """The objects on a page by their keys in the bucket, and the text by which the listing continues; None after the
    last page."""

    entries: tuple[Listed, ...]
    continuation: str | None


class BucketStore:
    """The objects of a bucket whose keys start with a prefix. Raises `InvalidKey` for a prefix that no key can have."""

    version_header = "etag"
    """The header of an answer that has the object's version."""
    version_called = "an ETag"
    """What messages call it."""
    page_size = PAGE_SIZE
    """The number of objects that a listing requests for each page."""

    def __init__(self, prefix: str, client: Client) -> None:
        if prefix:
            check_key(prefix)
        self._prefix = f"{prefix}/" if prefix else ""
        self._client = client

    async def close(self) -> None:
        """Closes the connections; another call would open new ones."""
        await self._client.close()

    def observe(self, see: Callable[[Response], None]) -> None:
        """Sets the function that is called with each response of the store from now on, also with failures that are
        retried."""
        self._client.observe(see)

    def _key(self, key: str) -> str:
        """Returns the key in the bucket of the object with this key in the store. Raises `InvalidKey` if either is
        invalid."""
        check_key(key)
        check_key(self._prefix + key)  # the limit is on the whole
        return self._prefix + key

    def _found(self, answer: Answer) -> Found:
        """Returns the object in the response to a read. Raises `StoreError` if its version or time is missing."""
        version, written = answer.header(self.version_header), answer.header("last-modified")
        if not version or not written:
            raise StoreError(
                f"the store answered a read without {self.version_called} or without Last-Modified (no version)"
            )
        try:
            written_ms = http_date_ms(written)
        except ValueError as error:
            raise StoreError(f"the store answered with an invalid Last-Modified: {written!r}") from error
        return Found(answer.response.body, Version(version), written_ms, answer.now_ms)

    def _page(self, answer: Answer, read_page: Callable[[bytes], ListedPage]) -> Page:
        """Returns the page in the response to a listing, which `read_page` reads; it raises ValueError for a body that
        is no page. Names that are not valid keys, such as `folder/`, go into `others`. Raises `StoreUnavailable` if the
        response cannot be parsed."""
        try:
            page = read_page(answer.response.body)
        except ValueError as error:
            raise StoreUnavailable(f"the store's answer to a listing cannot be parsed: {error}") from error
        keys = [entry.key for entry in page.entries]
        in_order = keys == sorted(keys)  # some servers that speak a vendor's protocol list in another
        found = [replace(entry, key=entry.key.removeprefix(self._prefix)) for entry in page.entries]
        entries = tuple(entry for entry in found if is_key(entry.key))
        others = () if len(entries) == len(found) else tuple(each.key for each in found if not is_key(each.key))
        cursor = Cursor(page.continuation) if page.continuation else None
        return Page(entries, cursor, answer.now_ms, in_order, others)


def etag_headers(when: When) -> dict[str, str]:
    """Returns the request headers for the condition of a write, where versions are ETags."""
    match when:
        case Absent():
            return {"if-none-match": "*"}
        case Matches(version):
            return {"if-match": version}
        case Anything():
            return {}
