"""The cache never holds more bytes than it may."""

from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.state.cache import ENTRY_BYTES, ByteCache, SelectiveCache


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 12)), max_size=40))
def test_the_sizes_kept_never_add_up_to_more_than_the_limit(puts: list[tuple[str, int]]) -> None:
    cache: ByteCache[str, int] = ByteCache(20 + 4 * ENTRY_BYTES)
    for key, size in puts:
        cache.put(key, size, size)
        assert cache.size <= 20 + 4 * ENTRY_BYTES
        assert cache.size == sum(kept + ENTRY_BYTES for k in "abcdef" if (kept := cache.get(k)) is not None)


def test_what_was_used_last_stays() -> None:
    cache: ByteCache[str, str] = ByteCache(2 * ENTRY_BYTES + 2)
    cache.put("a", "A", 1)
    cache.put("b", "B", 1)
    cache.get("a")
    cache.put("c", "C", 1)
    assert [cache.get(key) for key in "abc"] == ["A", None, "C"]


def test_a_value_larger_than_the_cache_is_not_kept_and_displaces_nothing() -> None:
    cache: ByteCache[str, str] = ByteCache(2 + ENTRY_BYTES)
    cache.put("a", "A", 1)
    cache.put("b", "B", 3)
    assert (cache.get("a"), cache.get("b")) == ("A", None)


def ticks(cache: SelectiveCache[str, str], *keys: str) -> list[bool]:
    """Requests values, and puts each of size 1 that the cache would take. Returns which are found there."""
    found = []
    for key in keys:
        found.append(cache.get(key) is not None)
        requested = None if found[-1] else cache.request(key)
        if requested is not None:
            cache.put(key, key, 1, requested)
    return found


def selective(values: int) -> SelectiveCache[str, str]:
    """A cache with room for so many values."""
    return SelectiveCache(values * (1 + ENTRY_BYTES))


def test_a_value_is_taken_at_its_second_request() -> None:
    assert ticks(selective(2), *"aaabab") == [False, False, True, False, True, False]


def test_requests_in_turn_for_more_values_than_there_is_room_for_find_as_many_as_there_is_room_for() -> None:
    cache = selective(3)
    ticks(cache, *2 * "abcdefgh")
    for _ in range(5):
        assert sum(ticks(cache, *"abcdefgh")) == 3


def test_values_that_are_not_used_any_more_give_way() -> None:
    cache = selective(3)
    ticks(cache, *3 * "abc")
    assert ticks(cache, *3 * "xyz")[-3:] == [True] * 3
    assert len(cache) == 3


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 12)), max_size=60))
def test_a_selective_cache_keeps_to_its_limit(requests: list[tuple[str, int]]) -> None:
    limit = 20 + 3 * ENTRY_BYTES
    cache: SelectiveCache[str, int] = SelectiveCache(limit)
    for key, size in requests:
        requested = cache.request(key)
        if requested is not None:
            cache.put(key, size, size, requested)
        assert cache.size <= limit
        assert cache.size == sum(kept + ENTRY_BYTES for k in "abcdef" if (kept := cache.get(k)) is not None)
