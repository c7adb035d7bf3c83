"""The cache never holds more bytes than it may."""

from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.state.cache import ENTRY_BYTES, ByteCache


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
