"""Which table of the catalog an event means by a dataset. Pure functions.

Engines name a table by its location, in the namespace of the store, and tell its name beside that; or by its name
alone. The same name is another dataset elsewhere: `shop.orders` may be a topic of Kafka, or a table of Postgres. So it
counts only in namespaces of what reaches tables of an Iceberg REST catalog
(https://github.com/OpenLineage/OpenLineage/blob/main/spec/Naming.md).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
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
_CATALOGS: Final = frozenset({"http", "https", "iceberg"})
"""Namespaces of catalogs, by how they begin: Spark and Flink name one by its URI."""
_ENGINES: Final = frozenset({"trino", "presto"})
"""Those of engines, whose names of tables begin with that of a catalog."""


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


def names_of(dataset: Named, catalogs: Collection[str]) -> Iterator[tuple[str, str]]:
    """The tables, each by its namespace and name, that a dataset may be by its names. What is before the first dot is
    left out if it is one of the names that this catalog has for clients, `catalogs`."""
    for where, name in ((dataset.namespace, dataset.name), *dataset.further):
        scheme = where.partition(":")[0]
        catalog, _, inside = name.partition(".")
        whole = [name] if scheme in _CATALOGS else []
        short = [inside] if scheme in _CATALOGS | _ENGINES and catalog in catalogs else []
        for said in (*whole, *short):
            namespace, dot, table = said.rpartition(".")
            if dot:
                yield namespace, table


class Tables:
    """Finds tables by datasets; `catalogs` are the names that the catalog has for clients."""

    def __init__(self, known: Iterable[KnownTable], catalogs: Collection[str]) -> None:
        self._catalogs = catalogs
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
        names = names_of(dataset, self._catalogs)
        return next((self._by_name[each] for each in names if each in self._by_name), None)
