"""The base class of the stores on clouds. It makes the results of calls from HTTP responses; each cloud's store makes
the requests."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus

from storage_backends.base import (
    ANY,
    MAX_DELETED,
    Absent,
    Anything,
    Applied,
    Cursor,
    Deleted,
    Found,
    Listed,
    Matches,
    Missing,
    Outcome,
    Page,
    PreconditionFailed,
    StoreError,
    StoreUnavailable,
    Unchanged,
    Unknown,
    Version,
    When,
)
from storage_backends.bulk import check_number
from storage_backends.lazy_dataclass import dataclass
from storage_backends.validation import check_deletable, check_range, is_key
from storage_backends.wire.bucket import Bucket
from storage_backends.wire.bulk import BatchAnswer, Batches
from storage_backends.wire.dates import http_date_ms
from storage_backends.wire.exchange import Answer, Request


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page of a bucket's listing as a cloud returned it: the objects by their keys in the bucket, and in
    `continuation` the text by which a request gets the next page; None after the last page."""

    entries: tuple[Listed, ...]
    continuation: str | None


class BucketStore(Bucket, ABC):
    """The base of the stores on clouds: the objects of a bucket whose keys start with a prefix, as an `ObjectStore`.
    Versions are ETags, unless a cloud's store overrides the requests and responses that have them."""

    version_header = "etag"
    """The header of a response that has the object's version."""
    version_called = "an ETag"
    """What messages call it."""
    range_header = "range"
    """The header of a request for a part of an object."""
    batch_size = MAX_DELETED
    """Deletions in one request, at most."""
    _headers: Mapping[str, str] = {}
    """The headers of every request."""

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """Returns the object at a key, `Unchanged` if it still has the version `if_changed_from`, or `Missing` if there
        is none. Raises `StoreError` if it cannot be read."""
        answer = await self._client.read(self._reading(self._key(key), if_changed_from))
        return Unchanged(answer.now_ms) if answer.status == HTTPStatus.NOT_MODIFIED else self._found(answer)

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """Returns the bytes of an object from `start` up to `start + length`, fewer at the end of the object and none
        after it (which takes a second request), with the version of the object; `Missing` if there is none. Raises
        ValueError for a negative start or a length under 1, and `StoreError` if the object cannot be read."""
        check_range(start, length)
        request = self._reading(self._key(key))
        span = {self.range_header: f"bytes={start}-{start + length - 1}"}
        answer = await self._client.read(replace(request, headers={**request.headers, **span}))
        if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return await self._past_end(key)
        return self._found(answer)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes an object if the condition `when` holds. Returns `Applied` with the new version, `PreconditionFailed`
        if the condition does not hold, or `Unknown` if the write may have been applied. Raises `StoreError` if it was
        not applied for another reason."""
        answer = await self._client.write(self._writing(self._key(key), body, when))
        if isinstance(answer, Unknown):
            return answer
        match answer.status:
            case HTTPStatus.OK | HTTPStatus.CREATED:
                return self._written(key, answer)
            case HTTPStatus.PRECONDITION_FAILED | HTTPStatus.NOT_MODIFIED:
                return PreconditionFailed(None, answer.now_ms)
            case HTTPStatus.CONFLICT if isinstance(when, Absent):  # Azure's answer when an object has the key
                return PreconditionFailed(None, answer.now_ms)
            case HTTPStatus.NOT_FOUND if isinstance(when, Matches):  # S3's and Azure's when no object has it
                return PreconditionFailed(None, answer.now_ms)
        if answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return Unknown(f"the store answered the write of {key!r} with the unexpected status {answer.status}")
        raise StoreError(
            f"the object {key!r} was not written: the store answered with the unexpected status {answer.status}"
        )

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Deletes an object if the condition `when` holds, and returns the outcome: for a missing object `Applied`
        under `ANY`, and `PreconditionFailed` under a version; `Unknown` if the deletion may have been applied. Raises
        ValueError for `ABSENT`, and `StoreError` if the object was not deleted for another reason."""
        condition = check_deletable(when)
        answer = await self._client.write(self._deletion(self._key(key), condition))
        if isinstance(answer, Unknown):
            return answer
        gone = condition.version if isinstance(condition, Matches) else Version("")
        match answer.status:
            case HTTPStatus.OK | HTTPStatus.ACCEPTED | HTTPStatus.NO_CONTENT:
                return Applied(gone, answer.now_ms)
            case HTTPStatus.NOT_FOUND if isinstance(condition, Anything):  # S3 itself answers 204
                return Applied(gone, answer.now_ms)
            case HTTPStatus.NOT_FOUND | HTTPStatus.PRECONDITION_FAILED | HTTPStatus.NOT_MODIFIED:
                return PreconditionFailed(None, answer.now_ms)
        if answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return Unknown(f"the store answered the deletion of {key!r} with the unexpected status {answer.status}")
        raise StoreError(
            f"the object {key!r} was not deleted: the store answered with the unexpected status {answer.status}"
        )

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Deletes at most 1,000 objects, whatever their versions, and returns the keys of objects that may still exist,
        with the reasons. Raises ValueError for more keys, and `InvalidKey` before anything is sent."""
        check_number(keys)
        for key in keys:
            self._key(key)
        return await Batches(self._client, self.batch_size, self._delete_batch, self.delete).run(keys)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """Returns a page of at most 1,000 objects whose keys start with `prefix`: the first page, or the one after the
        cursor `after`. Names of objects that are not valid keys, such as `folder/`, are in `others`. Raises
        `StoreError` if the page cannot be read."""
        answer = await self._client.read(self._listing(self._prefix + prefix, after))
        if answer.status == HTTPStatus.NOT_FOUND:
            raise StoreError(f"the listing failed: bucket {self._name!r} does not exist")
        if answer.status != HTTPStatus.OK:
            raise StoreError(
                f"the listing of {self._name!r} failed: the store answered with the unexpected status {answer.status}"
            )
        try:
            page = self._read_page(answer.response.body)
        except ValueError as error:
            raise StoreUnavailable(
                f"the listing of {self._name!r} failed: the store's answer cannot be parsed: {error}"
            ) from error
        keys = [entry.key for entry in page.entries]
        in_order = keys == sorted(keys)  # some servers that speak a vendor's protocol list in another
        found = [replace(entry, key=entry.key.removeprefix(self._prefix)) for entry in page.entries]
        entries = tuple(entry for entry in found if is_key(entry.key))
        others = () if len(entries) == len(found) else tuple(each.key for each in found if not is_key(each.key))
        cursor = Cursor(page.continuation) if page.continuation else None
        return Page(entries, cursor, answer.now_ms, in_order, others)

    def _reading(self, key: str, if_changed_from: Version | None = None) -> Request:
        """Returns the request for an object. With the version `if_changed_from`, the store answers without a body if
        the object still has that version."""
        condition = {} if if_changed_from is None else {"if-none-match": if_changed_from}
        return Request("GET", key, {**self._headers, **condition})

    @abstractmethod
    def _writing(self, key: str, body: bytes, when: When) -> Request:
        """Returns the request that writes an object at a key of the bucket if the condition `when` holds."""

    def _deletion(self, key: str, when: Matches | Anything) -> Request:
        """Returns the request that deletes the object at a key of the bucket if the condition `when` holds."""
        return Request("DELETE", key, {**self._headers, **etag_headers(when)})

    @abstractmethod
    async def _delete_batch(self, keys: Sequence[str]) -> BatchAnswer | Unknown:
        """Deletes at most `batch_size` objects, by their keys in the store, with one request. Returns the failures
        (`Ambiguous`: perhaps deleted); `Unknown` if it is unknown which are deleted. Raises `StoreError` if none was
        deleted."""

    @abstractmethod
    def _listing(self, prefix: str, after: Cursor | None) -> Request:
        """Returns the request for a page of the objects whose keys in the bucket start with `prefix`."""

    @abstractmethod
    def _read_page(self, body: bytes) -> ListedPage:
        """Returns the page in the body of the response to a listing. Raises ValueError for a body that is no page."""

    def _found(self, answer: Answer) -> Found | Missing:
        """Returns the object in the response to a read, or `Missing` for the status 404. Raises `StoreError` if the
        object's version or time is missing, or the time is invalid."""
        if answer.status == HTTPStatus.NOT_FOUND:
            return Missing(answer.now_ms)
        version, written = answer.header(self.version_header), answer.header("last-modified")
        if not version or not written:
            raise StoreError(
                f"an object cannot be read: the answer has no version ({self.version_called}) or no Last-Modified"
            )
        try:
            written_ms = http_date_ms(written)
        except ValueError as error:
            raise StoreError(
                f"an object cannot be read: the store's answer has an invalid Last-Modified: {written!r}"
            ) from error
        return Found(answer.response.body, Version(version), written_ms, answer.now_ms)

    async def _past_end(self, key: str) -> Found | Missing:
        """Returns the object at a key with an empty body, by a second request, since the response for a range past its
        end has no version; `Missing` if there is no object any more."""
        return self._found(await self._client.read(replace(self._reading(self._key(key)), method="HEAD")))

    def _written(self, key: str, answer: Answer) -> Applied | Unknown:
        """Returns the outcome of a write that the store answered as applied: `Unknown` if it did not return the new
        version."""
        version = answer.header(self.version_header)
        if not version:
            return Unknown(f"the store accepted the write of {key!r}, but answered without {self.version_called}")
        return Applied(Version(version), answer.now_ms)


def etag_headers(when: When) -> dict[str, str]:
    """Returns the request headers for the condition of a write, where versions are ETags."""
    match when:
        case Absent():
            return {"if-none-match": "*"}
        case Matches(version):
            return {"if-match": version}
        case Anything():
            return {}
