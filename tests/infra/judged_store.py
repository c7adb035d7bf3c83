"""A store in memory that checks each call by a plan's policies, as S3 does."""

from collections.abc import Callable, Sequence

from storage_backends import ANY, Cursor, Deleted, Found, Missing, Outcome, Page, StoreDenied, Unchanged, Version, When
from storage_backends.memory import MemoryStore

Allows = Callable[[str, str, str | None], bool]
"""Whether an action on an object of this key, or on the bucket (an empty key), is allowed, with this prefix."""


class JudgedStore(MemoryStore):
    """A store whose `allows` decides about each call of the present caller."""

    allows: Allows = staticmethod(lambda action, key, prefix: False)

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """Read an object. A missing one is reported as denied unless the caller may list the bucket."""
        self._judge("s3:GetObject", key)
        answer = await super().get(key, if_changed_from)
        if isinstance(answer, Missing):
            self._judge("s3:ListBucket")
        return answer

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """Read a part of an object, with the rights that `get` needs."""
        self._judge("s3:GetObject", key)
        answer = await super().get_range(key, start, length)
        if isinstance(answer, Missing):
            self._judge("s3:ListBucket")
        return answer

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """Write an object. The right to write is enough."""
        self._judge("s3:PutObject", key)
        return await super().put(key, body, when)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Delete an object."""
        self._judge("s3:DeleteObject", key)
        return await super().delete(key, when)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Delete objects; each needs the right."""
        for key in keys:
            self._judge("s3:DeleteObject", key)
        return await super().delete_many(keys)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """List a prefix, with the right to list the bucket with this prefix."""
        self._judge("s3:ListBucket", prefix=prefix)
        return await super().list(prefix, after)

    def _judge(self, action: str, key: str = "", prefix: str | None = None) -> None:
        if not self.allows(action, key, prefix):
            raise StoreDenied(f"not allowed: {action} {key or prefix}")
