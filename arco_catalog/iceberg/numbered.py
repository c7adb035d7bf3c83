"""Numbered objects of a table or view, none of them twice: schemas, partition specs, sort orders, versions."""

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.shapes import following_id

T = TypeVar("T")


class NumberedObjects(Generic[T]):
    """The objects of one kind of a table or view by id, in their order, and the ids by the meaning of the objects. So
    each update of a commit costs the same, however many objects there are.

    The meaning of an object is computed only when an object of equal size is searched or added: most schemas of a table
    differ in size already.
    """

    def __init__(
        self,
        objects: Iterable[T],
        id_of: Callable[[T], int],
        size: Callable[[T], int],
        meaning: Callable[[T], Hashable],
    ) -> None:
        self.by_id = {id_of(each): each for each in objects}
        self._first = dict(self.by_id)
        self._descending = [-number for number in self.by_id]
        heapify(self._descending)
        self._size = size
        self._meaning = meaning
        self._ids: dict[int, dict[Hashable, dict[int, None]]] = {}

    def id_of(self, wanted: T) -> int | None:
        """Returns the id of the first object with the meaning of `wanted`, None if there is none."""
        return next(iter(self._alike(wanted).get(self._meaning(wanted), ())), None)

    def next_id(self, what: str) -> int:
        """Returns one more than the highest id, 0 if there is no object. Raises `BadRequest`, which names `what`, if
        that is greater than the largest allowed id."""
        return following_id(what, self._highest())

    def add(self, number: int, added: T) -> None:
        """Adds an object (a schema, spec, sort order or version) under its id, at the end of the order. It does not
        compare the object with others: the caller does that by `id_of`."""
        self._alike(added).setdefault(self._meaning(added), {})[number] = None
        self.by_id[number] = added
        heappush(self._descending, -number)

    def remove(self, numbers: Iterable[int]) -> None:
        """Removes the objects of these ids. Ids that do not exist are ignored."""
        for number in numbers:
            gone = self.by_id.pop(number, None)
            if gone is not None and self._size(gone) in self._ids:
                self._alike(gone)[self._meaning(gone)].pop(number, None)

    def _highest(self) -> int:
        """Returns the highest id in use, -1 if there is none. Removed ids leave the heap here, each of them once: a
        search for the maximum after each removal would take quadratic time."""
        while self._descending and -self._descending[0] not in self.by_id:
            heappop(self._descending)
        return -self._descending[0] if self._descending else -1

    def _alike(self, wanted: T) -> dict[Hashable, dict[int, None]]:
        """Returns the ids of all objects that have the size of `wanted`, by meaning, in order. `add` calls this before
        it adds, so only the initial objects have to be read, once for all sizes."""
        size = self._size(wanted)
        if size not in self._ids:
            alike: dict[Hashable, dict[int, None]] = {}
            for number, each in self._by_size.get(size, ()):
                if self.by_id.get(number) is each:
                    alike.setdefault(self._meaning(each), {})[number] = None
            self._ids[size] = alike
        return self._ids[size]

    @cached_property
    def _by_size(self) -> dict[int, list[tuple[int, T]]]:
        """The objects with which the lookup was made, with their numbers, by their size: only the ones of one size can
        be equal."""
        sizes: dict[int, list[tuple[int, T]]] = {}
        for number, each in self._first.items():
            sizes.setdefault(self._size(each), []).append((number, each))
        return sizes


def unique_ids(what: str, ids: Iterable[int]) -> set[int]:
    """Returns the ids in metadata that a client registers. Raises `BadRequest`, which names them by `what`, if one is
    there twice."""
    seen: set[int] = set()
    for each in ids:
        if each in seen:
            raise BadRequest(f"Invalid metadata: {what} {each} is there twice")
        seen.add(each)
    return seen
