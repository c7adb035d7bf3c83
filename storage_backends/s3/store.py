"""The store for S3, and for servers that implement its protocol well enough to pass the contract tests."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus

from storage_backends.base import (
    ANY,
    MAX_DELETED,
    Anything,
    Applied,
    Cursor,
    Deleted,
    Found,
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
from storage_backends.s3.answers import S3Dialect
from storage_backends.s3.carrier import open_transport
from storage_backends.s3.config import S3Config
from storage_backends.s3.deletion import md5_of, read_deletion, write_deletion
from storage_backends.s3.endpoint import is_directory_bucket
from storage_backends.s3.listing import read_listing
from storage_backends.validation import check_deletable, check_range
from storage_backends.wire.bucket_store import RANDOM, BucketStore, etag_headers
from storage_backends.wire.bulk import BatchAnswer, Batches
from storage_backends.wire.client import Client
from storage_backends.wire.exchange import Request


class S3Store(BucketStore):
    """The objects of `bucket` whose keys start with `prefix`, accessed by `config`.

    A version is an ETag, as the store writes it. It is a digest of the body, so equal bytes make an old version valid
    again: bodies that are moved by compare-and-swap have a fresh id in them (docs/design/store.md#rule-3).

    The client sends no write twice: a write whose response is lost is `Unknown`, and `PreconditionFailed` is the
    response to this very request, unless a proxy resends. Throttling and responses that mean "try again" are retried
    here.

    `sleep` takes seconds, `random` is uniform on [0, 1): both are for the pauses between attempts.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        config: S3Config,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = RANDOM,
    ) -> None:
        self._always, self._writing = config.request_headers(), config.object_headers()
        self._by_folder = is_directory_bucket(bucket)  # it lists by prefixes that end in a slash alone
        client = Client(partial(open_transport, bucket, config), S3Dialect(bucket), sleep, random)
        super().__init__(prefix, client)

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """Returns the object at a key, `Unchanged` if it still has the version `if_changed_from`, or `Missing` if there
        is none."""
        condition = {} if if_changed_from is None else {"if-none-match": if_changed_from}
        answer = await self._client.read(Request("GET", self._key(key), {**self._always, **condition}))
        match answer.status:
            case HTTPStatus.NOT_MODIFIED:
                return Unchanged(answer.now_ms)
            case HTTPStatus.NOT_FOUND:
                return Missing(answer.now_ms)
        return self._found(answer)

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """Returns the bytes of an object from `start` up to `start + length`, fewer at the end of the object, with the
        version of the object; `Missing` if there is none. Raises ValueError for a negative start or a length under 1.
        """
        check_range(start, length)
        span = {"range": f"bytes={start}-{start + length - 1}"}
        answer = await self._client.read(Request("GET", self._key(key), {**self._always, **span}))
        if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:  # past the end; S3 returns no ETag then
            answer = await self._client.read(Request("HEAD", self._key(key), self._always))
        return Missing(answer.now_ms) if answer.status == HTTPStatus.NOT_FOUND else self._found(answer)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes an object if the condition `when` holds. Returns `Applied` with the new version, `PreconditionFailed`
        if the condition does not hold, or `Unknown` if the write may have been applied."""
        headers = {**self._always, **self._writing, **etag_headers(when)}
        answer = await self._client.write(Request("PUT", self._key(key), headers, body=body))
        if isinstance(answer, Unknown):
            return answer
        match answer.status:
            case HTTPStatus.OK if version := answer.header("etag"):
                return Applied(Version(version), answer.now_ms)
            case HTTPStatus.OK:
                return Unknown(f"the store answered the write of {key!r} without an ETag")
            case HTTPStatus.PRECONDITION_FAILED | HTTPStatus.NOT_MODIFIED:
                return PreconditionFailed(None, answer.now_ms)
            case HTTPStatus.NOT_FOUND if isinstance(when, Matches):  # S3's answer when no object has the key
                return PreconditionFailed(None, answer.now_ms)
        raise StoreError(f"unexpected status {answer.status} for the write of {key!r}")

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Deletes an object if the condition `when` holds, and returns the outcome: for a missing object `Applied`
        under `ANY`, and `PreconditionFailed` under a version. Raises ValueError for `ABSENT`."""
        condition = check_deletable(when)
        answer = await self._client.write(
            Request("DELETE", self._key(key), {**self._always, **etag_headers(condition)})
        )
        if isinstance(answer, Unknown):
            return answer
        gone = condition.version if isinstance(condition, Matches) else Version("")
        match answer.status:
            case HTTPStatus.NO_CONTENT | HTTPStatus.OK:
                return Applied(gone, answer.now_ms)
            case HTTPStatus.NOT_FOUND if isinstance(condition, Anything):  # S3 itself answers 204
                return Applied(gone, answer.now_ms)
        return PreconditionFailed(None, answer.now_ms)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Deletes at most 1,000 objects, whatever their versions, and returns the keys that may still exist, with the
        reasons. Raises ValueError for more keys."""
        check_number(keys)
        for key in keys:
            self._key(key)
        return await Batches(self._client, MAX_DELETED, self._delete_batch, self.delete).run(keys)

    async def _delete_batch(self, keys: Sequence[str]) -> BatchAnswer | Unknown:
        whole = {self._prefix + key: key for key in keys}
        body = write_deletion(whole)
        headers = {**self._always, "content-type": "application/xml", "content-md5": md5_of(body)}
        answer = await self._client.write(Request("POST", "", headers, {"delete": ""}, body))
        if isinstance(answer, Unknown):
            return answer
        try:
            failures = read_deletion(answer.response.body)
            return BatchAnswer({whole[name]: error for name, error in failures.items()}, answer.now_ms)
        except (KeyError, ValueError) as error:
            return Unknown(f"the store's answer to a deletion of {len(keys)} objects cannot be read: {error}")

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """Returns a page of at most 1,000 objects whose keys start with `prefix`: the first page, or the one after the
        cursor `after`. Names of objects that are not valid keys, such as `folder/`, are in `others`."""
        resume = {} if after is None else {"continuation-token": after}
        whole = self._prefix + prefix
        folder = whole[: whole.rfind("/") + 1] if self._by_folder else whole
        query = {"list-type": "2", "encoding-type": "url", "max-keys": str(self.page_size), "prefix": folder}
        answer = await self._client.read(Request("GET", "", self._always, {**query, **resume}))
        if answer.status != HTTPStatus.OK:
            raise StoreError(f"unexpected status {answer.status} for a listing")
        page = self._page(answer, read_listing)
        if not self._by_folder:
            return page
        entries = tuple(entry for entry in page.entries if entry.key.startswith(prefix))
        others = tuple(name for name in page.others if name.startswith(prefix))
        return replace(page, entries=entries, in_order=False, others=others)
