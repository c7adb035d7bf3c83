"""The store for Azure Blob Storage: block blobs, each written whole. Source: Azure Storage REST API, "Put Blob", "Get
Blob", "Delete Blob", "Blob Batch", "List Blobs"."""

from collections.abc import Sequence
from functools import partial

from storage_backends.azure.answers import AzureDialect
from storage_backends.azure.config import AzureConfig
from storage_backends.azure.listing import read_listing
from storage_backends.azure.transport import open_transport
from storage_backends.base import Cursor, Found, InvalidKey, Missing, Unknown, When
from storage_backends.wire.bucket_store import BucketStore, ListedPage, etag_headers
from storage_backends.wire.bulk import BatchAnswer
from storage_backends.wire.client import PAUSES, Client, Pauses
from storage_backends.wire.exchange import Answer, Request
from storage_backends.wire.multipart import judge_parts

_BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob", "content-type": "application/octet-stream"}


class AzureStore(BucketStore):
    """A store on Azure Blob Storage: the objects of `container` whose keys start with `prefix`, accessed by `config`.

    A version is an ETag, as the headers of a response have it. Azure makes a new one with each write, whatever the
    bytes.

    The client sends a write once more only after a response by which it was not applied, such as throttling or an
    expired token. A write whose response is lost is `Unknown`, and `PreconditionFailed` is the response to this very
    request, unless a proxy resends. A blob that another client leases cannot be written, which is an error: this store
    uses no leases.

    `pauses` are made between attempts.
    """

    range_header = "x-ms-range"
    batch_size = 256

    def __init__(self, container: str, prefix: str = "", *, config: AzureConfig, pauses: Pauses = PAUSES) -> None:
        self._dialect = AzureDialect(container)
        client = Client(partial(open_transport, container, config), self._dialect, pauses)
        super().__init__(container, prefix, client)

    def _writing(self, key: str, body: bytes, when: When) -> Request:
        """Returns the request that writes an object to Azure under a condition, and sends nothing."""
        return Request("PUT", key, {**_BLOCK_BLOB, **etag_headers(when)}, body=body)

    async def _delete_batch(self, keys: Sequence[str]) -> BatchAnswer | Unknown:
        """Deletes at most `batch_size` objects by one request to Azure. Returns the failures by key, which are
        `Ambiguous` for a key whose object may have been deleted; `Unknown` if that is so of all keys. Raises
        `StoreError` if the request was not applied."""
        parts = tuple(Request("DELETE", self._key(key)) for key in keys)
        query = {"restype": "container", "comp": "batch"}
        return judge_parts(keys, await self._client.write(Request("POST", query=query, parts=parts)), self._dialect)

    def _listing(self, prefix: str, after: Cursor | None) -> Request:
        """Returns the request for a page of a container's listing, and sends nothing."""
        query = {"restype": "container", "comp": "list", "maxresults": str(self.page_size)}
        optional = {"prefix": prefix, "marker": after or ""}
        query |= {name: value for name, value in optional.items() if value}  # an empty one may be signed in two ways
        return Request("GET", query=query)

    def _read_page(self, body: bytes) -> ListedPage:
        """Returns the page in the body, which is XML, of an Azure listing. Raises ValueError unless it is a complete
        page."""
        return read_listing(body)

    def _key(self, key: str) -> str:
        """Returns the key in the container of the object with this key in the store. Raises `InvalidKey` for one that
        is not valid, or that has a backslash."""
        whole = super()._key(key)
        if "\\" in whole:
            raise InvalidKey(f"a key on Azure must not contain a backslash, which would be taken for a slash: {key!r}")
        return whole

    def _found(self, answer: Answer) -> Found | Missing:
        """Returns the object in the response to a read. A missing object is `Missing`, and so is a directory of an
        account with a hierarchical namespace. Raises `StoreError` if the version or time is missing."""
        if answer.header("x-ms-resource-type") == "directory" or answer.header("x-ms-meta-hdi_isfolder") == "true":
            return Missing(answer.now_ms)
        return super()._found(answer)
