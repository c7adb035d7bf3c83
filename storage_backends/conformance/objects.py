"""Conformance checks of what one caller at a time sees of a store: conditions, reads, ranges, listings, deletions and
names."""

import asyncio

from storage_backends.base import (
    ABSENT,
    ANY,
    Applied,
    Found,
    Listed,
    Matches,
    Missing,
    ObjectStore,
)
from storage_backends.conformance.check import Examination, Fault, Finding, applied, lacking, ok, refused, together
from storage_backends.validation import PAGE_SIZE

ODD_NAMES = ("a b", "100%", "%2F", "a+b", "#?&=", "naïve/日本語", "quote'\"", "~!*()")
LARGE_BYTES = 1 << 20
MAX_PAGES = 20
WRITTEN_AT_ONCE = 32


async def absence(examination: Examination) -> Finding:
    """Verifies that the store finds no object at a key that was never written. Raises `Fault` if it does."""
    if not isinstance(await examination.store.get(examination.key("never")), Missing):
        raise Fault("an object that was never written was found")
    return ok("reported as missing")


async def creation(examination: Examination) -> Finding:
    """Creates an object, and verifies that a read returns the same body and version. Raises `Fault` if not."""
    key = examination.key("create")
    version = await examination.write(key, b"first", ABSENT)
    if (await examination.require(key, b"first")).version != version:
        raise Fault("a read returns another version than the write did")
    return ok("applied, and read back")


async def second_creation(examination: Examination) -> Finding:
    """Creates an object twice, and verifies that the second is refused and changes nothing. Raises `Fault` if not."""
    key = examination.key("create-again")
    await examination.write(key, b"first", ABSENT)
    refused(await examination.store.put(key, b"second", ABSENT), "a second creation")
    await examination.require(key, b"first")
    return ok("refused")


async def current_replacement(examination: Examination) -> Finding:
    """Verifies that a write with the object's current version as condition is applied, and makes another version.
    Raises `Fault` if not."""
    key = examination.key("replace")
    first = await examination.write(key, b"one", ABSENT)
    second = await examination.write(key, b"two", Matches(first))
    if first == second:
        raise Fault("two writes with different bodies made the same version")
    await examination.require(key, b"two")
    return ok("applied")


async def stale_replacement(examination: Examination) -> Finding:
    """Verifies that a write with a version that was replaced as condition is refused, and changes nothing. Raises
    `Fault` if not."""
    key = examination.key("replace-stale")
    stale = await examination.write(key, b"one", ABSENT)
    await examination.write(key, b"two", Matches(stale))
    refused(await examination.store.put(key, b"three", Matches(stale)), "a write on a stale version")
    await examination.require(key, b"two")
    return ok("refused")


async def missing_replacement(examination: Examination) -> Finding:
    """Verifies that a write with a version as condition is refused, and creates nothing, where no object is. Raises
    `Fault` if not."""
    version = await examination.write(examination.key("replace-other"), b"one", ABSENT)
    key = examination.key("replace-missing")
    refused(await examination.store.put(key, b"two", Matches(version)), "a write on a version of a missing object")
    if not isinstance(await examination.store.get(key), Missing):
        raise Fault("a refused write made an object")
    return ok("refused")


async def unchanged_read(examination: Examination) -> Finding:
    """Checks a read that sends the version that the caller has. Raises `Fault` unless it returns what was written
    since, or, if nothing was, finds the object with that version. In the latter case the finding is whether the store
    leaves out the body, which is an optional capability."""
    key = examination.key("unchanged")
    held = await examination.write(key, b"one", ABSENT)
    unchanged = await examination.store.get(key, held)
    if isinstance(unchanged, Missing) or (isinstance(unchanged, Found) and unchanged.version != held):
        raise Fault("a read of an unchanged object that sends its version finds no object, or another version")
    await examination.write(key, b"two", Matches(held))
    changed = await examination.store.get(key, held)
    if not isinstance(changed, Found) or changed.body != b"two":
        raise Fault("a read of a changed object that sends its old version does not return what was written since")
    if isinstance(unchanged, Found):
        return lacking("the object is sent again: reads cost more")
    return ok("answered without a body")


async def ranges(examination: Examination) -> Finding:
    """Verifies that a part of an object is read exactly, with the object's version: in the object, cut at its end, and
    empty after it. Raises `Fault` if not."""
    key = examination.key("range")
    version = await examination.write(key, b"0123456789", ABSENT)
    for start, length, expected in ((3, 4, b"3456"), (8, 100, b"89"), (10, 1, b"")):
        part = await examination.store.get_range(key, start, length)
        if not isinstance(part, Found) or part.body != expected:
            raise Fault(f"a read of {length} bytes from byte {start} of 10 does not return exactly what is there")
        if part.version != version:
            raise Fault("a read of a part of an object returns another version than the write did")
    return ok("exact, and cut at the end")


async def large_body(examination: Examination) -> Finding:
    """Writes a body of 1 MiB, and verifies that a read returns it. Raises `Fault` if not."""
    key, body = examination.key("large"), bytes(range(256)) * (LARGE_BYTES // 256)
    await examination.write(key, body, ABSENT)
    await examination.require(key, body)
    return ok("whole")


async def odd_names(examination: Examination) -> Finding:
    """Verifies that keys with characters that must be encoded and signed are written, read and listed as they are.
    Raises `Fault` if not."""
    keys = [examination.key(f"names/{name}") for name in ODD_NAMES]
    for key in keys:
        await examination.write(key, key.encode(), ABSENT)
        await examination.require(key, key.encode())
    if {entry.key for entry in await listing(examination.store, examination.key("names/"))} != set(keys):
        raise Fault("a listing returns other names than those that were written, with blanks, %, quotes and the like")
    return ok("kept")


async def listed_objects(examination: Examination) -> Finding:
    """Verifies that a listing has exactly the objects under its prefix, with their versions and sizes, and after a
    deletion exactly the keys that are left. Raises `Fault` if not."""
    keys = [examination.key(f"list/{name}") for name in ("a", "b/c", "d")]
    versions = {key: await examination.write(key, b"1234", ABSENT) for key in keys}
    entries = await listing(examination.store, examination.key("list/"))
    if {entry.key: entry.version for entry in entries} != versions:
        raise Fault("a listing returns other objects, or other versions, than those that were written")
    if any(entry.size != 4 for entry in entries):
        raise Fault("a listing returns a wrong size of an object")
    await examination.store.delete(keys[0], ANY)
    if {entry.key for entry in await listing(examination.store, examination.key("list/"))} != set(keys[1:]):
        raise Fault("a listing after a deletion does not return exactly the objects that are left")
    return ok("complete and current")


async def listing_order(examination: Examination) -> Finding:
    """Checks whether a listing is sorted by key, which is an optional capability: without it, the catalog's search for
    background tasks that are due must list all tasks that wait."""
    for name in ("c", "a", "b/z", "b-y"):
        await examination.write(examination.key(f"order/{name}"), b"", ABSENT)
    keys = [entry.key for entry in await listing(examination.store, examination.key("order/"))]
    return ok("sorted") if keys == sorted(keys) else lacking("in no order")


async def listing_pages(examination: Examination) -> Finding:
    """Writes more objects than a page of a listing has, and verifies that the pages together have each object once.
    Raises `Fault` if not."""
    keys = {examination.key(f"pages/{number:04}") for number in range(PAGE_SIZE + 1)}
    limit = asyncio.Semaphore(WRITTEN_AT_ONCE)

    async def create(key: str) -> None:
        async with limit:
            await examination.write(key, b"", ABSENT)

    await together(create(key) for key in keys)
    entries = await listing(examination.store, examination.key("pages/"))
    if len(entries) != len(keys) or {entry.key for entry in entries} != keys:
        raise Fault(
            f"a listing returns {len(entries):,} objects, expected the {len(keys):,} that were written, and each once"
        )
    return ok(f"{len(keys):,} objects, each once")


async def deletion(examination: Examination) -> Finding:
    """Deletes an object twice, and verifies that both are applied and that the object is then missing. Raises `Fault`
    if not."""
    key = examination.key("delete")
    await examination.write(key, b"one", ABSENT)
    for _ in range(2):
        applied(await examination.store.delete(key, ANY), "a deletion")
    if not isinstance(await examination.store.get(key), Missing):
        raise Fault("an object that was deleted was found")
    return ok("applied, also where nothing is")


async def version_after_deletion(examination: Examination) -> Finding:
    """Verifies that a write with the version of a deleted object as condition is refused, also if there is a new object
    with the same key. Raises `Fault` if not."""
    key = examination.key("recreated")
    version = await examination.write(key, b"one", ABSENT)
    await examination.store.delete(key, ANY)
    refused(await examination.store.put(key, b"two", Matches(version)), "a write on a version that was deleted")
    await examination.write(key, b"another", ABSENT)
    refused(await examination.store.put(key, b"late", Matches(version)), "a write on a version that was deleted")
    await examination.require(key, b"another")
    return ok("never matches again")


async def conditional_deletion(examination: Examination) -> Finding:
    """Checks whether a deletion whose condition does not hold is refused, which is an optional capability: for a stale
    version of an object, and for a missing object. Raises `Fault` if a refused one changes the object, or one whose
    condition holds is not applied."""
    key = examination.key("delete-if")
    stale = await examination.write(key, b"one", ABSENT)
    current = await examination.write(key, b"two", Matches(stale))
    outcome = await examination.store.delete(key, Matches(stale))
    if isinstance(outcome, Applied):
        return lacking("its condition is ignored: dropped tables leave more to clear away")
    refused(outcome, "a deletion with a stale version")
    await examination.require(key, b"two")
    applied(await examination.store.delete(key, Matches(current)), "a deletion of the current version")
    outcome = await examination.store.delete(key, Matches(current))
    if isinstance(outcome, Applied):
        return lacking("refused if stale, not where nothing is")
    refused(outcome, "a deletion of a missing object")
    return ok("refused if stale or missing")


async def listing(store: ObjectStore, prefix: str) -> list[Listed]:
    """Lists all objects whose keys start with `prefix`, and returns them without bodies. Raises `Fault` if the listing
    does not end within 20 pages."""
    entries: list[Listed] = []
    after = None
    for _ in range(MAX_PAGES):
        page = await store.list(prefix, after)
        entries += page.entries
        after = page.after
        if after is None:
            return entries
    raise Fault(f"a listing does not end within {MAX_PAGES} pages")
