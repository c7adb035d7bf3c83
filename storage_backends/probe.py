"""Asks a store whether it keeps the conditions that every protocol rests on, and one that none needs."""

from dataclasses import dataclass

from storage_backends.base import (
    ABSENT,
    ANY,
    Applied,
    Found,
    Matches,
    ObjectStore,
    Outcome,
    Refused,
    StoreUnavailable,
    Unknown,
    Version,
)

FOLDER = "_probe"
"""Where a store is tried. What is left there after a crash may be deleted at any time."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether conditional writes hold, and in words what the store did if they do not. True or false as itself.

    `conditional_delete` is a capability: a store without it is served all the same, and nothing is deleted under a
    condition there.
    """

    honoured: bool
    reason: str
    conditional_delete: bool = True

    def __bool__(self) -> bool:
        return self.honoured


async def honours_conditions(store: ObjectStore, nonce: str) -> Verdict:
    """Writes under `_probe/{nonce}`, expects what must be refused to be refused, and cleans up.

    A store that takes the conditions of a PUT and ignores them loses updates without a word: `arco serve` refuses to
    write to it. One that ignores those of a DELETE, as MinIO does, lacks a capability.
    `nonce` must be fresh. Raises `StoreError` if the store does not let itself be asked: no verdict then.
    """
    key, missing = f"{FOLDER}/{nonce}/present", f"{FOLDER}/{nonce}/missing"
    try:
        return await _judge(store, key, missing, nonce)
    finally:
        await store.delete(key, ANY)
        await store.delete(missing, ANY)


async def _judge(store: ObjectStore, key: str, missing: str, nonce: str) -> Verdict:
    first = _known(await store.put(key, f"{nonce} 1".encode(), ABSENT))
    if not isinstance(first, Applied):
        return Verdict(False, "a first write was refused")
    second = _known(await store.put(key, f"{nonce} 2".encode(), Matches(first.version)))
    if not isinstance(second, Applied):
        return Verdict(False, "a write with the right version was refused")
    stale = Matches(first.version)
    if isinstance(_known(await store.put(key, f"{nonce} 3".encode(), ABSENT)), Applied):
        return Verdict(False, "it creates what exists")
    if isinstance(_known(await store.put(key, f"{nonce} 4".encode(), stale)), Applied):
        return Verdict(False, "it replaces an object whose version is another")
    if isinstance(_known(await store.put(missing, f"{nonce} 5".encode(), stale)), Applied):
        return Verdict(False, "it replaces an object that is missing")
    if not await _still_has(store, key, second.version):
        return Verdict(False, "it makes changes that it says it refused")
    kept = not isinstance(_known(await store.delete(key, stale)), Applied)
    return Verdict(
        True, "it honours conditions", conditional_delete=kept and await _still_has(store, key, second.version)
    )


async def _still_has(store: ObjectStore, key: str, version: Version) -> bool:
    found = await store.get(key)
    return isinstance(found, Found) and found.version == version


def _known(outcome: Outcome) -> Applied | Refused:
    if isinstance(outcome, Unknown):
        raise StoreUnavailable(f"a probe has no known outcome: {outcome.reason}")
    return outcome
