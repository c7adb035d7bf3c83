"""The parser of pages of a listing, and the calls that it takes."""

import subprocess
import sys

import pytest

from storage_backends.s3.listing import read_listing
from storage_backends.wire.bucket_store import ListedPage
from tools.support.environment import PROJECT

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


EMPTY = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    "<Name>bucket</Name><Prefix>a/b-c</Prefix><KeyCount>0</KeyCount><MaxKeys>1000</MaxKeys><Delimiter/>"
    "<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated></ListBucketResult>"
)


@pytest.mark.parametrize("prefix", ["a/b-c", "", "a&amp;b", "\u00e4", "a<!-- -->b", "<![CDATA[a]]>"])
@pytest.mark.parametrize("spaces", ["", "\n  "])
def test_an_empty_page_has_no_objects_however_it_is_written(prefix: str, spaces: str) -> None:
    page = EMPTY.replace("a/b-c", prefix).replace("><", f">{spaces}<")

    assert read_listing(page.encode()) == ListedPage((), None)


def test_a_page_without_objects_may_not_be_the_last() -> None:
    token = "<NextContinuationToken>next</NextContinuationToken>"
    page = EMPTY.replace("false</IsTruncated>", f"true</IsTruncated>{token}")

    assert read_listing(page.encode()) == ListedPage((), "next")
    with pytest.raises(ValueError, match="has no NextContinuationToken"):
        read_listing(page.replace(token, "").encode())


@pytest.mark.parametrize(
    "page",
    [
        EMPTY[:-1],
        EMPTY.replace("</Name>", "</Names>"),
        EMPTY.replace("ListBucketResult", "Error"),
        EMPTY.replace("a/b-c", "a & b"),
        EMPTY.replace("a/b-c", "\x00"),
        EMPTY.replace("a/b-c", "]]>"),
        EMPTY + EMPTY,
        EMPTY.replace("<Delimiter/>", "<Contents/>"),
        EMPTY.replace("<Delimiter/>", "<Contents>text</Contents>"),
        "",
    ],
)
def test_a_damaged_page_is_not_taken_for_an_empty_one(page: str) -> None:
    with pytest.raises(ValueError, match="the listing"):
        read_listing(page.encode())


def test_an_empty_page_is_read_without_an_xml_parser() -> None:
    code = f"""
import sys
from storage_backends.s3.listing import read_listing
read_listing({EMPTY.replace("UTF-8", "utf-8").encode()!r})
print([name for name in sys.modules if name.startswith("xml")])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, timeout=60)

    assert done.stdout.strip() == "[]", done.stderr
