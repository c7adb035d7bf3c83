"""Which table of the catalog an event means by a dataset. Pure functions.

Engines name a table by its location, in the namespace of the store, and tell its name beside that; or by its name
alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.compact.runs import Named

_SPELLINGS: Final = {
    "file": ("file://", "file:"),
    "s3": ("s3://", "s3a://", "s3n://"),
    "gs": ("gs://",),
    "abfss": ("abfss://", "abfs://"),
    "wasbs": ("wasbs://", "wasb://"),
    "hdfs": ("hdfs://",),
}
"""How locations of one store begin, in words of engines."""
_STORES: Final = {begin.rstrip("/").rstrip(":"): same for same in _SPELLINGS.values() for begin in same}


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table of the catalog, as its newest version was called and where it lay."""

    entity: str
    namespace: str
    name: str
    location: str | None = None
    committed_ms: int = 0


def locations_of(dataset: Named) -> Sequence[str]:
    """The spellings that the location of a dataset may have in metadata; none for one that is not named by it."""
    scheme, _, bucket = dataset.namespace.partition("://")
    beginnings = _STORES.get(scheme, ())
    path = dataset.name.strip("/")
    where = f"{bucket}/{path}" if scheme != "file" else f"/{path}"
    plain = [f"{begin}{where}" for begin in beginnings]
    return [*plain, *(f"{each}/" for each in plain)] if path else []


def names_of(dataset: Named) -> Iterator[tuple[str, str]]:
    """The tables, each by its namespace and name, that a dataset may be by its names: with what is before the first
    dot, which is the catalog's name for some engines, and without."""
    for name in (dataset.name, *dataset.further):
        for said in (name, name.partition(".")[2]):
            namespace, dot, table = said.rpartition(".")
            if dot:
                yield namespace, table


class Tables:
    """Finds tables by datasets."""

    def __init__(self, known: Iterable[KnownTable]) -> None:
        self._by_location: dict[str, KnownTable] = {}
        self._by_name: dict[tuple[str, str], KnownTable] = {}
        for table in sorted(known, key=lambda each: each.committed_ms):  # of two of one name the younger one is meant
            self._by_name[table.namespace, table.name] = table
            if table.location is not None:
                self._by_location[table.location] = table

    def find(self, dataset: Named) -> KnownTable | None:
        """The table. One that is named by its location is what lies there, and by no name another."""
        locations = locations_of(dataset)
        if locations:
            return next((self._by_location[each] for each in locations if each in self._by_location), None)
        return next((self._by_name[each] for each in names_of(dataset) if each in self._by_name), None)
