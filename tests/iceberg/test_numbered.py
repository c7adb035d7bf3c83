"""Objects that a table numbers, each kept once."""

import pytest

from arco_catalog.iceberg.numbered import NumberedObjects


class Words(NumberedObjects[str]):
    """Words that mean the same in any case, and a count of how often that was asked. Their first letter is their id."""

    def __init__(self, *words: str) -> None:
        self.asked = 0
        super().__init__(words, lambda word: int(word[0]), len, self._lower)

    def _lower(self, word: str) -> str:
        self.asked += 1
        return word[1:].lower()


def test_the_first_that_means_the_same_is_found() -> None:
    words = Words("3a", "5A", "7ab")
    assert words.id_of("0a") == 3
    assert words.id_of("0AB") == 7
    assert words.id_of("0b") is None
    assert words.next_id("word") == 8


def test_what_is_added_is_found_and_what_is_removed_is_not() -> None:
    words = Words("3a")
    words.add(9, "9b")
    words.remove([3, 4])
    assert words.id_of("0B") == 9
    assert words.id_of("0a") is None
    assert list(words.by_id) == [9]
    words.remove([9])
    assert words.next_id("word") == 0


@pytest.mark.parametrize("asked_before", [False, True])
def test_when_the_first_that_means_the_same_is_removed_the_next_is_found(asked_before: bool) -> None:
    words = Words("1a", "2A", "3a")
    if asked_before:
        assert words.id_of("0a") == 1
    words.remove([1])
    assert words.id_of("0a") == 2
    words.remove([3, 2])
    assert words.id_of("0a") is None


def test_a_change_asks_for_no_meaning_but_its_own() -> None:
    words = Words(*(f"{number}{number}" for number in range(9)))
    words.id_of("00")
    before = words.asked
    words.add(9, "9x")
    words.remove([9])
    assert words.asked - before < 9


def test_only_objects_of_one_length_are_compared() -> None:
    words = Words("1aa", "2bb", "3c")
    words.id_of("0c")
    assert words.asked == 2
