"""Markers bind a key to one request, by a hash that is the same for equal requests and exact for large integers."""

from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.json import JsonValue
from arco_catalog.state.marker import RequestIdentity, Slot, WriteSet, bound_to, payload_hash
from storage_backends import Found, Version

json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=4))
def test_the_order_of_keys_does_not_matter(body: dict[str, JsonValue]) -> None:
    assert payload_hash(body) == payload_hash(dict(reversed(body.items())))


@given(st.integers(2**53, 2**70))
def test_large_integers_are_told_apart(number: int) -> None:
    assert payload_hash({"snapshot-id": number}) != payload_hash({"snapshot-id": number + 1})


def test_the_hash_of_a_request_is_pinned() -> None:
    """A new version must find what an old one wrote: this value is part of the format."""
    body: JsonValue = {"b": [1, 2.5, None, True], "a": "ü", "snapshot-id": 9007199254740993}
    assert payload_hash(body) == "f1752bd2223f61c0e456f3320021f03faf1f26c8ba1c0b9f709cb877dd869e30"


def test_a_slot_is_read_back_as_it_was_put() -> None:
    identity = RequestIdentity("POST", "/v1/t", "", "hash", "me")
    write_set = WriteSet(pointers={"E": 3}, registry=7, marks=("M",), creates=("N", "file:///n"))
    slot = Slot("attempt", write_set, identity.to_json(), {"status": 204, "body": None})
    again = Slot.parse(Found(slot.body, Version("v"), written_ms=5, now_ms=9), "here")
    assert (again.attempt, again.write_set, again.final, again.written_ms) == ("attempt", write_set, True, 5)
    assert bound_to(again, identity)


def test_a_binding_covers_the_same_objects_at_any_sequence_number() -> None:
    assert WriteSet(pointers={"E": 3}).covers(WriteSet(pointers={"E": 9}))
    assert WriteSet(registry=1).covers(WriteSet(registry=2))


def test_a_binding_covers_nothing_that_it_does_not_name() -> None:
    assert not WriteSet(pointers={"E": 3}).covers(WriteSet(pointers={"F": 3}))
    assert not WriteSet().covers(WriteSet(registry=1))
    assert not WriteSet(registry=1).covers(WriteSet(registry=1, marks=("E",)))
    assert not WriteSet(registry=1, marks=("E",)).covers(WriteSet(registry=1))
    assert not WriteSet(registry=1, creates=("E", "f")).covers(WriteSet(registry=1, creates=("E", "g")))
