"""An index that refuses lookups which were not declared, also where no segment would have to be loaded."""

from collections.abc import Iterable, Iterator, Mapping

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.index import Index, locations_at
from arco_catalog.state.needs import Needs, Steps, T
from arco_catalog.state.segments import KeyRange


class DeclaredIndex(Index):
    """The entries of an index, to be found only after a computation has yielded `Needs` of them."""

    __slots__ = ("_holds", "_keys", "_prefixes")

    def __init__(self, index: Index) -> None:
        super().__init__(index.edits, index.directory, index.segment_lookup, sorted(index.edits))
        self._keys: set[str] = set()
        self._prefixes: set[str] = set()
        self._holds: set[str] = set()

    def declare(self, needs: Needs) -> None:
        """Allows these lookups from now on."""
        self._keys |= {*needs.keys}
        self._prefixes |= {scan.prefix for scan in needs.scans}
        self._holds |= {*needs.holds}

    def _check(self, key: str) -> None:
        declared = key in self._keys or key.startswith(tuple(self._prefixes))
        assert declared or key.startswith(tuple(f"{locations_at(place)}\n" for place in self._holds)), key

    def get(self, key: str) -> JsonObject | None:
        self._check(key)
        return super().get(key)

    def get_all(self, keys: Iterable[str]) -> Mapping[str, JsonObject]:
        wanted = [*keys]
        for key in wanted:
            self._check(key)
        return super().get_all(wanted)

    def key_ranges(self, prefix: str, start: str | None = None) -> Iterator[KeyRange]:
        self._check(prefix)
        return super().key_ranges(prefix, start)


def declaring(steps: Steps[T], index: DeclaredIndex) -> Steps[T]:
    """Returns the same computation, which also declares its lookups to the index."""
    while True:
        try:
            needs = next(steps)
        except StopIteration as end:
            value: T = end.value
            return value
        index.declare(needs)
        yield needs
