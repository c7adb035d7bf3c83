"""The store for S3, and for servers that implement its protocol well enough to pass the contract tests."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from storage_backends.base import Cursor, Page, Unknown, When
from storage_backends.s3.answers import S3Dialect
from storage_backends.s3.carrier import open_transport
from storage_backends.s3.config import S3Config
from storage_backends.s3.deletion import md5_of, read_deletion, write_deletion
from storage_backends.s3.endpoint import is_directory_bucket
from storage_backends.s3.listing import read_listing
from storage_backends.wire.bucket_store import BucketStore, ListedPage, etag_headers
from storage_backends.wire.bulk import BatchAnswer
from storage_backends.wire.client import PAUSES, Client, Pauses
from storage_backends.wire.exchange import Request


class S3Store(BucketStore):
    """A store on S3: the objects of `bucket` whose keys start with `prefix`, accessed by `config`.

    A version is an ETag, as the store writes it. It may be a digest of the body, so equal bytes can make an old version
    valid again: bodies that are moved by compare-and-swap have a fresh id in them (docs/design/store.md#rule-3).

    The client repeats no write that may have been applied: a write whose response is lost is `Unknown`, and
    `PreconditionFailed` is the response to this very request, unless a proxy resends. Throttling and responses that
    mean "try again" are retried here.

    `pauses` are made between attempts.
    """

    def __init__(self, bucket: str, prefix: str = "", *, config: S3Config, pauses: Pauses = PAUSES) -> None:
        self._headers, self._object_headers = config.request_headers(), config.object_headers()
        self._by_folder = is_directory_bucket(bucket)  # it lists by prefixes that end in a slash alone
        client = Client(partial(open_transport, bucket, config), S3Dialect(bucket), pauses)
        super().__init__(bucket, prefix, client)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """Returns a page of at most 1,000 objects whose keys start with `prefix`: the first page, or the one after the
        cursor `after`. A directory bucket lists up to a slash only, so the page leaves out objects that do not start
        with `prefix`, is never `in_order`, and may have fewer entries, or none, before the last page. Raises
        `StoreError` if the page cannot be read."""
        page = await super().list(prefix, after)
        if not self._by_folder:
            return page
        entries = tuple(entry for entry in page.entries if entry.key.startswith(prefix))
        others = tuple(name for name in page.others if name.startswith(prefix))
        return replace(page, entries=entries, in_order=False, others=others)

    def _writing(self, key: str, body: bytes, when: When) -> Request:
        """Returns the request that writes an object to S3 under a condition, and sends nothing."""
        return Request("PUT", key, {**self._headers, **self._object_headers, **etag_headers(when)}, body=body)

    async def _delete_batch(self, keys: Sequence[str]) -> BatchAnswer | Unknown:
        """Deletes at most `batch_size` objects by one request to S3. Returns the failures by key (`Ambiguous`: perhaps
        deleted); `Unknown` if it is unknown which are deleted, as when the response can't be read. Raises `StoreError`
        if none was deleted."""
        whole = {self._prefix + key: key for key in keys}
        body = write_deletion(whole)
        headers = {**self._headers, "content-type": "application/xml", "content-md5": md5_of(body)}
        answer = await self._client.write(Request("POST", "", headers, {"delete": ""}, body))
        if isinstance(answer, Unknown):
            return answer
        try:
            failures = read_deletion(answer.response.body)
            return BatchAnswer({whole[name]: error for name, error in failures.items()}, answer.now_ms)
        except (KeyError, ValueError) as error:
            return Unknown(
                f"it is unknown which of {len(keys)} objects are deleted: the answer cannot be read: {error}"
            )

    def _listing(self, prefix: str, after: Cursor | None) -> Request:
        """Returns the request for a page of the keys that begin with a prefix, and sends nothing. A directory bucket
        lists all keys of the prefix's folder."""
        resume = {} if after is None else {"continuation-token": after}
        folder = prefix[: prefix.rfind("/") + 1] if self._by_folder else prefix
        query = {"list-type": "2", "encoding-type": "url", "max-keys": str(self.page_size), "prefix": folder}
        return Request("GET", "", self._headers, {**query, **resume})

    def _read_page(self, body: bytes) -> ListedPage:
        """Returns the page in the body, which is XML, of an S3 listing. Raises ValueError unless it is a complete
        page."""
        return read_listing(body)
