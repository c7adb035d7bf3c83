"""A store in memory that asks a plan's policies before each call, as S3 does."""

from collections.abc import Callable, Sequence

from storage_backends import ANY, Cursor, Deleted, Found, Missing, Outcome, Page, StoreDenied, Unchanged, Version, When
from storage_backends.memory import MemoryStore

Allows = Callable[[str, str, str | None], bool]
"""Whether an action on an object of this key, or on the bucket (an empty key), is allowed, with this prefix."""


class JudgedStore(MemoryStore):
    """`allows` judges for whoever calls at the time."""

    allows: Allows = staticmethod(lambda action, key, prefix: False)

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        """Reads; what is missing is told from what is forbidden only to who may list."""
        self._judge("s3:GetObject", key)
        answer = await super().get(key, if_changed_from)
        if isinstance(answer, Missing):
            self._judge("s3:ListBucket")
        return answer

    async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
        """The same."""
        self._judge("s3:GetObject", key)
        answer = await super().get_range(key, start, length)
        if isinstance(answer, Missing):
            self._judge("s3:ListBucket")
        return answer

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        """A conditional write needs the right to read, too."""
        self._judge("s3:PutObject", key)
        return await super().put(key, body, when)

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        """Deletes."""
        self._judge("s3:DeleteObject", key)
        return await super().delete(key, when)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        """Each by itself."""
        for key in keys:
            self._judge("s3:DeleteObject", key)
        return await super().delete_many(keys)

    async def list(self, prefix: str, after: Cursor | None = None) -> Page:
        """Lists."""
        self._judge("s3:ListBucket", prefix=prefix)
        return await super().list(prefix, after)

    def _judge(self, action: str, key: str = "", prefix: str | None = None) -> None:
        if not self.allows(action, key, prefix):
            raise StoreDenied(f"not allowed: {action} {key or prefix}")
