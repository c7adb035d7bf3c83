import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_backends import ABSENT, ANY, InvalidKey, Matches, Version
from storage_backends.validation import check_deletable, check_key, check_range, is_key
from tests.storage_backends.contract import INVALID_KEYS, ODD_KEYS


@pytest.mark.parametrize("key", [*ODD_KEYS, "k" * 1024, "é" * 512])
def test_what_can_name_an_object_is_a_key(key: str) -> None:
    check_key(key)
    assert is_key(key)


@pytest.mark.parametrize("key", [*INVALID_KEYS, "é" * 512 + "k"])
def test_what_cannot_name_an_object_is_no_key(key: str) -> None:
    with pytest.raises(InvalidKey):
        check_key(key)
    assert not is_key(key)


@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"], exclude_characters="/"), min_size=1))
def test_a_segment_of_plain_characters_is_a_key_but_for_dots(segment: str) -> None:
    assert is_key(segment) == (segment not in (".", "..") and len(segment.encode()) <= 1024)


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (0, 0), (0, -1)])
def test_no_object_has_a_range_of_nothing(start: int, length: int) -> None:
    with pytest.raises(ValueError, match="range"):
        check_range(start, length)
    check_range(0, 1)


def test_a_deletion_is_of_something() -> None:
    with pytest.raises(ValueError, match="ABSENT"):
        check_deletable(ABSENT)
    assert check_deletable(ANY) == ANY
    assert check_deletable(Matches(Version("1"))) == Matches(Version("1"))
