"""Markers bind a key to one request, by a hash that is the same for equal requests and exact for large integers."""

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.json import JsonValue, loads
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
def test_large_integers_have_different_hashes(number: int) -> None:
    assert payload_hash({"snapshot-id": number}) != payload_hash({"snapshot-id": number + 1})


def test_the_hash_of_a_request_is_pinned() -> None:
    """A new version must find what an old one wrote: this value is part of the format."""
    body: JsonValue = {"b": [1, 2.5, None, True], "a": "ü", "snapshot-id": 9007199254740993}
    assert payload_hash(body) == "f1752bd2223f61c0e456f3320021f03faf1f26c8ba1c0b9f709cb877dd869e30"


RFC_8785_SAMPLE = rb"""{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}"""
"""Section 3.2.2."""


def test_the_sample_of_rfc_8785_has_its_canonical_form() -> None:
    canonical = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        r""""string":"€$\u000f\nA'B\"\\\\\"/"}"""
    )

    assert payload_hash(loads(RFC_8785_SAMPLE)) == hashlib.sha256(canonical.encode()).hexdigest()


def test_keys_are_in_the_order_of_rfc_8785() -> None:
    """By UTF-16 code units (section 3.2.3): an emoji before a letter whose code unit is above its surrogates."""
    body: JsonValue = {"\u20ac": 5, "\r": 1, "\ufb33": 7, "1": 2, "\U0001f600": 6, "\x80": 3, "\xf6": 4}
    canonical = '{"\\r":1,"1":2,"\x80":3,"\xf6":4,"\u20ac":5,"\U0001f600":6,"\ufb33":7}'

    assert payload_hash(body) == hashlib.sha256(canonical.encode()).hexdigest()


@pytest.mark.parametrize(
    ("bits", "written"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_are_written_as_in_rfc_8785(bits: str, written: str) -> None:
    """Appendix B."""
    (number,) = struct.unpack(">d", bytes.fromhex(bits))

    assert payload_hash({"n": number}) == hashlib.sha256(b'{"n":%s}' % written.encode()).hexdigest()


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
