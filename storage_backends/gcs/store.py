"""The store for Google Cloud Storage, and for servers that implement its JSON API well enough to pass the contract
tests."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from http import HTTPStatus

from storage_backends.base import (
    ANY,
    Absent,
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
from storage_backends.gcs.answers import GcsDialect
from storage_backends.gcs.config import Anonymous, GcsConfig
from storage_backends.gcs.listing import OBJECT_FIELDS, PAGE_FIELDS, generation_in, read_page, read_state
from storage_backends.gcs.transport import open_transport
from storage_backends.validation import check_deletable, check_range
from storage_backends.wire.bucket_store import RANDOM, BucketStore
from storage_backends.wire.bulk import BatchAnswer, Batches, judge_parts
from storage_backends.wire.client import Client
from storage_backends.wire.exchange import Request

_BATCH = 100
"""Deletions in one request, at most."""
_MEDIA = {"alt": "media"}
_UPLOAD = {"content-type": "application/octet-stream"}
_NO_GENERATION = str(2**63 - 1)


class GcsStore(BucketStore):
    """The objects of `bucket` whose keys start with `prefix`, accessed by `config`.

    A version is a generation: every write makes a new one, whatever its body, and no generation comes back.

    The client sends no write twice: a write whose response is lost is `Unknown`, and `PreconditionFailed` is the
    response to this very request, unless a proxy resends. Throttling, which is also GCS's response to more than one
    write a second to one object, is retried here.

    `sleep` takes seconds, `random` is uniform on [0, 1): both are for the pauses between attempts.
    """

    version_header = "x-goog-generation"
    version_called = "a generation"

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        config: GcsConfig,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = RANDOM,
    ) -> None:
        self._bucket = bucket
        self._dialect = GcsDialect(bucket, emulated=isinstance(config.credentials, Anonymous))
        client = Client(partial(open_transport, bucket, config), self._dialect, sleep, random)
        super().__init__(prefix, client)

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """Returns the object at a key, `Unchanged` if it still has the version `if_changed_from`, or `Missing` if there
        is none."""
        held = {} if if_changed_from is None else {"ifGenerationNotMatch": _generation(if_changed_from)}
        answer = await self._client.read(Request("GET", self._key(key), query={**_MEDIA, **held}))
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
        answer = await self._client.read(Request("GET", self._key(key), span, _MEDIA))
        if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:  # past the end: the answer has no generation
            return await self._nothing_of(key)
        return Missing(answer.now_ms) if answer.status == HTTPStatus.NOT_FOUND else self._found(answer)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes an object if the condition `when` holds. Returns `Applied` with the new version, `PreconditionFailed`
        if the condition does not hold, or `Unknown` if the write may have been applied."""
        query = {**_condition(when), "fields": "generation"}
        answer = await self._client.write(Request("POST", self._key(key), _UPLOAD, query, body))
        if isinstance(answer, Unknown):
            return answer
        match answer.status:
            case HTTPStatus.OK:
                try:
                    return Applied(generation_in(answer.response.body), answer.now_ms)
                except ValueError as error:
                    return Unknown(f"the store answered the write of {key!r} without a generation: {error}")
            case HTTPStatus.PRECONDITION_FAILED:
                return PreconditionFailed(None, answer.now_ms)
        raise StoreError(f"unexpected status {answer.status} for the write of {key!r}")

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Deletes an object if the condition `when` holds, and returns the outcome: for a missing object `Applied`
        under `ANY`, and `PreconditionFailed` under a version. Raises ValueError for `ABSENT`."""
        condition = check_deletable(when)
        answer = await self._client.write(Request("DELETE", self._key(key), query=_condition(condition)))
        if isinstance(answer, Unknown):
            return answer
        gone = condition.version if isinstance(condition, Matches) else Version("")
        match answer.status:
            case HTTPStatus.NO_CONTENT | HTTPStatus.OK:
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
        return judge_parts(keys, await self._client.write(Request("POST", parts=parts)), self._dialect)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """Returns a page of at most 1,000 objects whose keys start with `prefix`: the first page, or the one after the
        cursor `after`. Names of objects that are not valid keys, such as `folder/`, are in `others`."""
        resume = {} if after is None else {"pageToken": after}
        query = {"prefix": self._prefix + prefix, "maxResults": str(self.page_size), "fields": PAGE_FIELDS, **resume}
        answer = await self._client.read(Request("GET", query=query))
        if answer.status == HTTPStatus.NOT_FOUND:
            raise StoreError(f"bucket {self._bucket!r} does not exist")
        if answer.status != HTTPStatus.OK:
            raise StoreError(f"unexpected status {answer.status} for a listing")
        return self._page(answer, read_page)

    async def _nothing_of(self, key: str) -> Found | Missing:
        """Returns the object at a key with its generation and an empty body, for a range past its end; `Missing` if
        there is no object."""
        answer = await self._client.read(Request("GET", self._key(key), query={"fields": OBJECT_FIELDS}))
        if answer.status == HTTPStatus.NOT_FOUND:
            return Missing(answer.now_ms)
        try:
            state = read_state(answer.response.body)
        except ValueError as error:
            raise StoreError(f"the store's answer about {key!r} cannot be read: {error}") from error
        return Found(b"", state.version, state.written_ms, answer.now_ms)


def _condition(when: When) -> dict[str, str]:
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
