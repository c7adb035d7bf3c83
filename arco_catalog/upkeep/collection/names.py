"""Sets of names of entities, tasks or commits that store only hashes of them, since a catalog may have any number of
names."""

from array import array
from bisect import bisect_left
from hashlib import blake2b


class NumberedNames:
    """A map of names to numbers that takes sixteen bytes for each. With a tiny probability it contains a name that was
    not added: then an object is kept that could be deleted."""

    def __init__(self) -> None:
        self._digests, self._numbers = array("Q"), array("Q")
        self._in_order = True

    def add(self, name: str, number: int) -> None:
        """Adds a name with a number. If the name was added before with another number, `get` may return either."""
        self._digests.append(_digest(name))
        self._numbers.append(number)
        self._in_order = False

    def get(self, name: str) -> int | None:
        """Returns the number with which a name was added; None if the name was not added."""
        if not self._in_order:
            order = sorted(range(len(self._digests)), key=self._digests.__getitem__)
            self._digests = array("Q", (self._digests[place] for place in order))
            self._numbers = array("Q", (self._numbers[place] for place in order))
            self._in_order = True
        place = _find(self._digests, _digest(name))
        return None if place is None else self._numbers[place]


class Names:
    """A set of names that takes eight bytes for each. With a tiny probability it contains a name that was not added:
    then an object is kept that could be deleted."""

    def __init__(self) -> None:
        self._digests = array("Q")
        self._in_order = True

    def add(self, name: str) -> None:
        """Adds a name to the set."""
        self._digests.append(_digest(name))
        self._in_order = False

    def __contains__(self, name: str) -> bool:
        if not self._in_order:
            self._digests = array("Q", sorted(self._digests))
            self._in_order = True
        return _find(self._digests, _digest(name)) is not None


def _digest(name: str) -> int:
    """Returns the digest of a name as a number."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest())


def _find(digests: "array[int]", digest: int) -> int | None:
    """Returns the place of a digest in a sorted array; None if it is not there."""
    place = bisect_left(digests, digest)
    return place if place < len(digests) and digests[place] == digest else None
