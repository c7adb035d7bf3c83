"""Describes in a few words how much a registry holds, so that an operator notices a mistyped store."""

from collections.abc import Sequence

from arco_catalog.state.access import State
from arco_catalog.state.paths import outermost_root
from arco_catalog.state.realm import catalogs
from storage_backends import Cursor, ObjectStore

NEW = "New catalog: it has no commit yet"
MAX_PAGES, MAX_NAMES = 5, 10
"""How many pages of 1,000 objects the search for other catalogs of a store reads, and how many names it prints."""
RELATIONS = "relation\n"
"""Prefix of the index keys of everything that shares the names of tables: tables, views, generic tables, models."""


async def describe_contents(state: State, *, of_realm: bool) -> str:
    """Returns a sentence for an operator, without a full stop: how many catalogs the registry of a realm has if
    `of_realm`, else how many tables, views and other relations that of a catalog has. It counts segments instead if the
    index has any, and does not read them. For a registry without a commit it names the other catalogs of the store.
    Raises `StoreError`."""
    head = await state.head()
    if head.version is None:
        return NEW + describe_siblings(await sibling_catalogs(state.store, state.paths.root))
    if head.index.directory.refs:
        return f"It has so many names that their index takes {_count(len(head.index.directory.refs), 'segment')}"
    prefix, noun = (catalogs(), "catalog") if of_realm else (RELATIONS, "table or view")
    return f"It has {_count(sum(1 for _ in head.index.scan(prefix)), noun)}"


async def sibling_catalogs(store: ObjectStore, name: str) -> Sequence[str]:
    """Returns the names of the catalogs at the root of a store other than `name`, sorted, as far as the first
    `MAX_PAGES` pages of objects show them. Raises `StoreError`."""
    found: set[str] = set()
    after: Cursor | None = None
    for _ in range(MAX_PAGES):
        page = await store.list("", after)
        found |= {root for each in page.entries if (root := outermost_root(each.key)) is not None}
        after = page.after
        if after is None:
            break
    return sorted(each for each in found if "/" not in each and each != name)


def describe_siblings(names: Sequence[str]) -> str:
    """Returns text to append to a sentence: a full stop, and a sentence that names at most `MAX_NAMES` other catalogs.
    Returns an empty text for no names."""
    if not names:
        return ""
    listed = ", ".join(repr(name) for name in names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")
    return f". The store has {'another catalog' if len(names) == 1 else 'other catalogs'}: {listed} (check --warehouse)"


def _count(number: int, noun: str) -> str:
    """Returns a number, with commas between thousands, and the noun, in the plural unless the number is 1."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {'tables and views' if noun == 'table or view' else noun + 's'}"
