"""Identifiers, and chance that no two processes share."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from arco_catalog.state.runtime import SystemRuntime, ulid_of


@given(ms=st.integers(0, 2**48 - 1), entropy=st.binary(min_size=10, max_size=10))
def test_ulids_are_what_the_library_for_them_makes(ms: int, entropy: bytes) -> None:
    assert ulid_of(ms, entropy) == str(ULID.from_bytes(ms.to_bytes(6, "big") + entropy))


@given(ms=st.integers(0, 2**48 - 2), entropies=st.tuples(*2 * [st.binary(min_size=10, max_size=10)]))
def test_ulids_sort_by_their_time(ms: int, entropies: tuple[bytes, bytes]) -> None:
    assert ulid_of(ms, entropies[0]) < ulid_of(ms + 1, entropies[1])


@pytest.mark.parametrize("length", [0, 9, 11])
def test_a_ulid_takes_ten_bytes(length: int) -> None:
    with pytest.raises(ValueError, match="ten bytes"):
        ulid_of(0, bytes(length))


@pytest.mark.parametrize("ms", [-1, 2**48])
def test_a_ulid_holds_only_so_much_time(ms: int) -> None:
    with pytest.raises(OverflowError):
        ulid_of(ms, bytes(10))


def test_chance_does_not_hang_on_a_state_that_a_snapshot_would_hold() -> None:
    random.seed(1)
    one = [SystemRuntime().random() for _ in range(3)]
    random.seed(1)
    assert one != [SystemRuntime().random() for _ in range(3)]
    assert all(0 <= number < 1 for number in one)
