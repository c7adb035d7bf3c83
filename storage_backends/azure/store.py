"""Azure Blob Storage: block blobs, each written whole. Source: Azure Storage REST API, "Put Blob", "Get Blob", "Delete
Blob", "Blob Batch", "List Blobs"."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from http import HTTPStatus

from storage_backends.azure.answers import AzureDialect
from storage_backends.azure.config import AzureConfig
from storage_backends.azure.listing import read_listing
from storage_backends.azure.transport import open_transport
from storage_backends.base import (
    ANY,
    Absent,
    Anything,
    Applied,
    Cursor,
    Deleted,
    Found,
    InvalidKey,
    Matches,
    Missing,
    Outcome,
    Page,
    PreconditionFailed,
    StoreError,
    Unchanged,
    Unknown,
    Version,
    When,
)
from storage_backends.bulk import check_number
from storage_backends.validation import check_deletable, check_range
from storage_backends.wire.bucket_store import RANDOM, BucketStore, etag_headers
from storage_backends.wire.bulk import BatchAnswer, Batches, judge_parts
from storage_backends.wire.client import Client
from storage_backends.wire.exchange import Answer, Request

_BATCH = 256
"""Deletions in one request, at most."""
_BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob", "content-type": "application/octet-stream"}


class AzureStore(BucketStore):
    """The objects of `container` whose keys start with `prefix`, accessed by `config`.

    A version is an ETag, as the headers of a response have it. Azure makes a new one with each write, whatever the
    bytes.

    The client sends no write twice: a write whose response is lost is `Unknown`, and `PreconditionFailed` is the
    response to this very request, unless a proxy resends. Throttling is retried here. A blob that another client leases
    cannot be written, which is an error: this store uses no leases.

    `sleep` takes seconds, `random` is uniform on [0, 1): both are for the pauses between attempts.
    """

    def __init__(
        self,
        container: str,
        prefix: str = "",
        *,
        config: AzureConfig,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = RANDOM,
    ) -> None:
        self._dialect = AzureDialect(container)
        client = Client(partial(open_transport, container, config), self._dialect, sleep, random)
        super().__init__(prefix, client)

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """Returns the object at a key, `Unchanged` if it still has the version `if_changed_from`, or `Missing` if there
        is none."""
        condition = {} if if_changed_from is None else {"if-none-match": if_changed_from}
        answer = await self._client.read(Request("GET", self._key(key), condition))
        match answer.status:
            case HTTPStatus.NOT_MODIFIED:
                return Unchanged(answer.now_ms)
            case HTTPStatus.NOT_FOUND:
                return Missing(answer.now_ms)
        return self._found_or_missing(answer)

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """Returns the bytes of an object from `start` up to `start + length`, fewer at the end of the object, with the
        version of the object; `Missing` if there is none. Raises ValueError for a negative start or a length under 1.
        """
        check_range(start, length)
        span = {"x-ms-range": f"bytes={start}-{start + length - 1}"}
        answer = await self._client.read(Request("GET", self._key(key), span))
        if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:  # past the end: an error
            answer = await self._client.read(Request("HEAD", self._key(key)))
        return Missing(answer.now_ms) if answer.status == HTTPStatus.NOT_FOUND else self._found_or_missing(answer)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes an object if the condition `when` holds. Returns `Applied` with the new version, `PreconditionFailed`
        if the condition does not hold, or `Unknown` if the write may have been applied."""
        answer = await self._client.write(
            Request("PUT", self._key(key), {**_BLOCK_BLOB, **etag_headers(when)}, body=body)
        )
        if isinstance(answer, Unknown):
            return answer
        match answer.status:
            case HTTPStatus.CREATED if version := answer.header("etag"):
                return Applied(Version(version), answer.now_ms)
            case HTTPStatus.CREATED:
                return Unknown(f"the store answered the write of {key!r} without an ETag")
            case HTTPStatus.PRECONDITION_FAILED:
                return PreconditionFailed(None, answer.now_ms)
            case HTTPStatus.CONFLICT if isinstance(when, Absent):
                return PreconditionFailed(None, answer.now_ms)
            case HTTPStatus.NOT_FOUND if isinstance(when, Matches):
                return PreconditionFailed(None, answer.now_ms)
        raise StoreError(f"unexpected status {answer.status} for the write of {key!r}")

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Deletes an object if the condition `when` holds, and returns the outcome: for a missing object `Applied`
        under `ANY`, and `PreconditionFailed` under a version. Raises ValueError for `ABSENT`."""
        condition = check_deletable(when)
        answer = await self._client.write(Request("DELETE", self._key(key), etag_headers(condition)))
        if isinstance(answer, Unknown):
            return answer
        gone = condition.version if isinstance(condition, Matches) else Version("")
        match answer.status:
            case HTTPStatus.ACCEPTED | HTTPStatus.OK:
                return Applied(gone, answer.now_ms)
            case HTTPStatus.NOT_FOUND if isinstance(condition, Anything):
                return Applied(gone, answer.now_ms)
            case HTTPStatus.NOT_FOUND | HTTPStatus.PRECONDITION_FAILED:
                return PreconditionFailed(None, answer.now_ms)
        raise StoreError(f"unexpected status {answer.status} for the deletion of {key!r}")

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Deletes at most 1,000 objects, whatever their versions, and returns the keys that may still exist, with the
        reasons. Raises ValueError for more keys."""
        check_number(keys)
        for key in keys:
            self._key(key)
        return await Batches(self._client, _BATCH, self._delete_batch, self.delete).run(keys)

    async def _delete_batch(self, keys: Sequence[str]) -> BatchAnswer | Unknown:
        parts = tuple(Request("DELETE", self._key(key)) for key in keys)
        query = {"restype": "container", "comp": "batch"}
        return judge_parts(keys, await self._client.write(Request("POST", query=query, parts=parts)), self._dialect)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """Returns a page of at most 1,000 objects whose keys start with `prefix`: the first page, or the one after the
        cursor `after`. Directories of a hierarchical namespace are left out; names of objects that are not valid keys,
        such as `folder/`, are in `others`."""
        query = {"restype": "container", "comp": "list", "maxresults": str(self.page_size)}
        optional = {"prefix": self._prefix + prefix, "marker": after or ""}
        query |= {name: value for name, value in optional.items() if value}  # an empty one may be signed in two ways
        answer = await self._client.read(Request("GET", query=query))
        if answer.status != HTTPStatus.OK:
            raise StoreError(f"unexpected status {answer.status} for a listing")
        return self._page(answer, read_listing)

    def _key(self, key: str) -> str:
        whole = super()._key(key)
        if "\\" in whole:
            raise InvalidKey(f"a key on Azure must not contain a backslash, which would be taken for a slash: {key!r}")
        return whole

    def _found_or_missing(self, answer: Answer) -> Found | Missing:
        """Returns the object in an answer; `Missing` for a directory of a hierarchical namespace, which is read as an
        empty blob."""
        if answer.header("x-ms-resource-type") == "directory" or answer.header("x-ms-meta-hdi_isfolder") == "true":
            return Missing(answer.now_ms)
        return self._found(answer)
