"""Tokens of plans: what they have is what comes back, and any other text is refused."""

import base64
import hashlib
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.iceberg.scan_request import Scan
from arco_catalog.operations.scans.tokens import (
    AHEAD_S,
    LIFETIME_S,
    MAX_INLINE,
    MAX_REQUEST_BYTES,
    MAX_STORED,
    MAX_TOKEN,
    InvalidToken,
    Position,
    Range,
    Token,
    pack_scan,
    read_token,
    unpack_scan,
)

ENTITY = "01KAN0Y7Q2M3C4D5E6F7G8H9JK"
NOW = 1_764_000_000
LONG = st.integers(-(2**63), 2**63 - 1)
FILTERS = st.recursive(
    st.booleans() | st.text(max_size=8) | st.integers(-(2**63), 2**63 - 1),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
NUMBERS = st.integers(0, 2**32 - 1)
POSITIONS = st.builds(Position, NUMBERS, NUMBERS, NUMBERS)
RANGES = st.tuples(POSITIONS, POSITIONS).filter(lambda ends: ends[0] != ends[1]).map(lambda ends: Range(*sorted(ends)))
SCANS = st.builds(
    Scan,
    snapshot_id=st.none() | LONG,
    schema_id=st.integers(0, 2**31 - 1),
    after=st.none() | LONG,
    filter=FILTERS,
    case_sensitive=st.booleans(),
    stats_columns=st.lists(st.integers(1, 2**31 - 1), max_size=20).map(tuple),
    min_rows=st.none() | st.integers(0, 2**63 - 1),
)


def token(request: bytes = b"x", part: Range | None = None) -> Token:
    return Token(ENTITY, NOW, 7, request, part)


@given(SCANS, st.none() | RANGES)
def test_a_scan_survives_its_token(scan: Scan, part: Range | None) -> None:
    packed = pack_scan(scan, 1)
    text = Token(ENTITY, NOW, scan.snapshot_id, packed, part).text
    received = read_token(text)
    assert len(text) <= MAX_TOKEN
    assert (received.entity, received.issued_s, received.range) == (ENTITY, NOW, part)
    assert (received.digest is None) == (len(packed) <= MAX_INLINE)
    assert unpack_scan(received.request if received.digest is None else packed, received.snapshot_id) == scan


def test_a_long_request_is_named_by_its_hash_which_differs_by_day() -> None:
    values: list[JsonValue] = [f"{number * 7919:x}" for number in range(500)]
    scan = Scan(1, 0, filter={"type": "in", "term": "a", "values": values})
    first, second = pack_scan(scan, 1), pack_scan(scan, 2)
    assert first != second
    assert token(first).text != token(second).text
    assert read_token(token(first).text).digest is not None
    assert unpack_scan(first, 1) == unpack_scan(second, 1) == scan


@given(st.binary(max_size=400))
def test_other_bytes_are_no_token(data: bytes) -> None:
    with pytest.raises(InvalidToken):
        read_token(base64.urlsafe_b64encode(data).decode())


@given(st.text(max_size=600))
def test_other_texts_are_no_token(text: str) -> None:
    with pytest.raises(InvalidToken):
        read_token(text)


@given(st.data())
def test_a_changed_token_is_refused_or_is_another_token(data: st.DataObject) -> None:
    text = token(pack_scan(Scan(7, 0), 1), Range(Position(), Position(0, 1, 0))).text
    place = data.draw(st.integers(0, len(text) - 1))
    changed = text[:place] + data.draw(st.sampled_from("ABCxyz019-_")) + text[place + 1 :]
    try:
        received = read_token(changed)
        unpack_scan(received.request, received.snapshot_id)
    except InvalidToken:
        return
    assert received.digest is not None or received.request


@pytest.mark.parametrize("change", [{"entity": "01KAN0Y7Q2M3C4D5E6F7G8H9JJ"}, {"is_task": True}])
def test_a_token_is_valid_for_its_table_and_its_use(change: dict[str, str | bool]) -> None:
    received = read_token(token().text)
    received.check(ENTITY, NOW, is_task=False)
    wanted = {"entity": ENTITY, "is_task": False, **change}
    with pytest.raises(InvalidToken):
        received.check(str(wanted["entity"]), NOW, is_task=bool(wanted["is_task"]))


@pytest.mark.parametrize(("later_s", "valid"), [(0, True), (LIFETIME_S, True), (LIFETIME_S + 1, False)])
def test_a_token_lives_a_day(later_s: int, valid: bool) -> None:
    received = read_token(token().text)
    if valid:
        received.check(ENTITY, NOW + later_s, is_task=False)
    else:
        with pytest.raises(InvalidToken, match="expired"):
            received.check(ENTITY, NOW + later_s, is_task=False)


def test_a_token_of_the_future_is_refused() -> None:
    with pytest.raises(InvalidToken):
        read_token(token().text).check(ENTITY, NOW - AHEAD_S - 1, is_task=False)


def test_a_request_of_the_maximum_is_read_again_and_a_longer_one_is_refused() -> None:
    scan = Scan(1, 0, filter="x" * (MAX_REQUEST_BYTES - 50))
    assert unpack_scan(pack_scan(scan, 1), 1) == scan
    with pytest.raises(BadRequest, match="at most"):
        pack_scan(Scan(1, 0, filter="x" * MAX_REQUEST_BYTES), 1)


def test_a_request_that_is_stored_has_a_bound_that_the_longest_lists_of_identifiers_keep() -> None:
    """A reader may have any number of different ones stored."""
    identifiers: JsonValue = [str(UUID(bytes=hashlib.sha256(b"%d" % each).digest()[:16])) for each in range(20_000)]
    assert 300_000 < len(pack_scan(Scan(1, 0, filter=identifiers), 1)) < MAX_STORED
    with pytest.raises(BadRequest, match="compressed"):
        pack_scan(Scan(1, 0, filter=Random(1).randbytes(MAX_STORED).hex()), 1)


def test_a_request_is_hashed_once_for_all_its_plan_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []

    def sha256(data: bytes) -> Any:
        hashed.append(len(data))
        return hashlib.new("sha256", data)

    monkeypatch.setattr(hashlib, "sha256", sha256)
    parts = [Range(Position(0, number, 0), Position(0, number + 1, 0)) for number in range(64)]
    texts = token(b"x" * 1_000).tasks(parts)
    assert hashed == [1_000]
    assert [read_token(text).range for text in texts] == parts


def test_a_request_that_unpacks_to_too_much_is_refused() -> None:
    import zlib

    with pytest.raises(InvalidToken):
        unpack_scan(zlib.compress(b'[0,null,"' + b" " * MAX_REQUEST_BYTES + b'",true,[],null]', 9), 1)
