"""One process's `ObjectStore`: what the code under test sees of the simulated world."""

from collections.abc import Sequence

from arco_catalog.protocol.concurrency import gather
from storage_backends import (
    ANY,
    Applied,
    Cursor,
    Deleted,
    Found,
    Missing,
    Outcome,
    Page,
    StoreError,
    Unchanged,
    Unknown,
    Version,
    When,
)
from storage_backends.bulk import check_number
from storage_backends.validation import check_deletable, check_key, check_range
from tests.simulation.bucket import Bucket
from tests.simulation.network import Link


class SimulatedStore:
    """A store at the other end of a faulty line. Every call takes effect at one instant between question and answer."""

    def __init__(self, link: Link, bucket: Bucket) -> None:
        self._link = link
        self._bucket = bucket

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """See `ObjectStore.get`."""
        check_key(key)
        return await self._link.call("get", key, None, lambda: self._bucket.get(key, if_changed_from))

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """See `ObjectStore.get_range`."""
        check_key(key)
        check_range(start, length)
        return await self._link.call("get_range", key, None, lambda: self._bucket.get_range(key, start, length))

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """See `ObjectStore.put`."""
        check_key(key)
        return await self._link.call("put", key, when, lambda: self._bucket.put(key, body, when))

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """See `ObjectStore.delete`."""
        check_key(key)
        check_deletable(when)
        return await self._link.call("delete", key, when, lambda: self._bucket.delete(key, when))

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """See `ObjectStore.delete_many`. No step of its own: each key lands, or does not, by itself."""
        check_number(keys)
        for key in keys:
            check_key(key)
        left: dict[str, Unknown | StoreError] = {}

        async def delete(key: str) -> int | None:
            try:
                outcome = await self.delete(key)
            except StoreError as error:
                left[key] = error
                return None
            if isinstance(outcome, Applied):
                return outcome.now_ms
            left[key] = Unknown(f"simulated: {outcome}")  # also an echo, which a deletion of any version cannot be
            return None

        told = await gather(*(delete(key) for key in keys))
        return Deleted(left, max((each for each in told if each is not None), default=None))

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """See `ObjectStore.list`."""
        return await self._link.call("list", prefix, None, lambda: self._bucket.list(prefix, after))

    async def close(self) -> None:
        """Does nothing: there is no connection to release."""
