"""A bucket as a store: S3, and what speaks its protocol well enough to pass the contract."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from http import HTTPStatus

from storage_backends.arguments import PAGE_SIZE, check_deletable, check_key, check_range, is_key
from storage_backends.base import (
    ANY,
    Absent,
    Anything,
    Applied,
    Cursor,
    Found,
    Listed,
    Matches,
    Missing,
    Outcome,
    Page,
    Refused,
    StoreError,
    Unchanged,
    Unknown,
    Version,
    When,
)
from storage_backends.s3_client import Answer, S3Client


class S3Store:
    """The objects of `bucket` whose keys start with `prefix`. Region, keys and endpoint come from the environment.

    A version is an ETag, as the store writes it. It is a digest of the body, so equal bytes make an old version valid
    again: bodies that are moved by compare-and-swap hold a fresh id (design.md, section 4).

    The SDK's retries are off; throttling and "look again" are retried here. One resending remains below: aiohttp sends
    a PUT or DELETE once more when the connection dies under it, so a write that landed can come back as `Refused`, by
    its own echo. Nothing at this level can tell; whoever is refused reads the object and compares ids. Answers that
    would deny a write that may have landed before its resending are `Unknown` instead.

    `sleep` takes seconds, `random` is uniform on [0, 1): both are for the pauses between attempts.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
    ) -> None:
        if prefix:
            check_key(prefix)
        self._prefix = f"{prefix}/" if prefix else ""
        self._client = S3Client(bucket, sleep, random)

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """See `ObjectStore.get`."""
        condition = {} if if_changed_from is None else {"IfNoneMatch": if_changed_from}
        answer = await self._client.read("get_object", Key=self._key(key), **condition)
        match answer.status:
            case HTTPStatus.NOT_MODIFIED:
                return Unchanged(answer.now_ms)
            case HTTPStatus.NOT_FOUND:
                return Missing(answer.now_ms)
        return _found(answer)

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """See `ObjectStore.get_range`."""
        check_range(start, length)
        span = f"bytes={start}-{start + length - 1}"
        answer = await self._client.read("get_object", Key=self._key(key), Range=span)
        if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:  # past the end, where S3 tells no version
            answer = await self._client.read("head_object", Key=self._key(key))
        return Missing(answer.now_ms) if answer.status == HTTPStatus.NOT_FOUND else _found(answer)

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """See `ObjectStore.put`."""
        answer = await self._client.write("put_object", Key=self._key(key), Body=body, **_headers(when))
        if isinstance(answer, Unknown):
            return answer
        match answer.status:
            case HTTPStatus.OK if "ETag" in answer.fields:
                return Applied(Version(answer.fields["ETag"]), answer.now_ms)
            case HTTPStatus.OK:
                return Unknown(f"{key!r} was written, and the store told no version")
            case HTTPStatus.PRECONDITION_FAILED | HTTPStatus.NOT_MODIFIED:
                return Refused(None, answer.now_ms)
            case HTTPStatus.NOT_FOUND if isinstance(when, Matches):  # how S3 says that there is nothing to match
                return Refused(None, answer.now_ms)
        raise StoreError(f"{key!r} was answered {answer.status}, which a put never is")

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """See `ObjectStore.delete`."""
        condition = check_deletable(when)
        answer = await self._client.write("delete_object", Key=self._key(key), **_headers(condition))
        if isinstance(answer, Unknown):
            return answer
        gone = condition.version if isinstance(condition, Matches) else Version("")
        match answer.status:
            case HTTPStatus.NO_CONTENT | HTTPStatus.OK:
                return Applied(gone, answer.now_ms)
            case HTTPStatus.NOT_FOUND if isinstance(condition, Anything):  # S3 itself answers 204
                return Applied(gone, answer.now_ms)
        return Refused(None, answer.now_ms)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """See `ObjectStore.list`. Objects whose names are no keys, such as `folder/`, are passed over."""
        resume = {} if after is None else {"ContinuationToken": after}
        answer = await self._client.read("list_objects_v2", Prefix=self._prefix + prefix, MaxKeys=PAGE_SIZE, **resume)
        if answer.status != HTTPStatus.OK:
            raise StoreError(f"a listing was answered {answer.status}")
        listed = (
            Listed(
                key=entry["Key"].removeprefix(self._prefix),
                version=Version(entry["ETag"]),
                size=entry["Size"],
                written_ms=_milliseconds(entry["LastModified"]),
            )
            for entry in answer.fields.get("Contents", ())
        )
        cursor = answer.fields.get("NextContinuationToken")
        return Page(
            tuple(entry for entry in listed if is_key(entry.key)), Cursor(cursor) if cursor else None, answer.now_ms
        )

    async def close(self) -> None:
        """Closes the connections; another call would open new ones."""
        await self._client.close()

    def _key(self, key: str) -> str:
        check_key(key)
        check_key(self._prefix + key)  # the limit is on the whole
        return self._prefix + key


def _headers(when: When) -> dict[str, str]:
    match when:
        case Absent():
            return {"IfNoneMatch": "*"}
        case Matches(version):
            return {"IfMatch": version}
        case Anything():
            return {}


def _found(answer: Answer) -> Found:
    fields = answer.fields
    if "ETag" not in fields or "LastModified" not in fields:
        raise StoreError("the store told no version, or no time, of an object")
    return Found(fields.get("Body", b""), Version(fields["ETag"]), _milliseconds(fields["LastModified"]), answer.now_ms)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000)
