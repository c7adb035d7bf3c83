"""Objects of a table that it numbers, each kept once: schemas, partition specs, sort orders."""

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from arco_catalog.iceberg.shapes import following_id

T = TypeVar("T")


class Numbered(Generic[T]):
    """The objects by id, in their order, and the ids by what the objects mean: whatever a commit does with them, each
    of its updates costs the same, however many there are.

    Meanings are made of those objects alone that are as long as one that is looked for: most schemas of a table differ
    in that already.
    """

    def __init__(
        self,
        objects: Iterable[T],
        id_of: Callable[[T], int],
        size: Callable[[T], int],
        meaning: Callable[[T], Hashable],
    ) -> None:
        self.by_id = {id_of(each): each for each in objects}
        self._highest = max(self.by_id, default=-1)
        self._size = size
        self._meaning = meaning
        self._ids: dict[int, dict[Hashable, int]] = {}

    def id_of(self, wanted: T) -> int | None:
        """The id of the first object that means the same, None if there is none."""
        return self._alike(wanted).get(self._meaning(wanted))

    def next_id(self, what: str) -> int:
        """One more than the highest. Raises `BadRequest` where there is none."""
        return following_id(what, self._highest)

    def add(self, number: int, added: T) -> None:
        """Keeps one more."""
        self._alike(added).setdefault(self._meaning(added), number)
        self.by_id[number] = added
        self._highest = max(self._highest, number)

    def remove(self, numbers: Iterable[int]) -> None:
        """Forgets those that are there."""
        for number in numbers:
            gone = self.by_id.pop(number, None)
            if gone is not None:
                if self.id_of(gone) == number:
                    del self._alike(gone)[self._meaning(gone)]
                if number == self._highest:
                    self._highest = max(self.by_id, default=-1)

    def _alike(self, wanted: T) -> dict[Hashable, int]:
        size = self._size(wanted)
        if size not in self._ids:
            alike: dict[Hashable, int] = {}
            for number, each in self.by_id.items():
                if self._size(each) == size:
                    alike.setdefault(self._meaning(each), number)
            self._ids[size] = alike
        return self._ids[size]
