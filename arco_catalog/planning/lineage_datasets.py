"""Finds the table of the catalog that an OpenLineage event refers to by a dataset. Pure functions.

Engines name a table by its location in the namespace of the store, with the table's name as a further name, or only by
a name. A name is not unique across systems: `shop.orders` may be a topic of Kafka, or a table of Postgres. So names
count only in namespaces of systems that read tables of an Iceberg REST catalog
(https://github.com/OpenLineage/OpenLineage/blob/main/spec/Naming.md)."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from storage_backends.lazy_dataclass import dataclass

_SPELLINGS: Final = {
    "file": ("file://", "file:"),
    "s3": ("s3://", "s3a://", "s3n://"),
    "gs": ("gs://",),
    "abfss": ("abfss://", "abfs://"),
    "wasbs": ("wasbs://", "wasb://"),
    "hdfs": ("hdfs://",),
}
"""The prefixes with which engines spell locations of one store."""
_STORES: Final = {begin.rstrip("/").rstrip(":"): same for same in _SPELLINGS.values() for begin in same}
_CATALOGS: Final = frozenset({"http", "https", "iceberg"})
"""The schemes of namespaces that are catalogs: Spark and Flink name a catalog by its URI."""
_ENGINES: Final = frozenset({"trino", "presto"})
"""The schemes of namespaces that are engines, in which a table's name begins with that of a catalog."""


@dataclass(frozen=True, slots=True)
class DatasetRef:
    """A dataset in an OpenLineage event: namespace and name, further names as pairs of namespace and name, and the
    snapshot that was read or written (None if the event has none)."""

    namespace: str
    name: str
    further: tuple[tuple[str, str], ...] = ()
    snapshot_id: int | None = None

    def __str__(self) -> str:
        return f"{self.namespace} {self.name}"


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table of the catalog that a dataset may mean, with the present name and one location of it, or None.
    `committed_ms` is when the newest version was committed, in milliseconds since 1970; 0 where it is not needed to
    distinguish tables of one name."""

    entity: str
    namespace: str
    name: str
    location: str | None = None
    committed_ms: int = 0


def is_catalog(namespace: str) -> bool:
    """Whether an OpenLineage namespace is that of any catalog, by the scheme: http, https or iceberg."""
    return namespace.partition(":")[0] in _CATALOGS


def is_engine(namespace: str) -> bool:
    """Whether an OpenLineage namespace is that of an engine (trino or presto), in which a table's name begins with that
    of a catalog."""
    return namespace.partition(":")[0] in _ENGINES


def locations_of(dataset: DatasetRef) -> Sequence[str]:
    """Returns the locations that table metadata may have for a dataset that is named by its location, in every
    spelling; empty if the dataset is not named so."""
    scheme, _, bucket = dataset.namespace.partition("://")
    beginnings = _STORES.get(scheme, ())
    path = dataset.name.strip("/")
    where = f"{bucket}/{path}" if scheme != "file" else f"/{path}"
    plain = [f"{begin}{where}" for begin in beginnings]
    return [*plain, *(f"{each}/" for each in plain)] if path else []


def names_of(dataset: DatasetRef, catalogs: Collection[str]) -> Iterator[tuple[str, str]]:
    """Iterates over the namespace and name of each table that one of a dataset's names may mean. Names count in
    OpenLineage namespaces of catalogs and of engines alone. In a namespace of a catalog the whole name is a candidate.
    In both kinds, what follows the first dot is a candidate if the part before it is one of `catalogs`, the names of
    this catalog for clients. What follows the last dot of a candidate is the table's name; without a dot, it is
    skipped."""
    for where, name in ((dataset.namespace, dataset.name), *dataset.further):
        catalog, _, inside = name.partition(".")
        whole = [name] if is_catalog(where) else []
        short = [inside] if (is_catalog(where) or is_engine(where)) and catalog in catalogs else []
        for candidate in (*whole, *short):
            namespace, dot, table = candidate.rpartition(".")
            if dot:
                yield namespace, table


class Tables:
    """Finds the table that a dataset means among the tables in `known`; `catalogs` are the names of the catalog for
    clients."""

    def __init__(self, known: Iterable[KnownTable], catalogs: Collection[str]) -> None:
        self._catalogs = catalogs
        self._by_location: dict[str, KnownTable] = {}
        self._by_name: dict[tuple[str, str], KnownTable] = {}
        for table in sorted(known, key=lambda each: each.committed_ms):  # the younger one of two with one name wins
            self._by_name[table.namespace, table.name] = table
            if table.location is not None:
                self._by_location[table.location] = table

    def find(self, dataset: DatasetRef) -> KnownTable | None:
        """Returns the table that a dataset means; None if no known one. A dataset that is named by a location is the
        table at that location, and is not searched by names."""
        locations = locations_of(dataset)
        if locations:
            return next((self._by_location[each] for each in locations if each in self._by_location), None)
        names = names_of(dataset, self._catalogs)
        return next((self._by_name[each] for each in names if each in self._by_name), None)
