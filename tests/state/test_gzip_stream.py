"""A gzip stream with a part that was compressed before is that of the whole."""

import gzip

from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.state.gzip_stream import deflate, gzip_stream

CONTENTS = st.binary(max_size=300) | st.builds(
    lambda part, times: part * times, st.binary(max_size=9), st.integers(0, 9_000)
)


@given(CONTENTS, CONTENTS, CONTENTS)
def test_the_stream_has_the_parts_in_their_order(start: bytes, middle: bytes, end: bytes) -> None:
    # gzip checks the checksum and the size of the whole.
    assert gzip.decompress(gzip_stream(start, deflate(middle), end)) == start + middle + end


@given(CONTENTS, CONTENTS)
def test_one_part_is_in_many_streams(first: bytes, second: bytes) -> None:
    part = deflate(b"the same")

    assert gzip.decompress(gzip_stream(first, part, second)) == first + b"the same" + second
    assert gzip.decompress(gzip_stream(second, part, first)) == second + b"the same" + first


def test_the_bytes_are_the_same_each_time() -> None:
    assert gzip_stream(b"a", deflate(b"b"), b"c") == gzip_stream(b"a", deflate(b"b"), b"c")
