"""A number moved by compare-and-swap: what a lost update shows up in."""

from storage_backends import Applied, Found, Matches, ObjectStore, PreconditionFailed


async def increment(store: ObjectStore, key: str) -> None:
    """Adds one."""
    for _ in range(10_000):
        current = await store.get(key)
        assert isinstance(current, Found)
        outcome = await store.put(key, b"%d" % (int(current.body) + 1), Matches(current.version))
        if isinstance(outcome, Applied):
            return
        assert isinstance(outcome, PreconditionFailed)
    raise AssertionError("other writers were always faster")
