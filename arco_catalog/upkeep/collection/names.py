"""Names of all entities, tasks or commits that there are, by their digests: how many there may be has no bound."""

from array import array
from bisect import bisect_left
from hashlib import blake2b


class NumberedNames:
    """Names with a number each, in sixteen bytes. One that is not in it may be taken for one that is, once in a very
    long time: then something is kept that could go."""

    def __init__(self) -> None:
        self._digests, self._numbers = array("Q"), array("Q")
        self._in_order = True

    def add(self, name: str, number: int) -> None:
        """Takes in another name. If it is there already, either number may be kept."""
        self._digests.append(_digest(name))
        self._numbers.append(number)
        self._in_order = False

    def get(self, name: str) -> int | None:
        """The number of a name."""
        if not self._in_order:
            order = sorted(range(len(self._digests)), key=self._digests.__getitem__)
            self._digests = array("Q", (self._digests[place] for place in order))
            self._numbers = array("Q", (self._numbers[place] for place in order))
            self._in_order = True
        place = _find(self._digests, _digest(name))
        return None if place is None else self._numbers[place]


class Names:
    """The same without numbers, in eight bytes each."""

    def __init__(self) -> None:
        self._digests = array("Q")
        self._in_order = True

    def add(self, name: str) -> None:
        """Takes in another name."""
        self._digests.append(_digest(name))
        self._in_order = False

    def __contains__(self, name: str) -> bool:
        if not self._in_order:
            self._digests = array("Q", sorted(self._digests))
            self._in_order = True
        return _find(self._digests, _digest(name)) is not None


def _digest(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest())


def _find(digests: "array[int]", digest: int) -> int | None:
    place = bisect_left(digests, digest)
    return place if place < len(digests) and digests[place] == digest else None
