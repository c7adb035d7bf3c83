"""Probes whether a store supports conditional PUTs, which every protocol needs, and conditional DELETEs, which are
optional."""

from storage_backends.base import (
    ABSENT,
    ANY,
    Applied,
    Found,
    Matches,
    ObjectStore,
    Outcome,
    PreconditionFailed,
    StoreUnavailable,
    Unknown,
    Version,
)
from storage_backends.lazy_dataclass import dataclass

FOLDER = "_probe"
"""Reserved for probe objects. After a crash some may be left; they may be deleted at any time."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a probe. `honoured` is whether the store honours the conditions of PUTs, which is also the truth
    value of the verdict; `reason` is a text for messages, which names the first condition that the store did not
    honour, or states that it honours conditions.

    `conditional_delete` is whether it honours those of DELETEs, too; without that the catalog works and makes no
    conditional deletes. It is True, untested, if `honoured` is False.
    """

    honoured: bool
    reason: str
    conditional_delete: bool = True

    def __bool__(self) -> bool:
        return self.honoured


async def honours_conditions(store: ObjectStore, nonce: str) -> Verdict:
    """Writes an object into `_probe/` under conditions, and another one, both named by the nonce, which must be unique,
    under a condition that does not hold; then deletes what is there. Returns whether the store applied writes with
    conditions that held, and refused writes and deletions with conditions that did not hold.

    A store that accepts the conditions of a PUT and ignores them loses updates silently, so `arco serve` does not write
    to it. A store that ignores those of a DELETE, as MinIO does, only lacks `conditional_delete`. Raises `StoreError`
    if the store cannot be probed.
    """
    key, missing = f"{FOLDER}/{nonce}.present", f"{FOLDER}/{nonce}.missing"
    try:
        return await _judge(store, key, missing, nonce)
    finally:
        await store.delete(key, ANY)
        await store.delete(missing, ANY)


async def _judge(store: ObjectStore, key: str, missing: str, nonce: str) -> Verdict:
    """Tests by writes under `key` and `missing`, and a deletion, whether a store honours conditions, and returns the
    verdict; the objects stay. Raises `StoreUnavailable` if the outcome of one is unknown, and the `StoreError` of a
    call that fails."""
    first = _known(await store.put(key, f"{nonce} 1".encode(), ABSENT))
    if not isinstance(first, Applied):
        return Verdict(False, "the store refuses to create an object that does not exist")
    second = _known(await store.put(key, f"{nonce} 2".encode(), Matches(first.version)))
    if not isinstance(second, Applied):
        return Verdict(False, "the store refuses to replace an object by its current version")
    stale = Matches(first.version)
    if isinstance(_known(await store.put(key, f"{nonce} 3".encode(), ABSENT)), Applied):
        return Verdict(False, "the store ignores If-None-Match: it replaced an object that exists")
    if isinstance(_known(await store.put(key, f"{nonce} 4".encode(), stale)), Applied):
        return Verdict(False, "the store ignores If-Match: it replaced an object of another version")
    if isinstance(_known(await store.put(missing, f"{nonce} 5".encode(), stale)), Applied):
        return Verdict(False, "the store ignores If-Match: it created an object that was missing")
    if not await _still_has(store, key, second.version):
        return Verdict(False, "the store refused a write, but applied it")
    kept = not isinstance(_known(await store.delete(key, stale)), Applied)
    return Verdict(
        True, "the store honours conditions", conditional_delete=kept and await _still_has(store, key, second.version)
    )


async def _still_has(store: ObjectStore, key: str, version: Version) -> bool:
    """Whether the store has an object at a key with exactly this version."""
    found = await store.get(key)
    return isinstance(found, Found) and found.version == version


def _known(outcome: Outcome) -> Applied | PreconditionFailed:
    """Returns the outcome of a write of the probe. Raises `StoreUnavailable` if it is `Unknown`."""
    if isinstance(outcome, Unknown):
        raise StoreUnavailable(
            f"the probe for conditional writes failed: the outcome of a write or deletion is unknown: {outcome.reason}"
        )
    return outcome
