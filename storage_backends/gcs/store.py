"""The store for Google Cloud Storage, and for servers that implement its JSON API well enough to pass the contract
tests."""

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus

from storage_backends.base import (
    Absent,
    Anything,
    Applied,
    Cursor,
    Found,
    Matches,
    Missing,
    StoreError,
    Unknown,
    Version,
    When,
)
from storage_backends.gcs.answers import GcsDialect
from storage_backends.gcs.config import Anonymous, GcsConfig
from storage_backends.gcs.listing import OBJECT_FIELDS, PAGE_FIELDS, generation_in, read_page, read_state
from storage_backends.gcs.transport import open_transport
from storage_backends.wire.bucket_store import BucketStore, ListedPage
from storage_backends.wire.bulk import BatchAnswer
from storage_backends.wire.client import PAUSES, Client, Pauses
from storage_backends.wire.exchange import Answer, Request
from storage_backends.wire.multipart import judge_parts

_MEDIA = {"alt": "media"}
_UPLOAD = {"content-type": "application/octet-stream"}
_NO_GENERATION = str(2**63 - 1)


class GcsStore(BucketStore):
    """A store on Google Cloud Storage: the objects of `bucket` whose keys start with `prefix`, accessed by `config`.

    A version is a generation: every write makes a new one, whatever its body, and no generation comes back.

    The client sends a write once more only after a response by which it was not applied, such as an expired token, or
    throttling, which is also GCS's response to more than one write a second to one object. A write with a response that
    is lost is `Unknown`, and `PreconditionFailed` is the response to this very request, unless a proxy resends.

    `pauses` are made between attempts.
    """

    version_header = "x-goog-generation"
    version_called = "a generation"
    batch_size = 100

    def __init__(self, bucket: str, prefix: str = "", *, config: GcsConfig, pauses: Pauses = PAUSES) -> None:
        self._dialect = GcsDialect(bucket, emulated=isinstance(config.credentials, Anonymous))
        client = Client(partial(open_transport, bucket, config), self._dialect, pauses)
        super().__init__(bucket, prefix, client)

    def _reading(self, key: str, if_changed_from: Version | None = None) -> Request:
        """Returns the request that reads an object of GCS, or only if the version is no longer `if_changed_from`; sends
        nothing."""
        held = {} if if_changed_from is None else {"ifGenerationNotMatch": _generation(if_changed_from)}
        return Request("GET", key, query={**_MEDIA, **held})

    def _writing(self, key: str, body: bytes, when: When) -> Request:
        """Returns the request that writes an object to GCS if the condition holds, and whose response has the new
        generation; sends nothing."""
        return Request("POST", key, _UPLOAD, {**_condition(when), "fields": "generation"}, body)

    def _deletion(self, key: str, when: Matches | Anything) -> Request:
        """Returns the request that deletes an object of GCS under a condition, and sends nothing."""
        return Request("DELETE", key, query=_condition(when))

    async def _delete_batch(self, keys: Sequence[str]) -> BatchAnswer | Unknown:
        """Deletes at most `batch_size` objects by one request to GCS. Returns the failures by key, which are
        `Ambiguous` for a key whose object may have been deleted; `Unknown` if that is so of all keys. Raises
        `StoreError` if the request was not applied."""
        parts = tuple(Request("DELETE", self._key(key)) for key in keys)
        return judge_parts(keys, await self._client.write(Request("POST", parts=parts)), self._dialect)

    def _listing(self, prefix: str, after: Cursor | None) -> Request:
        """Returns the request for a page of a bucket's listing, and sends nothing."""
        resume = {} if after is None else {"pageToken": after}
        query = {"prefix": prefix, "maxResults": str(self.page_size), "fields": PAGE_FIELDS}
        return Request("GET", query={**query, **resume})

    def _read_page(self, body: bytes) -> ListedPage:
        """Returns the page in the body, which is JSON, of a GCS listing. Raises ValueError for any other body."""
        return read_page(body)

    def _written(self, key: str, answer: Answer) -> Applied | Unknown:
        """Returns the outcome of an accepted write: unknown if the response does not have the new version."""
        try:
            return Applied(generation_in(answer.response.body), answer.now_ms)
        except ValueError as error:
            return Unknown(
                f"the store accepted the write of {key!r}, but answered without {self.version_called}: {error}"
            )

    async def _past_end(self, key: str) -> Found | Missing:
        """Reads the object at a key without its bytes, for a range past its end, and returns it with its generation and
        an empty body; `Missing` if there is no object. Raises `StoreError` for a response without a generation or a
        time."""
        answer = await self._client.read(Request("GET", self._key(key), query={"fields": OBJECT_FIELDS}))
        if answer.status == HTTPStatus.NOT_FOUND:
            return Missing(answer.now_ms)
        try:
            state = read_state(answer.response.body)
        except ValueError as error:
            raise StoreError(
                f"the object {key!r} cannot be read: the JSON of the store about its generation and time, which is "
                f"read for a range past the end, is invalid: {error}"
            ) from error
        return Found(b"", state.version, state.written_ms, answer.now_ms)


def _condition(when: When) -> dict[str, str]:
    """Returns the query parameters for the condition of a write."""
    match when:
        case Absent():
            return {"ifGenerationMatch": "0"}
        case Matches(version):
            return {"ifGenerationMatch": _generation(version)}
        case Anything():
            return {}


def _generation(version: Version) -> str:
    """Returns a version as a generation for a condition. A version that is no generation becomes one that no object
    has; so does 0, which GCS takes for absence."""
    is_generation = version.isascii() and version.isdecimal() and 0 < int(version) < 2**63
    return version if is_generation else _NO_GENERATION
