"""Deletes objects in batches: each batch by one request, with an outcome for each key in the response."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from storage_backends.base import Deleted, Outcome, StoreDenied, StoreError, StoreUnavailable, Unknown
from storage_backends.bulk import delete_each
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.client import Client
from storage_backends.wire.exchange import Ambiguous


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The result of a batch of deletions: `failures` has the keys of objects that were not deleted, with the errors
    (`Ambiguous`: perhaps deleted). `now_ms` is the store's time in milliseconds since 1970."""

    failures: Mapping[str, StoreError]
    now_ms: int


@dataclass(frozen=True, slots=True)
class Batches:
    """Deletes objects of one store: `size` keys at a time by `send`, which raises `StoreError` if nothing was deleted;
    keys for which the store was too busy are sent again. Where the store does not support or cannot read such a
    request, deletes the objects by `delete`, several at a time."""

    client: Client
    size: int
    send: Callable[[Sequence[str]], Awaitable[BatchAnswer | Unknown]]
    delete: Callable[[str], Awaitable[Outcome]]

    async def run(self, keys: Sequence[str]) -> Deleted:
        """Deletes the objects with these keys, one batch after the other. Returns the keys of objects that may still
        exist, with the reasons, and the store's time of the last response that has one. A batch that failed does not
        stop the next."""
        left: dict[str, Unknown | StoreError] = {}
        now_ms: int | None = None
        for start in range(0, len(keys), self.size):
            deleted = await self._batch(keys[start : start + self.size])
            left.update(deleted.left)
            now_ms = deleted.now_ms or now_ms
        return Deleted(left, now_ms)

    async def _batch(self, keys: Sequence[str]) -> Deleted:
        """Deletes a batch of objects with one request, and resends the keys for which the store was too busy, after
        pauses. Returns the keys of objects that may still exist, with the reasons. `StoreUnavailable`, `StoreDenied` or
        `Unknown` of the request is the reason for all keys that it has, and is not raised; after any other
        `StoreError`, as of a store that takes no such request, deletes each by itself, `AT_ONCE` at a time."""
        left: dict[str, Unknown | StoreError] = {}
        now_ms: int | None = None
        for pause_s in self.client.pauses():
            await self.client.pause(pause_s)
            try:
                answer = await self.send(keys)
            except (StoreUnavailable, StoreDenied) as error:
                return Deleted({**left, **dict.fromkeys(keys, error)}, now_ms)
            except StoreError:  # the store knows no batches, or cannot read this one: its keys by themselves may pass
                each = await delete_each(keys, self.delete)
                return Deleted({**left, **each.left}, each.now_ms or now_ms)
            if isinstance(answer, Unknown):
                return Deleted({**left, **dict.fromkeys(keys, answer)}, now_ms)
            now_ms = answer.now_ms
            for key in keys:
                left.pop(key, None)
            left.update({key: _outcome_of(error) for key, error in answer.failures.items()})
            keys = [key for key, error in left.items() if isinstance(error, StoreUnavailable)]
            if not keys:
                break
        return Deleted(left, now_ms)


def _outcome_of(error: StoreError) -> Unknown | StoreError:
    """Returns `Unknown` for `Ambiguous`, since the object may be deleted; any other error of a deletion as it is."""
    return Unknown(str(error)) if isinstance(error, Ambiguous) else error
