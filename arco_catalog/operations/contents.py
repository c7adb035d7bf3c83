"""Describes in a few words how much a registry holds: an operator who mistyped a store then notices."""

from collections.abc import Sequence

from arco_catalog.state.access import State
from arco_catalog.state.paths import outermost_root
from arco_catalog.state.realm import catalogs
from storage_backends import Cursor, ObjectStore

NEW = "New catalog: nothing was ever made in it"
MAX_PAGES, MAX_NAMES = 5, 10
"""Pages of 1,000 objects in which other catalogs of a store are searched, and names that are printed."""
RELATIONS = "relation\n"
"""Prefix of the index keys of all tables, views and what else is listed like them."""


async def describe_contents(state: State, *, of_realm: bool) -> str:
    """A sentence without its full stop: of a realm how many catalogs it has, else how many tables. An index that is
    partly in segments is not read for it. Raises `StoreError`."""
    head = await state.head()
    if head.version is None:
        return NEW + describe_siblings(await sibling_catalogs(state.store, state.paths.root))
    if head.index.directory.refs:
        return f"Its index has {_count(len(head.index.directory.refs), 'segment')}"
    prefix, noun = (catalogs(), "catalog") if of_realm else (RELATIONS, "table or view")
    return f"It has {_count(sum(1 for _ in head.index.scan(prefix)), noun)}"


async def sibling_catalogs(store: ObjectStore, name: str) -> Sequence[str]:
    """The names of other catalogs at the root of a store, as far as its first objects show them. Raises
    `StoreError`."""
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
    """The part of a sentence that names other catalogs; empty if there are none."""
    if not names:
        return ""
    listed = ", ".join(repr(name) for name in names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")
    return f". The store has {'another catalog' if len(names) == 1 else 'other catalogs'}: {listed} (check --warehouse)"


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {'tables and views' if noun == 'table or view' else noun + 's'}"
