"""Describes in a few words how much a registry holds: an operator who mistyped a store then notices."""

from arco_catalog.state.access import State
from arco_catalog.state.realm import catalogs

NEW = "New catalog: nothing was ever made in it"
RELATIONS = "relation\n"
"""Prefix of the index keys of all tables, views and what else is listed like them."""


async def describe_contents(state: State, *, of_realm: bool) -> str:
    """A sentence without its full stop: of a realm how many catalogs it has, else how many tables. An index that is
    partly in segments is not read for it. Raises `StoreError`."""
    head = await state.head()
    if head.version is None:
        return NEW
    if head.index.directory.refs:
        return f"Its index has {_count(len(head.index.directory.refs), 'segment')}"
    prefix, noun = (catalogs(), "catalog") if of_realm else (RELATIONS, "table or view")
    return f"It has {_count(sum(1 for _ in head.index.scan(prefix)), noun)}"


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {'tables and views' if noun == 'table or view' else noun + 's'}"
