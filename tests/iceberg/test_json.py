"""JSON in and out, exactly."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.json import MalformedJson, dumps, loads
from tests.iceberg.strategies import json_values
from tests.iceberg.values import Json


@given(json_values)
def test_what_is_written_is_read_back(value: Json) -> None:
    assert loads(dumps(value)) == value


@given(st.lists(st.integers(-(2**80), 2**80)) | st.integers())
def test_integers_of_any_size_stay_exact(value: Json) -> None:
    assert loads(json.dumps(value).encode()) == value
    assert loads(json.dumps(value, separators=(",", ":")).encode()) == value


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**19, -(10**18), 10**300])
def test_integers_around_64_bits_are_integers(number: int) -> None:
    found = loads(b'{"n":%d}' % number)
    assert found == {"n": number}
    assert isinstance(found["n"], int)
    assert loads(dumps(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[1,]",
        b"NaN",
        b"[Infinity]",
        b'"\\ud800"',
        b"[123456789012345678901,NaN]",
        b"\xff",
        b"[" * 5000,
        b"1" * 400,
    ],
)
def test_what_is_no_document_is_refused(text: bytes) -> None:
    with pytest.raises(MalformedJson):
        loads(text)


def test_keys_keep_their_order_unless_sorted() -> None:
    value: Json = {"b": 1, "a": {"d": 2**70, "c": "é"}}
    assert dumps(value) == b'{"b":1,"a":{"d":1180591620717411303424,"c":"\xc3\xa9"}}'
    assert dumps(value, sort_keys=True) == b'{"a":{"c":"\xc3\xa9","d":1180591620717411303424},"b":1}'


def test_a_short_result_that_is_kept_takes_no_more_than_its_own_length() -> None:
    tracemalloc.start()
    try:
        kept = [dumps(["x" * 180, number]) for number in range(1_000)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 2 * sum(map(len, kept))
