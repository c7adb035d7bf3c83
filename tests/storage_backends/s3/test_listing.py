"""What it takes to read a page of a listing."""

import sys

from storage_backends.s3.listing import read_listing

_OBJECT = (
    '<Contents><Key>key</Key><LastModified>2026-11-21T12:00:00.000Z</LastModified><ETag>"x"</ETag><Size>1</Size>'
    "<StorageClass>STANDARD</StorageClass></Contents>"
)


def calls_for(objects: int) -> int:
    """How many functions are called to read a page of so many objects."""
    page = f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{_OBJECT * objects}</ListBucketResult>'
    read_listing(page.encode())  # what is cached is cached
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        assert len(read_listing(page.encode()).entries) == objects
    finally:
        sys.setprofile(None)
    return calls


def test_a_page_is_read_in_one_pass() -> None:
    """20 calls for each object; 73, when each of its four texts was searched by a path."""
    assert (calls_for(300) - calls_for(100)) / 200 < 40
