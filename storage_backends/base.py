"""The interface to object stores: six calls and `close`, three conditions, three outcomes (docs/design/store.md).

Code above this package uses object stores through `ObjectStore` only. A backend translates a vendor's statuses into the
outcomes below, retries what the store refused for the moment and reads that got no answer, and does nothing else. A
wrapper of a store (counting, delaying, deadlines, faults) is an `ObjectStore` too.
"""

from collections.abc import Mapping, Sequence
from typing import NewType, Protocol

from storage_backends.lazy_dataclass import dataclass

Version = NewType("Version", str)
"""Opaque token of one state of one object (an ETag, a generation). Compared for equality, never built by a caller."""

Cursor = NewType("Cursor", str)
"""Opaque place in a listing, good for the store and prefix that it came from."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Condition of a write: no object has this key."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Condition of a write or deletion: the object's current version is this one. It does not hold for a missing
    object."""

    version: Version


@dataclass(frozen=True, slots=True)
class Anything:
    """Condition of a write or deletion that always holds."""


ABSENT = Absent()
"""The only value of `Absent` that anybody needs."""

ANY = Anything()
"""The only value of `Anything` that anybody needs."""

When = Absent | Matches | Anything
"""The condition of a write."""


@dataclass(frozen=True, slots=True)
class Applied:
    """Outcome of a write or deletion: it was applied. `version` is that of the object written; for a deletion, that of
    the object that was deleted, or empty where there was none or the store did not return it. `now_ms` is the store's
    time in milliseconds since 1970."""

    version: Version
    now_ms: int


@dataclass(frozen=True, slots=True)
class PreconditionFailed:
    """Outcome of a write or deletion: the condition did not hold, and this call changed nothing. An earlier copy of the
    same write may have been applied (a proxy between us and the store may resend), so a caller that gets this reads the
    object and compares ids.

    `version` is the object's current version; None if there is no object, or if the store did not return it. `now_ms`
    is the store's time in milliseconds since 1970.
    """

    version: Version | None
    now_ms: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """Outcome of a write or deletion: it may have been applied, or may be later, or never. For example, the request was
    sent, and then came a timeout, a lost connection or a status from 500 on. `reason` is a text for messages."""

    reason: str


Outcome = Applied | PreconditionFailed | Unknown
"""What became of a write."""


@dataclass(frozen=True, slots=True)
class Found:
    """Result of a read: an object as it was when the store answered. `body` is all of it or, after `get_range`, a part;
    `version` is that of the object; `written_ms` and `now_ms` are the store's times of the write and of the answer, in
    milliseconds since 1970."""

    body: bytes
    version: Version
    written_ms: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Result of a read: the object still has the version that the caller already has. `now_ms` is the store's time in
    milliseconds since 1970."""

    now_ms: int


@dataclass(frozen=True, slots=True)
class Missing:
    """Result of a read: no object has this key. `now_ms` is the store's time in milliseconds since 1970."""

    now_ms: int


@dataclass(frozen=True, slots=True)
class Listed:
    """One object in a listing: key, version, size in bytes, and the store's time of the write in milliseconds since
    1970."""

    key: str
    version: Version
    size: int
    written_ms: int


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a listing. `after` is the cursor for the next page, None after the last: a page without entries need
    not be the last. `in_order` means that the entries are sorted by key, so that a caller that needs only the first
    keys may stop early (docs/design/store.md#rule-4); without it their order means nothing. `others` are names of what
    is no object of the store, and no other call takes: names that are not valid keys, such as `folder/`, and links or
    devices on a local disk."""

    entries: Sequence[Listed]
    after: Cursor | None
    now_ms: int
    in_order: bool = False
    others: Sequence[str] = ()


class StoreError(Exception):
    """A call of a store failed. A write of an `ObjectStore` that raises this was definitely not applied."""


class StoreUnavailable(StoreError):
    """A read failed, or a write was not applied, for a reason that may pass: throttling, timeout, connection, a status
    from 500 on. The request of another service (a queue, a topic) that raises this may have been applied.

    `retry_after_s` is the pause in seconds that the store requests before a retry; 0 if it requests none.
    """

    retry_after_s: float = 0.0


class DeadlinePassed(StoreUnavailable):
    """A call was not sent, or its answer not awaited any longer, because the deadline of its request has passed."""


class StoreDenied(StoreError):
    """The store refused the credentials, they lack a permission, or there are none that may be sent; on a local disk,
    the process has no right to the file. Another service raises it also for other statuses below 500, such as 404,
    and for a URL that must not be called."""


class InvalidContent(StoreDenied):
    """A service denied a request because of its content, not because of the sender."""


class InvalidKey(StoreError):
    """The key of an object is not valid for the store: for example it is empty or too long, has an empty, `.` or `..`
    segment, or a control character; on a local disk also if a folder, a file or a link is in the way."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """Result of the deletion of many objects. `left` has the keys of objects that may still exist, each with the
    reason: `Unknown` if the object may be deleted, a `StoreError` if it was not. All other objects are deleted.
    `now_ms` is the store's time, None without a response."""

    left: Mapping[str, Unknown | StoreError]
    now_ms: int | None


MAX_DELETED = 1_000
"""Keys in one call of `delete_many`: what S3 takes in one request."""


class ObjectStore(Protocol):
    """The interface of object stores: a bucket, or a part of one. Keys are `/`-separated, with no leading slash.

    Reads raise `StoreUnavailable` where a store did not answer, and other `StoreError`s where a retry would not help.
    Writes and deletions return an outcome, and raise `StoreError` only if they were not applied. The caller must
    resolve `Unknown` by reading and must not guess. Throttling and responses that mean "try again" (S3 409
    ConditionalRequestConflict, 503 SlowDown) are retried inside, with full-jitter backoff, a bounded number of times,
    or until the caller cancels.
    """

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """Returns the whole object, `Unchanged` if its version is still `if_changed_from`, or `Missing` if no object
        has the key."""
        ...

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """Returns the bytes from `start` up to `start + length` (fewer at the end of the object, none past it), with
        the version of the whole; `Missing` if no object has the key. Raises ValueError for a negative start or a length
        under 1."""
        ...

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """Writes the whole object atomically if `when` holds, and returns the outcome."""
        ...

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Removes the object if `when` holds, and returns the outcome (`ABSENT` makes no sense and raises ValueError).
        Deleting what is missing is `Applied` under `ANY` and `PreconditionFailed(None)` under `Matches`."""
        ...

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Removes at most 1,000 objects (ValueError), whatever their versions, in as few requests as the store allows.
        What is missing counts as deleted. Raises `InvalidKey` before anything is sent, and may raise another
        `StoreError` if nothing was deleted; other failures are in the result, for each key. The caller may repeat a
        deletion that is `Unknown` only if no new object is written with that key."""
        ...

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """Returns a page of at most 1,000 objects whose keys start with `prefix`: the first page, or the one after the
        page that had the cursor `after`."""
        ...

    async def close(self) -> None:
        """Closes the connections to the store, if it has any. Idempotent."""
        ...
